import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { runCli } from '../../src/cli/program.ts';
import { PACKAGE } from './project.ts';

export interface CliResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const BIN = path.join(PACKAGE, 'bin/handset.js');

export interface CliOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly bin?: string;
}

/** Run a command line to its end in this process: the same code as `handset`, without the start of another Node. */
export async function handset(
  cwd: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CliResult> {
  let stdout = '';
  let stderr = '';
  const status = await runCli(args, {
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    env: { ...process.env, FORCE_COLOR: undefined, NO_COLOR: '1', ...env },
    cwd,
    signal: new AbortController().signal,
    version: '0.0.0-test',
  });
  return { status, stdout, stderr };
}

export interface RunningCli {
  readonly child: ChildProcess;
  readonly ended: Promise<CliResult>;
  /** Resolves with the match when what was written to stdout since `after` matches; rejects when the command ends first. */
  output(pattern: RegExp, after?: number): Promise<RegExpExecArray>;
  readonly written: string;
  stop(): Promise<CliResult>;
}

/** Start `handset` and leave it running; it is ended with the test. */
export function startHandset(
  cwd: string,
  args: readonly string[],
  { env = {}, bin = BIN }: CliOptions = {},
): RunningCli {
  const child = spawn(process.execPath, [bin, ...args], { cwd, env: { ...process.env, NO_COLOR: '1', ...env } });
  let stdout = '';
  let stderr = '';
  const waiters = new Set<() => void>();
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    for (const wake of waiters) wake();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = new Promise<CliResult>((resolve) => {
    child.on('close', (status) => resolve({ status, stdout, stderr }));
  });
  const stop = (): Promise<CliResult> => {
    child.kill('SIGTERM');
    return ended;
  };
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) await stop();
  });
  return {
    child,
    ended,
    get written() {
      return stdout;
    },
    output(pattern, after = 0) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(stdout.slice(after));
          if (!match) return;
          waiters.delete(look);
          resolve(match);
        };
        waiters.add(look);
        look();
        void ended.then(() => reject(new Error(`handset ended before it wrote ${pattern}:\n${stdout}\n${stderr}`)));
      });
    },
    stop,
  };
}
