import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** A `handset watch` that runs; it is ended by `end`. */
export interface Watching {
  readonly url: string;
  /** Milliseconds from the start of the process to the first page served. */
  readonly firstServe: number;
  end(): Promise<void>;
}

const START_MS = 60_000;

/** Start `handset watch --server` on a free port and wait until `/` is served with a built page. */
export async function startWatch(handset: string, root: string): Promise<Watching> {
  const start = performance.now();
  const child = spawn(process.execPath, [handset, 'watch', '--server', '--port', '0'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const url = await urlOf(child);
    for (;;) {
      const response = await fetch(url);
      const text = await response.text();
      if (response.status === 200 && text.includes('<title>')) break;
      if (performance.now() - start > START_MS) throw new Error('handset watch serves no page');
      await sleep(2);
    }
    return { url, firstServe: performance.now() - start, end: () => end(child) };
  } catch (error) {
    await end(child);
    throw error;
  }
}

function urlOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => reject(new Error(`handset watch did not start:\n${text}`)), START_MS);
    child.stdout?.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-4096);
      const url = /at (http:\S+)/.exec(text)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    });
    child.once('exit', () => reject(new Error(`handset watch ended:\n${text}`)));
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await gone;
}
