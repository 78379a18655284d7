import { type ChildProcess, spawn } from 'node:child_process';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { exitStatus } from './run-command.ts';
import { type ExecHandle, type ExecOptions, SandboxError } from './sandbox.ts';

const TTY_SCRIPT = fileURLToPath(new URL('./exec-tty.pl', import.meta.url));

export interface ExecProcess {
  argv: [string, ...string[]];
  cwd: string;
  env: Record<string, string>;
  /** Delivers a signal to the command itself, which need not be the process that was started. */
  kill(child: ChildProcess, signal: NodeJS.Signals): void;
  /** The command's status, when the process that was started for it ended with `status`; that by default. */
  statusOf?(status: number): Promise<number>;
  /** Removes what the call needed. */
  cleanUp?(): Promise<unknown>;
}

/**
 * Starts a process on the host and makes an ExecHandle of it, on a pseudo-terminal when `tty` is given. An abort of `signal`
 * kills it. Rejects with SandboxError `failed` when it cannot be started.
 */
export async function startExec(
  target: ExecProcess,
  { tty, signal }: Pick<ExecOptions, 'tty' | 'signal'>,
): Promise<ExecHandle> {
  const [file, ...args] = tty
    ? ['perl', TTY_SCRIPT, String(tty.columns), String(tty.rows), ...target.argv]
    : target.argv;
  const child = spawn(file, args, {
    cwd: target.cwd,
    env: target.env,
    stdio: tty ? ['pipe', 'pipe', 'pipe', 'pipe'] : ['pipe', 'pipe', 'pipe'],
    // A signal for the server's process group is not for the sandbox.
    detached: true,
  });
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) throw new SandboxError('failed', `${file} was started without pipes.`);
  const control = child.stdio[3];
  // What a caller writes after the end is lost, as with any process; it is no error of the server.
  stdin.on('error', () => undefined);
  if (control) control.on('error', () => undefined);

  const kill = (wanted: NodeJS.Signals = 'SIGKILL'): void => {
    if (child.exitCode === null && child.signalCode === null) target.kill(child, wanted);
  };
  const onAbort = (): void => kill('SIGKILL');
  signal?.addEventListener('abort', onAbort, { once: true });
  const exited = new Promise<number>((resolve) => {
    child.once('exit', (code, by) => {
      signal?.removeEventListener('abort', onAbort);
      const status = exitStatus(code, by);
      const known = Promise.resolve(target.statusOf?.(status) ?? status);
      resolve(known.finally(() => target.cleanUp?.()));
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) =>
      reject(new SandboxError('failed', `${file} could not be started: ${error.message}`, { cause: error })),
    );
  });
  return {
    stdin,
    stdout,
    stderr,
    resize(columns, rows) {
      if (control instanceof Writable && columns > 0 && rows > 0)
        control.write(`${Math.floor(columns)} ${Math.floor(rows)}\n`);
    },
    kill,
    exited,
  };
}
