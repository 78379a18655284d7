import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { javaScriptHeap, type Resident, residentMemory, webAssemblyMemory } from './process-memory.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const IDLE_MS = 30_000;
/** What would change how memory is allotted; the supervisor says that itself. */
const ALLOCATION = /^(MALLOC_|GLIBC_TUNABLES$|NODE_OPTIONS$)/;

/** Memory of one start, in bytes. */
export interface StartFootprint {
  ready: { server: Resident; supervisor: Resident };
  /** Half a minute later, without a request. The peak is that of all of the time. */
  idle: { server: Resident; supervisor: Resident };
  /** At rest, in the server: live objects and the whole heap of its main thread, and the database's own memory. */
  heap: { used: number; total: number };
  database: number;
}

/** Starts the platform as `npm run platform` does and ends it again. `cache` is what a checkout keeps of earlier starts. */
export async function measureStart(data: string, cache: string, args: readonly string[]): Promise<StartFootprint> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !ALLOCATION.test(name)));
  const program = ['--inspect-port=0', join(ROOT, 'scripts/platform.mjs'), '--port', '0', '--data', data, '--json'];
  const child = spawn(process.execPath, [...program, ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...env, AGENTPLATFORM_CACHE: cache },
  });
  const ended = once(child, 'exit');
  const inspector = Promise.withResolvers<string>();
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
    const [, url] = /^Debugger listening on (ws:\S+)$/m.exec(log) ?? [];
    if (url !== undefined) inspector.resolve(url);
  });
  try {
    await readyLine(child.stdout, () => log);
    const server = Number(await readFile(join(data, 'server.pid'), 'utf8'));
    const both = async () => ({
      server: await residentMemory(server),
      supervisor: await residentMemory(child.pid ?? 0),
    });
    const ready = await both();
    await sleep(IDLE_MS);
    const idle = await both();
    const database = await webAssemblyMemory(server);
    // Last, as the inspector takes memory of its own.
    process.kill(server, 'SIGUSR1');
    return { ready, idle, database, heap: await javaScriptHeap(await inspector.promise) };
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

async function readyLine(stdout: NodeJS.ReadableStream, log: () => string): Promise<void> {
  for await (const line of createInterface({ input: stdout })) {
    if (!line.startsWith('{"ready":true')) continue;
    stdout.resume();
    return;
  }
  throw new Error(`the platform did not start:\n${log()}`);
}
