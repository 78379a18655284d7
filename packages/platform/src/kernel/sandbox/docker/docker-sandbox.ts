import { type Clock, sleep } from '../../clock.ts';
import { property } from '../json-path.ts';
import { isAlive, type ProcessIdentity, signalProcess } from '../process-table.ts';
import {
  type ExecHandle,
  type ExecOptions,
  type Sandbox,
  SandboxError,
  type SandboxExit,
  type Usage,
} from '../sandbox.ts';
import { type DockerApi, DockerError } from './docker-api.ts';
import { execInContainer } from './docker-exec.ts';
import { followContainer, tailContainer } from './docker-log.ts';
import type { DockerRecord } from './docker-record.ts';

export interface DockerSandboxOptions {
  api: DockerApi;
  record: DockerRecord;
  /** The engine's id of it. */
  container: string;
  /** Its first process, as the host numbers it. */
  init: ProcessIdentity | undefined;
  clock: Clock;
  /** Nobody listens any more once this aborts; the sandbox is the next server's. */
  closing: AbortSignal;
  readUsage(): Promise<Usage>;
  /** Removes everything that the sandbox has besides processes. */
  remove(): Promise<void>;
}

const DEFAULT_TAIL = 4096;
const END_MS = 15_000;
const DAEMON_RETRY_MS = 500;
const UNKNOWN: SandboxExit = { exitCode: undefined, outOfMemory: false };

/** A container of the Docker daemon; the daemon keeps its log and knows how it ended, through restarts of the server. */
export class DockerSandbox implements Sandbox {
  readonly id: string;
  readonly labels: Record<string, string>;
  readonly isolation: string;
  readonly exited: Promise<SandboxExit>;
  #options: DockerSandboxOptions;
  #ended = false;
  #removed = false;
  #lastUsage: Usage = { cpuSeconds: 0, memoryHighWaterBytes: 0 };
  #stopping: Promise<void> | undefined;

  constructor(options: DockerSandboxOptions) {
    const { id, labels, isolation } = options.record;
    this.id = id;
    this.labels = labels;
    this.isolation = isolation;
    this.#options = options;
    this.exited = this.#watch().then(async (exit) => {
      await this.#sample();
      this.#ended = true;
      return exit;
    });
  }

  address(port: number): { host: string; port: number } {
    return { host: this.#options.record.ip, port };
  }

  async exec(command: string[], options?: ExecOptions): Promise<ExecHandle> {
    const { api, container, record } = this.#options;
    if (command.length === 0) throw new SandboxError('refused', 'There is no command to run.');
    if (this.#ended || this.#stopping) throw new SandboxError('failed', `The sandbox ${this.id} has ended.`);
    return execInContainer(api, { container, user: record.user, cwd: record.cwd }, command, options);
  }

  /** After the sandbox's end: what it had used by then. */
  async usage(): Promise<Usage> {
    if (!this.#removed) await this.#sample();
    return this.#lastUsage;
  }

  tail(maxBytes = DEFAULT_TAIL): Promise<string> {
    return tailContainer(this.#options.api, this.#options.container, maxBytes);
  }

  logs(options: { follow: boolean; fromStart: boolean; signal?: AbortSignal }): AsyncIterable<string> {
    return followContainer(this.#options.api, this.#options.container, options);
  }

  stop(options: { graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#stop(options.graceMs ?? 0).catch((error: unknown) => {
      // A later call tries again what could not be removed.
      this.#stopping = undefined;
      throw error;
    });
    return this.#stopping;
  }

  async #stop(graceMs: number): Promise<void> {
    if (this.#removed) return;
    if (!this.#ended && graceMs > 0) {
      await this.#signal('SIGTERM');
      await this.#exitWithin(graceMs).catch(() => undefined);
    }
    if (!this.#ended) {
      await this.#sample();
      await this.#signal('SIGKILL');
      await this.#exitWithin(END_MS);
    }
    await this.#options.remove();
    this.#removed = true;
  }

  async #signal(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { api, container, init } = this.#options;
    await api.json('POST', `/containers/${container}/kill`, { query: { signal } }).catch(async (error: unknown) => {
      const gone = error instanceof DockerError && [404, 409].includes(error.status);
      // With the daemon away its containers go on; the first process takes the others with it.
      if (!gone && !(init && (await signalProcess(init, signal)))) throw error;
    });
  }

  async #exitWithin(ms: number): Promise<void> {
    const late = sleep(this.#options.clock, ms).then(() => {
      throw new Error(`the processes of ${this.id} did not end within ${ms} ms`);
    });
    await Promise.race([this.exited, late]);
  }

  /** Waits at the daemon, and through its restarts, until the container has ended. */
  async #watch(): Promise<SandboxExit> {
    const { api, container, closing, clock, init } = this.#options;
    for (;;) {
      try {
        await api.json('POST', `/containers/${container}/wait`, { timeoutMs: 0, signal: closing });
        return readExit(await api.json('GET', `/containers/${container}/json`));
      } catch (error) {
        if (closing.aborted) return new Promise(() => undefined);
        if (error instanceof DockerError && error.status === 404) return UNKNOWN;
        if (init && !(await isAlive(init)) && !(await this.#answers())) return UNKNOWN;
        await sleep(clock, DAEMON_RETRY_MS, closing).catch(() => undefined);
      }
    }
  }

  #answers(): Promise<boolean> {
    return this.#options.api.json('GET', '/_ping', { timeoutMs: DAEMON_RETRY_MS }).then(
      () => true,
      () => false,
    );
  }

  /** Both numbers only grow; what is being removed reads as zero. */
  async #sample(): Promise<void> {
    const usage = await this.#options.readUsage().catch(() => this.#lastUsage);
    this.#lastUsage = {
      cpuSeconds: Math.max(usage.cpuSeconds, this.#lastUsage.cpuSeconds),
      memoryHighWaterBytes: Math.max(usage.memoryHighWaterBytes, this.#lastUsage.memoryHighWaterBytes),
    };
  }
}

function readExit(inspected: unknown): SandboxExit {
  const state = property(inspected, 'State');
  const code = property(state, 'ExitCode');
  if (property(state, 'Running') === true || typeof code !== 'number') return UNKNOWN;
  return { exitCode: code, outOfMemory: property(state, 'OOMKilled') === true };
}
