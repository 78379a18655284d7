import { type Clock, sleep } from '../../clock.ts';
import { isAlive, type ProcessIdentity, signalProcess } from '../../processes/index.ts';
import { ProvidedSandbox, type SandboxParts } from '../provided-sandbox.ts';
import { property } from '../records/json-path.ts';
import type { SandboxExit } from '../sandbox.ts';
import { type DockerApi, DockerError } from './docker-api.ts';
import { execInContainer } from './docker-exec.ts';
import { endOfContainer, followContainer } from './docker-log.ts';
import type { DockerRecord } from './docker-record.ts';

interface Container {
  api: DockerApi;
  /** The engine's id of it. */
  container: string;
  /** Its first process, as the host numbers it. */
  init: ProcessIdentity | undefined;
  clock: Clock;
  /** Nobody listens any more once this aborts; the sandbox is the next server's. */
  closing: AbortSignal;
}

export interface DockerSandboxOptions extends Container, Pick<SandboxParts, 'readUsage' | 'diskBytes' | 'remove'> {
  record: DockerRecord;
}

const DAEMON_RETRY_MS = 500;
const UNKNOWN: SandboxExit = { exitCode: undefined, outOfMemory: false };

/** A container of the Docker daemon; the daemon keeps its log and knows how it ended, through restarts of the server. */
export function dockerSandbox({
  record,
  readUsage,
  diskBytes,
  remove,
  ...options
}: DockerSandboxOptions): ProvidedSandbox {
  const { api, container } = options;
  const { user, cwd } = record;
  return new ProvidedSandbox(record, {
    ended: watch(options),
    address: (port) => ({ host: record.ip, port }),
    exec: (command, execOptions) => execInContainer(api, { container, user, cwd }, command, execOptions),
    readUsage,
    ...(diskBytes && { diskBytes }),
    endOfLog: (maxBytes) => endOfContainer(api, container, maxBytes),
    logs: (logOptions) => followContainer(api, container, logOptions),
    terminate: async () => {
      await signalContainer(options, 'SIGTERM');
      return true;
    },
    kill: () => signalContainer(options, 'SIGKILL'),
    remove,
  });
}

async function signalContainer({ api, container, init }: Container, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  await api.json('POST', `/containers/${container}/kill`, { query: { signal } }).catch(async (error: unknown) => {
    const gone = error instanceof DockerError && [404, 409].includes(error.status);
    // With the daemon away its containers go on; the first process takes the others with it.
    if (!gone && !(init && (await signalProcess(init, signal)))) throw error;
  });
}

/** Waits at the daemon, and through its restarts, until the container has ended. */
async function watch({ api, container, closing, clock, init }: Container): Promise<SandboxExit> {
  for (;;) {
    try {
      await api.json('POST', `/containers/${container}/wait`, { timeoutMs: 0, signal: closing });
      return readExit(await api.json('GET', `/containers/${container}/json`));
    } catch (error) {
      if (closing.aborted) return new Promise(() => undefined);
      if (error instanceof DockerError && error.status === 404) return UNKNOWN;
      if (init && !(await isAlive(init)) && !(await answers(api))) return UNKNOWN;
      await sleep(clock, DAEMON_RETRY_MS, closing).catch(() => undefined);
    }
  }
}

function answers(api: DockerApi): Promise<boolean> {
  return api.json('GET', '/_ping', { timeoutMs: DAEMON_RETRY_MS }).then(
    () => true,
    () => false,
  );
}

function readExit(inspected: unknown): SandboxExit {
  const state = property(inspected, 'State');
  const code = property(state, 'ExitCode');
  if (property(state, 'Running') === true || typeof code !== 'number') return UNKNOWN;
  return { exitCode: code, outOfMemory: property(state, 'OOMKilled') === true };
}
