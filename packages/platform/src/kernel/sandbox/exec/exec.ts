import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HELPER_ENV } from '../../processes/index.ts';
import { isGone } from '../host/is-gone.ts';
import { mergeEnv, type OciProcess } from '../oci/oci-spec.ts';
import type { RuntimeCli } from '../oci/runtime-cli.ts';
import { limited } from '../process/host-process.ts';
import { type ExecHandle, type ExecOptions, NEVER_RAN } from '../sandbox.ts';
import { startExec } from './exec-handle.ts';
import { endTree, processesWith, signalGroupOf } from './process-group.ts';

export interface ExecTarget {
  id: string;
  dir: string;
  runtime: RuntimeCli;
  /** Path of the sandbox's control group. */
  cgroup: string;
  /** The sandbox's own process, whose user, limits and environment an additional one shares. */
  process: OciProcess;
  /** Whether the runtime numbers and signals processes by itself. */
  signalsInside: boolean;
  /** Files that it may hold open, unless `process` says so. */
  openFiles: number | undefined;
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
  const logFile = join(dir, `exec-${serial}.log`);
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
  const argv = runtime.execArgs({ id, processFile, pidFile, ...(signalsInside && { inside: { logFile } }) });
  return startExec(
    {
      argv: target.openFiles === undefined ? argv : limited(target.openFiles, argv),
      cwd: '/',
      env: HELPER_ENV,
      kill: (child, wanted) =>
        deliver(
          pidFile,
          (pid) => signalCommand(target, pid, wanted),
          () => child.exitCode !== null || child.signalCode !== null,
        ),
      // The runtime's own failure looks like the command's, but the runtime writes a process id only for a command that it has started.
      statusOf: async (status) => (status !== 0 && (await isGone(pidFile)) ? NEVER_RAN : status),
      ...(signalsInside && { lastWords: () => readFailure(logFile) }),
      cleanUp: () => Promise.all([processFile, pidFile, logFile].map((file) => rm(file, { force: true }))),
    },
    { tty, signal },
  );
}

/** Why gVisor's command line has failed, by its log; empty when it has not. */
async function readFailure(logFile: string): Promise<string> {
  const why = /FATAL ERROR: (.+)$/m.exec(await readFile(logFile, 'utf8').catch(() => ''))?.[1];
  return why === undefined ? '' : `${why}\n`;
}

/** A machine may be busy; without the number only what the runtime has started itself could be ended. */
const PID_WAIT_MS = 30_000;

/**
 * Signals the command with the children it has started: the runtime makes each command the leader of a session of its own, and
 * so of a process group. By the number that the runtime wrote down; waits for it to be written when the call was just made.
 */
async function deliver(pidFile: string, send: (pid: number) => Promise<void>, hasEnded: () => boolean): Promise<void> {
  for (const deadline = performance.now() + PID_WAIT_MS; performance.now() < deadline; ) {
    const over = hasEnded();
    const pid = Number(await readFile(pidFile, 'utf8').catch(() => ''));
    if (pid > 1) return send(pid);
    if (over) return;
    await sleep(10);
  }
}

function signalCommand(target: ExecTarget, pid: number, signal: NodeJS.Signals): Promise<void> {
  return target.signalsInside ? signalInside(target, pid, signal) : signalGroupOf(target.cgroup, pid, signal);
}

/** By a command of its own, for such a runtime signals single processes only; where the image has no shell, that has to do. */
async function signalInside(
  { id, dir, runtime, process, serial }: ExecTarget,
  pid: number,
  signal: NodeJS.Signals,
): Promise<void> {
  const processFile = join(dir, `exec-${serial}-signal.json`);
  const args = ['/bin/sh', '-c', `kill -s ${signal.replace(/^SIG/, '')} -- -${pid}`];
  await writeFile(processFile, JSON.stringify({ ...process, args }), { mode: 0o600 });
  try {
    if (await runtime.exec(id, processFile)) return;
    await runtime.kill(id, pid, signal);
  } finally {
    await rm(processFile, { force: true });
  }
}

/** Ends what runs in a sandbox for clients of an earlier server, which was killed: they have left with it. */
export async function endLeftCommands(target: Omit<ExecTarget, 'serial'>): Promise<void> {
  const { dir } = target;
  for (const file of await readdir(dir)) {
    const serial = /^exec-(.+)\.pid$/.exec(file)?.[1];
    const pid = serial === undefined ? 0 : Number(await readFile(join(dir, file), 'utf8').catch(() => ''));
    if (serial !== undefined && pid > 1) await signalCommand({ ...target, serial }, pid, 'SIGKILL');
    if (file.startsWith('exec-')) await rm(join(dir, file), { force: true });
  }
}

/** Ends the processes on the host that stand for such commands, by the file that each was given, in a directory below `sandboxes`. */
export async function endLeftHelpers(sandboxes: string): Promise<void> {
  const isHelper = (args: string[]): boolean => {
    const file = args[args.indexOf('--process') + 1] ?? '';
    return dirname(dirname(file)) === sandboxes && basename(file).startsWith('exec-');
  };
  for (const pid of await processesWith(isHelper)) await endTree(pid);
}
