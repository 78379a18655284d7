import { setTimeout as sleep } from 'node:timers/promises';
import { type LogPart, lastLines, lastText } from './exec/log-file.ts';
import {
  type ExecHandle,
  type ExecOptions,
  type LogLine,
  type Sandbox,
  SandboxError,
  type SandboxExit,
  type Usage,
} from './sandbox.ts';

/** What differs between providers. */
export interface SandboxParts {
  /** Resolves with how the sandbox ended, once it has. */
  ended: Promise<SandboxExit>;
  address(port: number): { host: string; port: number };
  /** `serial` is no other command's of this sandbox. */
  exec(command: string[], options: ExecOptions | undefined, serial: string): Promise<ExecHandle>;
  readUsage(): Promise<Usage>;
  /** Absent where its disk is not its own. */
  diskBytes?(): Promise<number>;
  /** The end of what its first process wrote: more than `maxBytes`, or all. */
  endOfLog(maxBytes: number): Promise<LogPart[]>;
  logs(options: LogOptions, ended: () => boolean): AsyncIterable<LogLine>;
  copied?: Sandbox['copied'];
  snapshot?: Sandbox['snapshot'];
  /** Asks the first process to end; false when it does not run. */
  terminate(): Promise<boolean>;
  /** Ends every process now. */
  kill(): Promise<void>;
  /** Removes everything that the sandbox has besides processes. */
  remove(): Promise<void>;
}

export interface SandboxIdentity {
  id: string;
  labels: Record<string, string>;
  isolation: string;
}

type LogOptions = Parameters<Sandbox['logs']>[0];

const DEFAULT_TAIL = 4096;
const END_MS = 15_000;

/** A running (or ended, not yet removed) sandbox of any provider: it ends once, and what it used never shrinks. */
export class ProvidedSandbox implements Sandbox {
  readonly id: string;
  readonly labels: Record<string, string>;
  readonly isolation: string;
  readonly exited: Promise<SandboxExit>;
  readonly copied?: Sandbox['copied'];
  readonly snapshot?: Sandbox['snapshot'];
  #parts: SandboxParts;
  #execs = 0;
  /** Those that are being started included. */
  #commands = new Set<Promise<ExecHandle>>();
  /** For the next server. */
  #left = false;
  #ended = false;
  #removed = false;
  #lastUsage: Usage = { cpuSeconds: 0, memoryHighWaterBytes: 0 };
  #stopping: Promise<void> | undefined;
  #leftBehind = false;

  constructor({ id, labels, isolation }: SandboxIdentity, parts: SandboxParts) {
    this.id = id;
    this.labels = labels;
    this.isolation = isolation;
    this.#parts = parts;
    this.copied = parts.copied;
    this.snapshot = parts.snapshot;
    this.exited = parts.ended.then(async (exit) => {
      await this.#sample();
      this.#ended = true;
      for (const command of this.#commands) void killCommand(command);
      return exit;
    });
  }

  /** Whether it was to be removed, and could not be. */
  get leftBehind(): boolean {
    return this.#leftBehind && !this.#removed;
  }

  address(port: number): { host: string; port: number } {
    return this.#parts.address(port);
  }

  async exec(command: string[], options?: ExecOptions): Promise<ExecHandle> {
    if (command.length === 0) throw new SandboxError('refused', 'There is no command to run.');
    if (this.#ended || this.#stopping) throw new SandboxError('failed', `The sandbox ${this.id} has ended.`);
    if (this.#left) throw new SandboxError('failed', `The sandbox ${this.id} is the next server's.`);
    this.#execs++;
    const starting = this.#parts.exec(command, options, `${process.pid}-${this.#execs}`);
    this.#commands.add(starting);
    const forget = (): boolean => this.#commands.delete(starting);
    void starting.then(({ exited }) => exited.then(forget), forget);
    return starting;
  }

  /** Ends what `exec` has started and nobody has ended, and what stands for it on the host, and starts nothing more; the sandbox itself goes on. */
  async endCommands(): Promise<void> {
    this.#left = true;
    const ended = Promise.all([...this.#commands].map(killCommand));
    await Promise.race([ended, sleep(END_MS, undefined, { ref: false })]);
  }

  /** After the sandbox's end: what it had used by then. */
  async usage(): Promise<Usage> {
    if (!this.#removed) await this.#sample();
    return this.#lastUsage;
  }

  async diskBytes(): Promise<number> {
    return this.#parts.diskBytes?.().catch(() => 0) ?? 0;
  }

  async tail(maxBytes = DEFAULT_TAIL): Promise<string> {
    return lastText(await this.#parts.endOfLog(maxBytes), maxBytes);
  }

  async lastLines(maxBytes: number): Promise<LogLine[]> {
    return lastLines(await this.#parts.endOfLog(maxBytes), maxBytes);
  }

  logs(options: LogOptions): AsyncIterable<LogLine> {
    return this.#parts.logs(options, () => this.#ended);
  }

  stop(options: { graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#stop(options.graceMs ?? 0).catch((error: unknown) => {
      // A later call tries again what could not be removed.
      this.#stopping = undefined;
      this.#leftBehind = true;
      throw error;
    });
    return this.#stopping;
  }

  async #stop(graceMs: number): Promise<void> {
    if (this.#removed) return;
    if (!this.#ended && graceMs > 0 && (await this.#parts.terminate())) {
      await this.#exitWithin(graceMs).catch(() => undefined);
    }
    if (!this.#ended) {
      await this.#sample();
      await this.#parts.kill();
      // Nobody saw it end: what is left of it is removed all the same, and whoever keeps it from ending with it.
      await this.#exitWithin(END_MS).catch(() => undefined);
    }
    await this.#parts.remove();
    await this.#exitWithin(END_MS);
    this.#removed = true;
  }

  async #exitWithin(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`the processes of ${this.id} did not end within ${ms} ms`)), ms);
    });
    await Promise.race([this.exited, late]).finally(() => clearTimeout(timer));
  }

  /** Both numbers only grow; what is being removed reads as zero. */
  async #sample(): Promise<void> {
    const usage = await this.#parts.readUsage().catch(() => this.#lastUsage);
    this.#lastUsage = {
      cpuSeconds: Math.max(usage.cpuSeconds, this.#lastUsage.cpuSeconds),
      memoryHighWaterBytes: Math.max(usage.memoryHighWaterBytes, this.#lastUsage.memoryHighWaterBytes),
    };
  }
}

/** Also one that has yet to start: nobody else would once it has. Resolves with its end. */
async function killCommand(starting: Promise<ExecHandle>): Promise<void> {
  const command = await starting.catch(() => undefined);
  command?.kill();
  await command?.exited;
}
