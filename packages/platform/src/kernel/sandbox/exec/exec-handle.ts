import { type ChildProcess, spawn } from 'node:child_process';
import { PassThrough, type Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { exitStatus } from '../../processes/index.ts';
import { type ExecHandle, type ExecOptions, SandboxError } from '../sandbox.ts';
import { endTree } from './process-group.ts';

const TTY_SCRIPT = fileURLToPath(new URL('./exec-tty.pl', import.meta.url));

/** How long the process on the host may outlive the command that was killed, in ms: it hands on the last output and the status. */
const FAREWELL_MS = 1000;
/** How long a slow reader then has for what has been written, in ms. */
const DRAIN_MS = 5000;

export interface ExecProcess {
  argv: [string, ...string[]];
  cwd: string;
  env: Record<string, string>;
  /** Delivers a signal to the command itself, which need not be the process that was started, with its process group. Bounded. */
  kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void>;
  /** The command's status, when the process that was started for it ended with `status`; that by default. */
  statusOf?(status: number): Promise<number>;
  /** What the process that was started could not say of its failure, once it has ended; said on stderr if there was nothing else. */
  lastWords?(): Promise<string>;
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

  let ending: Promise<void> | undefined;
  const kill = (wanted: NodeJS.Signals = 'SIGKILL'): void => {
    if (wanted === 'SIGKILL') ending ??= end(target, child, closed);
    else if (!hasEnded(child)) void target.kill(child, wanted).catch(() => undefined);
  };
  const onAbort = (): void => kill('SIGKILL');
  signal?.addEventListener('abort', onAbort, { once: true });
  const exited = new Promise<number>((resolve) => {
    child.once('exit', (code, by) => {
      const status = exitStatus(code, by);
      resolve(target.statusOf?.(status) ?? status);
    });
  });
  const words = exited.then(() => target.lastWords?.() ?? '').catch(() => '');
  // Later than its end where others hold its output.
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  void Promise.all([words, closed]).then(async () => {
    signal?.removeEventListener('abort', onAbort);
    // What was started for the command may have ended before it: who kills it still needs the rest.
    await ending;
    await target.cleanUp?.().catch(() => undefined);
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) =>
      reject(new SandboxError('failed', `${file} could not be started: ${error.message}`, { cause: error })),
    );
  });
  // It may have been aborted before anybody listened.
  if (signal?.aborted) onAbort();
  return {
    stdin,
    stdout: handedOn(stdout, Promise.resolve('')),
    stderr: handedOn(stderr, words),
    resize(columns, rows) {
      if (control instanceof Writable && columns > 0 && rows > 0)
        control.write(`${Math.floor(columns)} ${Math.floor(rows)}\n`);
    },
    kill,
    exited,
  };
}

/**
 * Ends the command, and with it the process on the host: by itself as a rule, which takes whoever holds its output and nobody who reads
 * it to prevent. Then it is killed with all below it, and the output ends here.
 */
async function end(target: ExecProcess, child: ChildProcess, closed: Promise<void>): Promise<void> {
  await target.kill(child, 'SIGKILL').catch(() => undefined);
  await Promise.race([closed, sleep(FAREWELL_MS)]);
  if (!hasEnded(child) && child.pid !== undefined) await endTree(child.pid).catch(() => undefined);
  await Promise.race([closed, sleep(DRAIN_MS, undefined, { ref: false })]);
  for (const stream of child.stdio) stream?.destroy();
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/**
 * The same output, or `words` where it ends without any. What its reader gives up goes nowhere: with nobody at the other end a runtime would
 * end as it writes, perhaps before it has said which process the command is, and nobody could end that any more.
 */
function handedOn(output: Readable, words: Promise<string>): Readable {
  const to = new PassThrough().on('error', () => undefined);
  let silent = true;
  output.once('data', () => {
    silent = false;
  });
  output.on('error', () => undefined).pipe(to, { end: false });
  output.once('close', () => void words.then((text) => to.end(silent ? text : '')));
  to.once('close', () => output.resume());
  return to;
}
