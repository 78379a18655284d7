import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError } from '../cli-error.ts';
import { localPython } from '../package/python.ts';
import { stageCode } from '../package/stage-code.ts';
import type { Project } from '../project/project.ts';

export interface LocalAgent {
  /** Resolves with the exit status, or the signal's name, when the process ends by itself or by `stop`. */
  exited: Promise<number | string>;
  /** Ends it: SIGTERM, and SIGKILL after three seconds. */
  stop(): Promise<void>;
}

export interface StartOptions {
  port: number;
  signal: AbortSignal;
}

/** Starts the agent on this machine, from what would be deployed. Rejects with a `CliError` when it cannot be built. */
export async function startAgent(project: Project, { port, signal }: StartOptions): Promise<LocalAgent> {
  const { command, args, cwd } = await commandOf(project, signal);
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, PYTHONUNBUFFERED: '1', ...project.file.environment, PORT: String(port) },
    // Its output is not a result of ours: all of it goes to stderr.
    stdio: ['ignore', 2, 2],
  });
  const exited = once(child, 'exit').then(
    ([code, name]: (number | string | null)[]) => code ?? name ?? 'an unknown end',
    (error: Error) => error.message,
  );
  return { exited, stop: () => stop(child, exited) };
}

async function commandOf(
  project: Project,
  signal: AbortSignal,
): Promise<{ command: string; args: string[]; cwd: string }> {
  const { folder, file } = project;
  if (file.language === 'containerfile') {
    throw new CliError(
      'usage',
      'agentcore dev runs TypeScript, JavaScript and Python; an image runs on the platform.',
      'Deploy it with: agentcore deploy',
    );
  }
  if (file.language === 'python') {
    const python = await localPython(folder);
    if (!python) throw new CliError('failure', 'There is no Python here.', 'Install python3.');
    return { command: python.command, args: [file.entrypoint ?? ''], cwd: folder };
  }
  const stage = join(folder, '.agentcore', 'dev');
  await rm(stage, { recursive: true, force: true });
  await mkdir(stage, { recursive: true });
  const { entryPoint } = await stageCode(project, stage, signal);
  return { command: process.execPath, args: ['--enable-source-maps', entryPoint], cwd: stage };
}

async function stop(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 3000);
  await exited;
  clearTimeout(timer);
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
