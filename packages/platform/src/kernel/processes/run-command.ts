import { spawn } from 'node:child_process';

export interface CommandResult {
  /** Exit status; 128 + signal when a signal ended it. */
  code: number;
  stdout: string;
  stderr: string;
}

export interface CommandOptions {
  input?: string;
  timeoutMs?: number;
  env?: Record<string, string>;
  cwd?: string;
}

export type RunCommand = (argv: [string, ...string[]], options?: CommandOptions) => Promise<CommandResult>;

/** The environment of every helper process: nothing of the server's own leaks into it. */
export const HELPER_ENV: Record<string, string> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
};

const MAX_OUTPUT = 4 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 15_000;

/**
 * Runs a short-lived system command and collects its output (at most 4 MiB per stream, the rest is dropped). Rejects when it
 * cannot be started or does not end within `timeoutMs` (it is killed then); a non-zero exit status is a result.
 */
export const runCommand: RunCommand = (argv, options = {}) =>
  new Promise((resolve, reject) => {
    const [file, ...args] = argv;
    const child = spawn(file, args, {
      env: options.env ?? HELPER_ENV,
      cwd: options.cwd,
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
      // What it has started may hold them for ever.
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, timeoutMs);
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    // A command that ends without reading its input closes the pipe; its exit status tells the story.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.input);
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (timedOut) reject(new Error(`${file} did not end within ${timeoutMs} ms`));
      else resolve({ code: exitStatus(code, signal), stdout: stdout(), stderr: stderr() });
    });
  });

const signalNumbers: Partial<Record<NodeJS.Signals, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
};

/** The shell's convention for how a child process ended: its exit status, or 128 + signal. */
export function exitStatus(code: number | null, signal: NodeJS.Signals | null): number {
  if (code !== null) return code;
  return 128 + (signal ? (signalNumbers[signal] ?? 0) : 0);
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream?.on('data', (chunk: Buffer) => {
    if (size < MAX_OUTPUT) chunks.push(chunk.subarray(0, MAX_OUTPUT - size));
    size += chunk.length;
  });
  return () => Buffer.concat(chunks).toString('utf8');
}
