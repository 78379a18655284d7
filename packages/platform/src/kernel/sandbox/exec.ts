import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startExec } from './exec-handle.ts';
import { isGone } from './is-gone.ts';
import { mergeEnv, type OciProcess } from './oci-spec.ts';
import { HELPER_ENV } from './run-command.ts';
import type { RuntimeCli } from './runtime-cli.ts';
import { type ExecHandle, type ExecOptions, NEVER_RAN } from './sandbox.ts';

export interface ExecTarget {
  id: string;
  dir: string;
  runtime: RuntimeCli;
  /** The sandbox's own process, whose user, limits and environment an additional one shares. */
  process: OciProcess;
  /** Whether the runtime numbers and signals processes by itself. */
  signalsInside: boolean;
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
  const { id, dir, runtime, process, serial, signalsInside } = target;
  const { tty, signal } = options;
  const processFile = join(dir, `exec-${serial}.json`);
  const pidFile = join(dir, `exec-${serial}.pid`);
  const base = tty ? ['TERM=xterm-256color', ...process.env] : process.env;
  const description: OciProcess & { consoleSize?: { width: number; height: number } } = {
    ...process,
    args: command,
    env: mergeEnv(base, options.env ?? {}),
    cwd: options.cwd ?? process.cwd,
    terminal: tty !== undefined,
    ...(tty ? { consoleSize: { width: tty.columns, height: tty.rows } } : {}),
  };
  // In a file and not in arguments: those every account of the host can read.
  await writeFile(processFile, JSON.stringify(description), { mode: 0o600 });
  return startExec(
    {
      argv: runtime.execArgs({ id, processFile, pidFile, inside: signalsInside }),
      cwd: '/',
      env: HELPER_ENV,
      kill: (child, wanted) =>
        void deliver(
          pidFile,
          (pid) => (signalsInside ? runtime.kill(id, pid, wanted) : signalGroup(pid, wanted)),
          () => child.exitCode !== null || child.signalCode !== null,
        ),
      // The runtime's own failure looks like the command's, but for the number that it writes down of every command that it has started.
      statusOf: async (status) => (status !== 0 && (await isGone(pidFile)) ? NEVER_RAN : status),
      cleanUp: () => Promise.all([rm(processFile, { force: true }), rm(pidFile, { force: true })]),
    },
    { tty, signal },
  );
}

const PID_WAIT_MS = 5000;

/**
 * Signals the command with the children it has started: the runtime makes each command the leader of a session of its own, and
 * so of a process group. By the number that the runtime wrote down; waits for it to be written when the call was just made.
 */
async function deliver(
  pidFile: string,
  send: (pid: number) => Promise<void> | void,
  ended: () => boolean,
): Promise<void> {
  for (let waited = 0; !ended() && waited < PID_WAIT_MS; waited += 10) {
    const pid = Number(await readFile(pidFile, 'utf8').catch(() => ''));
    if (pid > 1) return send(pid);
    await sleep(10);
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}
