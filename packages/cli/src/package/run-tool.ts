import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { CliError } from '../cli-error.ts';

export interface ToolOptions {
  cwd?: string;
  env?: Record<string, string | undefined>;
  signal?: AbortSignal;
  /** Written to its standard input. */
  input?: string;
  /** Gets each line that it prints, as it comes. */
  onLine?: (line: string) => void;
}

/**
 * Runs a program to its end and resolves with what it wrote to stdout. Rejects with a `CliError` that holds its last lines
 * when it fails, and with code ENOENT when there is no such program.
 */
export async function runTool(command: string, args: string[], options: ToolOptions = {}): Promise<string> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    signal: options.signal,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let tail = '';
  const take = (text: string): void => {
    tail = (tail + text).slice(-4000);
    for (const line of text.split('\n')) if (line.trim()) options.onLine?.(line.trim());
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    take(text);
  });
  child.stderr.setEncoding('utf8').on('data', take);
  // A program that ends without reading its input breaks the pipe; its exit status says more.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  const [code, signal]: (number | string | null)[] = await once(child, 'close');
  if (code === 0) return stdout;
  const last = tail
    .trim()
    .split('\n')
    .slice(-12)
    .map((line) => `  ${line}`)
    .join('\n');
  throw new CliError('failure', `${command} ${args[0] ?? ''} ended with ${code ?? signal}:\n${last}`);
}
