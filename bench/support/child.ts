import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';

/** A program that the benchmark started and ends. */
export interface OwnedChild {
  pid: number;
  end(): Promise<void>;
}

/** Starts a program in the foreground; its stderr is ours. Rejects when it cannot be run. */
export async function startChild(file: string, args: string[]): Promise<OwnedChild> {
  const child: ChildProcess = spawn(file, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  await once(child, 'spawn');
  return {
    pid: child.pid ?? 0,
    async end() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      const giveUp = setTimeout(() => child.kill('SIGKILL'), 5000);
      await gone;
      clearTimeout(giveUp);
    },
  };
}

const runFile = promisify(execFile);

/** Runs a program to its end and gives what it wrote to stdout. Rejects when it fails or takes longer. */
export async function runChild(file: string, args: string[], timeoutMs: number): Promise<string> {
  return (await runFile(file, args, { timeout: timeoutMs, maxBuffer: 1 << 20 })).stdout;
}
