import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { run } from '../src/run.ts';
import type { Terminal } from '../src/terminal/terminal.ts';

const bin = join(import.meta.dirname, '../bin/agentcore.mjs');
/** Begins a line for a shell that runs the command line tool. */
export const commandLine = `${process.execPath} ${bin}`;

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  cwd: string;
  env?: Record<string, string>;
  stdin?: string;
}

/** A folder of a test's own, with a home folder in which no platform is known. */
export async function workFolder(): Promise<{ folder: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'agentcore-test-'));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** What a user has after the first call: a home folder of its own would be without it at each. */
const XDG_CACHE_HOME = join(import.meta.dirname, '../../../.cache');

/** Starts the command line tool as a user would, in an environment that knows of no cloud. */
export function start(args: string[], { cwd, env = {} }: RunOptions): ChildProcess & { ended: Promise<Ended> } {
  const child = spawn(process.execPath, [bin, ...args], {
    cwd,
    env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, HOME: cwd, XDG_CACHE_HOME, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  const ended = once(child, 'close').then(([code]) => saidOnce({ code, stdout, stderr }));
  return Object.assign(child, { ended });
}

/** Runs it to its end. */
export async function agentcore(args: string[], options: RunOptions): Promise<Ended> {
  const child = start(args, options);
  child.stdin?.end(options.stdin ?? '');
  return child.ended;
}

/** The same without a process of its own, for tables of many cases: a process takes half a second to start. */
export async function agentcoreInside(args: string[], { cwd, env = {}, stdin = '' }: RunOptions): Promise<Ended> {
  const [input, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  input.end(stdin);
  const texts = Promise.all([text(stdout), text(stderr)]);
  // Streams without a terminal behind them; no case asks for more than reading and writing.
  const streams = { stdin: input, stdout, stderr } as unknown as Pick<Terminal, 'stdin' | 'stdout' | 'stderr'>;
  const code = await run({ ...streams, env, cwd, home: cwd, signal: new AbortController().signal }, args);
  stdout.end();
  stderr.end();
  const [out, err] = await texts;
  return saidOnce({ code, stdout: out, stderr: err });
}

/** Throws where an error is told twice, but for the stack that --verbose asks for: whoever calls the tool in a test holds it to that. */
export function saidOnce(ended: Ended): Ended {
  const said = ended.stderr.replace(/^\w*Error: .*?\n {4}at .*/ms, '');
  const [, error] = /^error: (.+)$/m.exec(said) ?? [];
  if (error !== undefined && said.split(error).length > 2) throw new Error(`an error is told twice:\n${ended.stderr}`);
  return ended;
}
