import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Config } from '../../packages/platform/src/config.ts';
import { requireFreePort } from '../../packages/platform/src/port-owner.ts';
import { withProgress } from '../bootstrap/progress.mjs';
import { type ReadyLine, readReadyLine } from './ready-line.ts';

const readyWithinMs = 180_000;

/** A platform in a process of its own, ended with the scope that holds it. */
export interface PlatformProcess extends AsyncDisposable {
  ready: ReadyLine;
  logFile: string;
  /** Waits until `signal` says stop (0) or the platform ends by itself (1, with the end of its log). */
  serve(signal: AbortSignal): Promise<number>;
}

/** Starts `scripts/platform.mjs` and waits until it is ready. Rejects with what its log says when it does not get so far. */
export async function startPlatform(input: {
  root: string;
  config: Config;
  args: string[];
  signal: AbortSignal;
}): Promise<PlatformProcess> {
  const { root, config, args, signal } = input;
  await requireFreePort(config.host, config.port);
  mkdirSync(config.data, { recursive: true, mode: 0o700 });
  const logFile = join(config.data, 'platform.log');
  const log = openSync(logFile, 'w', 0o600);
  const json = args.includes('--json') ? [] : ['--json'];
  const child = spawn(process.execPath, [join(root, 'scripts', 'platform.mjs'), ...args, ...json], {
    // A group of its own: Ctrl-C in the terminal reaches this process only, which then ends that one in order.
    detached: true,
    stdio: ['ignore', 'pipe', log, 'ipc'],
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const stop = (): Promise<void> => endProcess(child, ended, (config.shutdownGraceSeconds + 20) * 1000);
  try {
    const ready = await withProgress('Starting the platform', () => firstLine(child, ended, logFile, signal));
    return {
      ready,
      logFile,
      serve: async (until) => {
        await Promise.race([ended, aborted(until)]);
        if (until.aborted) return 0;
        process.stderr.write(`\nThe platform ended by itself.${endOf(logFile)}\n`);
        return 1;
      },
      [Symbol.asyncDispose]: () => withProgress('Stopping the platform and its sandboxes', stop),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function firstLine(
  child: ChildProcess,
  ended: Promise<void>,
  logFile: string,
  signal: AbortSignal,
): Promise<ReadyLine> {
  if (!child.stdout) throw new Error('The platform has no stdout.');
  const lines = createInterface({ input: child.stdout, signal });
  const ready = new Promise<ReadyLine>((resolve, reject) => {
    lines.on('line', (line) => {
      try {
        const found = readReadyLine(line);
        if (found) resolve(found);
      } catch (error) {
        reject(error);
      }
    });
  });
  const failed = ended.then(() => {
    throw new Error(`The platform did not start.${endOf(logFile)}`);
  });
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), readyWithinMs);
  try {
    return await Promise.race([
      ready,
      failed,
      rejectOn(signal),
      rejectOn(late.signal, `no answer in ${readyWithinMs / 1000} s; its log is ${logFile}`),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/** SIGTERM, and SIGKILL when that has no effect within `graceMs`. */
async function endProcess(child: ChildProcess, ended: Promise<void>, graceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  child.kill('SIGTERM');
  const { pid } = child;
  // The whole group: the server, and who would start it again.
  const timer = setTimeout(() => process.kill(-pid, 'SIGKILL'), graceMs);
  await ended;
  clearTimeout(timer);
}

/** The last lines of a log, for a message. */
function endOf(logFile: string): string {
  const lines = readFileSync(logFile, 'utf8').trim().split('\n').slice(-30);
  return lines.join('') === ''
    ? ''
    : ` The end of its log (${logFile}):\n${lines.map((line) => `  ${line}`).join('\n')}`;
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

const rejectOn = (signal: AbortSignal, message = 'stopped'): Promise<never> =>
  aborted(signal).then(() => {
    throw new Error(message);
  });
