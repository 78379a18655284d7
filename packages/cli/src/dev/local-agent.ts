import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError } from '../cli-error.ts';
import { localPython } from '../package/python.ts';
import { pythonPackages } from '../package/python-packages.ts';
import { stageCode } from '../package/stage-code.ts';
import type { Project } from '../project/project.ts';
import { stateFolder } from '../project/state-folder.ts';

export interface LocalAgent {
  /** Resolves with the exit status, or the signal's name, when the process ends by itself or by `stop`. */
  exited: Promise<number | string>;
  /** Ends it: SIGTERM, and SIGKILL after three seconds. */
  stop(): Promise<void>;
}

export interface StartOptions {
  port: number;
  signal: AbortSignal;
  /** Gets what there is to say while packages are installed. */
  say(text: string): void;
}

/** Starts the agent on this machine, from what would be deployed. Rejects with a `CliError` when it cannot be built. */
export async function startAgent(project: Project, { port, ...options }: StartOptions): Promise<LocalAgent> {
  const { command, args, cwd, env } = await commandOf(project, options);
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, PYTHONUNBUFFERED: '1', ...env, ...project.file.environment, PORT: String(port) },
    // Its output is not a result of ours: all of it goes to stderr.
    stdio: ['ignore', 2, 2],
    // A group of its own: the terminal's Ctrl-C reaches this process only, which then ends that one in order.
    detached: true,
  });
  const kill = (): void => signalGroup(child, 'SIGKILL');
  process.once('exit', kill);
  child.once('close', () => process.off('exit', kill));
  const exited = once(child, 'exit').then(
    ([code, name]: (number | string | null)[]) => code ?? name ?? 'an unknown end',
    (error: Error) => error.message,
  );
  return { exited, stop: () => stop(child, exited) };
}

async function commandOf(
  project: Project,
  { signal, say }: Omit<StartOptions, 'port'>,
): Promise<{ command: string; args: string[]; cwd: string; env?: Record<string, string> }> {
  const { folder, file } = project;
  if (file.language === 'containerfile') {
    throw new CliError(
      'usage',
      'agentcore dev runs TypeScript, JavaScript and Python. An image runs only on the platform.',
      'Deploy it with: agentcore deploy',
    );
  }
  if (file.language === 'python') {
    const python = await localPython(folder);
    if (!python) throw new CliError('failure', 'There is no Python here.', 'Install python3.');
    const packages = await pythonPackages({ folder, version: python.version, signal, say });
    // Before what the user has there, as in the sandbox.
    const path = [packages, process.env.PYTHONPATH].filter(Boolean).join(delimiter);
    return { command: python.command, args: [file.entrypoint ?? ''], cwd: folder, env: { PYTHONPATH: path } };
  }
  const stage = join(await stateFolder(folder), 'dev');
  await rm(stage, { recursive: true, force: true });
  await mkdir(stage, { recursive: true });
  const { entryPoint } = await stageCode(project, stage, { signal });
  return { command: process.execPath, args: ['--enable-source-maps', entryPoint], cwd: stage };
}

async function stop(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  signalGroup(child, 'SIGTERM');
  const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), 3000);
  await exited;
  clearTimeout(timer);
}

/** Reaches what the agent has started too. */
function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // Nothing of it is left.
  }
}

const startLimitMs = 30_000;

/** Resolves with true once `/ping` answers; with false when the agent ends first, `givenUp` settles, or thirty seconds pass. */
export async function untilAnswering(agent: LocalAgent, port: number, givenUp: Promise<unknown>): Promise<boolean> {
  let waiting = true;
  const stopWaiting = (): void => {
    waiting = false;
  };
  void agent.exited.then(stopWaiting);
  void givenUp.then(stopWaiting);
  const end = performance.now() + startLimitMs;
  for (let wait = 30; waiting && performance.now() < end; wait = Math.min(wait * 1.5, 500)) {
    const answers = await fetch(`http://127.0.0.1:${port}/ping`, { signal: AbortSignal.timeout(2000) }).then(
      async (response) => {
        await response.body?.cancel();
        return response.ok;
      },
      () => false,
    );
    if (answers) return waiting;
    await sleep(wait);
  }
  return false;
}

/** Rejects with a `CliError` when something listens on that port already. */
export async function checkPortFree(port: number): Promise<void> {
  const server = createServer();
  try {
    server.listen(port, '0.0.0.0');
    await once(server, 'listening');
  } catch (error) {
    throw new CliError(
      'failure',
      `Port ${port} cannot be used: something else listens there.`,
      `Take another one: agentcore dev --port ${port + 1}`,
      {
        cause: error,
      },
    );
  } finally {
    server.close();
  }
}
