import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../clock.ts';
import { followLog, logFiles, tailLog } from './log-file.ts';
import { type ProcessIdentity, signalProcess } from './process-table.ts';
import {
  type ExecHandle,
  type ExecOptions,
  type Sandbox,
  SandboxError,
  type SandboxExit,
  type Usage,
} from './sandbox.ts';

/** What differs between providers whose sandboxes have an owner process. */
export interface SandboxParts {
  address(port: number): { host: string; port: number };
  exec(command: string[], options: ExecOptions | undefined, serial: string): Promise<ExecHandle>;
  readUsage(): Promise<Usage>;
  /** Whether the kernel killed any of its processes for their use of memory. */
  ranOutOfMemory(): Promise<boolean>;
  /** Ends every process now. */
  kill(): Promise<void>;
  /** Removes everything that the sandbox has besides processes. */
  remove(): Promise<void>;
}

export interface OwnedSandboxOptions {
  id: string;
  labels: Record<string, string>;
  isolation: string;
  dir: string;
  clock: Clock;
  /** The sandbox's first process, as the host numbers it. */
  init: ProcessIdentity | undefined;
  /** Resolves when the owner has ended; the sandbox has then, too. */
  ownerEnded: Promise<void>;
  parts: SandboxParts;
}

const SIGKILL_STATUS = 137;
const DEFAULT_TAIL = 4096;
const END_MS = 15_000;

/** A running (or ended, not yet removed) sandbox: its owner process keeps the log and writes down the exit status in `dir`. */
export class OwnedSandbox implements Sandbox {
  readonly id: string;
  readonly labels: Record<string, string>;
  readonly isolation: string;
  readonly exited: Promise<SandboxExit>;
  #options: OwnedSandboxOptions;
  #execs = 0;
  #ended = false;
  #removed = false;
  #lastUsage: Usage = { cpuSeconds: 0, memoryHighWaterBytes: 0 };
  #stopping: Promise<void> | undefined;

  constructor(options: OwnedSandboxOptions) {
    this.id = options.id;
    this.labels = options.labels;
    this.isolation = options.isolation;
    this.#options = options;
    this.exited = options.ownerEnded.then(() => this.#readExit());
  }

  address(port: number): { host: string; port: number } {
    return this.#options.parts.address(port);
  }

  async exec(command: string[], options?: ExecOptions): Promise<ExecHandle> {
    if (command.length === 0) throw new SandboxError('refused', 'There is no command to run.');
    if (this.#ended || this.#stopping) throw new SandboxError('failed', `The sandbox ${this.id} has ended.`);
    this.#execs++;
    return this.#options.parts.exec(command, options, `${process.pid}-${this.#execs}`);
  }

  /** After the sandbox's end: what it had used by then. */
  async usage(): Promise<Usage> {
    if (!this.#removed) await this.#sample();
    return this.#lastUsage;
  }

  tail(maxBytes = DEFAULT_TAIL): Promise<string> {
    return tailLog(logFiles(this.#options.dir), maxBytes);
  }

  logs(options: { follow: boolean; fromStart: boolean; signal?: AbortSignal }): AsyncIterable<string> {
    return followLog(logFiles(this.#options.dir), { ...options, clock: this.#options.clock, ended: () => this.#ended });
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
    const { init, parts } = this.#options;
    if (!this.#ended && init && graceMs > 0 && (await signalProcess(init, 'SIGTERM'))) {
      await this.#exitWithin(graceMs).catch(() => undefined);
    }
    if (!this.#ended) {
      await this.#sample();
      await parts.kill();
      await this.#exitWithin(END_MS);
    }
    await parts.remove();
    this.#removed = true;
  }

  async #exitWithin(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`the processes of ${this.id} did not end within ${ms} ms`)), ms);
    });
    await Promise.race([this.exited, late]).finally(() => clearTimeout(timer));
  }

  async #readExit(): Promise<SandboxExit> {
    const { dir, parts } = this.#options;
    const text = await readFile(join(dir, 'exit'), 'utf8').catch(() => '');
    const exitCode = /^\d+\n$/.test(text) ? Number(text) : undefined;
    // An owner that was killed leaves the sandbox without anyone to read its output: it ends with it.
    if (exitCode === undefined) await parts.kill().catch(() => undefined);
    await this.#sample();
    const killed = exitCode === SIGKILL_STATUS || exitCode === undefined;
    const outOfMemory = killed && (await parts.ranOutOfMemory().catch(() => false));
    this.#ended = true;
    return { exitCode, outOfMemory };
  }

  /** Both numbers only grow; what is being removed reads as zero. */
  async #sample(): Promise<void> {
    const usage = await this.#options.parts.readUsage().catch(() => this.#lastUsage);
    this.#lastUsage = {
      cpuSeconds: Math.max(usage.cpuSeconds, this.#lastUsage.cpuSeconds),
      memoryHighWaterBytes: Math.max(usage.memoryHighWaterBytes, this.#lastUsage.memoryHighWaterBytes),
    };
  }
}
