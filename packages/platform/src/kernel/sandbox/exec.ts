import { spawn } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { mergeEnv, type OciProcess } from './oci-spec.ts';
import { exitStatus, HELPER_ENV } from './run-command.ts';
import type { RuntimeCli } from './runtime-cli.ts';
import { type ExecHandle, type ExecOptions, SandboxError } from './sandbox.ts';

const TTY_SCRIPT = fileURLToPath(new URL('./exec-tty.pl', import.meta.url));

export interface ExecTarget {
  id: string;
  dir: string;
  runtime: RuntimeCli;
  /** The sandbox's own process, whose user, limits and environment an additional one shares. */
  process: OciProcess;
  /** Unique per call; names the files of this call. */
  serial: string;
}

/**
 * Starts an additional process in a running sandbox through the runtime. Rejects with SandboxError `failed` only when the
 * runtime cannot be started; a command that does not exist ends with a status other than 0 and says why on stderr.
 */
export async function execInSandbox(
  target: ExecTarget,
  command: string[],
  options: ExecOptions = {},
): Promise<ExecHandle> {
  options.signal?.throwIfAborted();
  const processFile = join(target.dir, `exec-${target.serial}.json`);
  const pidFile = join(target.dir, `exec-${target.serial}.pid`);
  const description: OciProcess & { consoleSize?: { width: number; height: number } } = {
    ...target.process,
    args: command,
    env: mergeEnv(target.process.env, options.env ?? {}),
    cwd: options.cwd ?? target.process.cwd,
    terminal: options.tty !== undefined,
  };
  if (options.tty) {
    description.consoleSize = { width: options.tty.columns, height: options.tty.rows };
    description.env = mergeEnv(['TERM=xterm-256color', ...description.env], options.env ?? {});
  }
  // In a file and not in arguments: those every account of the host can read.
  await writeFile(processFile, JSON.stringify(description), { mode: 0o600 });
  const runtime = target.runtime.execArgs({ id: target.id, processFile, pidFile });
  const { tty } = options;
  const [file, ...args]: [string, ...string[]] = tty
    ? ['perl', TTY_SCRIPT, String(tty.columns), String(tty.rows), ...runtime]
    : runtime;
  const child = spawn(file, args, {
    cwd: '/',
    env: HELPER_ENV,
    stdio: tty ? ['pipe', 'pipe', 'pipe', 'pipe'] : ['pipe', 'pipe', 'pipe'],
    // A signal for the server's process group is not for the sandbox.
    detached: true,
  });
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) throw new SandboxError('failed', 'The runtime was started without pipes.');
  const control = child.stdio[3];
  // What a caller writes after the end is lost, as with any process; it is no error of the server.
  stdin.on('error', () => undefined);
  if (control) control.on('error', () => undefined);

  const kill = (signal: NodeJS.Signals = 'SIGKILL'): void =>
    void deliver(pidFile, signal, () => child.exitCode !== null || child.signalCode !== null);
  const onAbort = (): void => kill('SIGKILL');
  options.signal?.addEventListener('abort', onAbort, { once: true });

  const started = new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) =>
      reject(new SandboxError('failed', `${file} could not be started: ${error.message}`, { cause: error })),
    );
  });
  const exited = new Promise<number>((resolve) => {
    child.once('exit', (code, signal) => {
      options.signal?.removeEventListener('abort', onAbort);
      void Promise.all([rm(processFile, { force: true }), rm(pidFile, { force: true })]).finally(() =>
        resolve(exitStatus(code, signal)),
      );
    });
  });
  await started;
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

const PID_WAIT_MS = 5000;

/** Signals the process itself, by the number that the runtime wrote down; waits for it to be written when the call was just made. */
async function deliver(pidFile: string, signal: NodeJS.Signals, ended: () => boolean): Promise<void> {
  for (let waited = 0; !ended() && waited < PID_WAIT_MS; waited += 10) {
    const pid = Number(await readFile(pidFile, 'utf8').catch(() => ''));
    if (pid > 1) {
      try {
        process.kill(pid, signal);
      } catch {
        // It has ended meanwhile.
      }
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
