import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../clock.ts';
import { type CgroupLayout, readOomKills, readUsage } from './cgroups.ts';
import { execInSandbox } from './exec.ts';
import { followLog, logFiles, tailLog } from './log-file.ts';
import type { OciProcess } from './oci-spec.ts';
import { type ProcessIdentity, signalProcess } from './process-table.ts';
import type { RuntimeCli } from './runtime-cli.ts';
import {
  type ExecHandle,
  type ExecOptions,
  type Sandbox,
  SandboxError,
  type SandboxExit,
  type Usage,
} from './sandbox.ts';
import type { SandboxRecord } from './sandbox-record.ts';

export interface OciSandboxOptions {
  record: SandboxRecord;
  dir: string;
  cgroup: string;
  layout: CgroupLayout;
  runtime: RuntimeCli;
  clock: Clock;
  process: OciProcess;
  /** The sandbox's first process, as the host numbers it. */
  init: ProcessIdentity | undefined;
  /** Resolves when the owner has ended; the sandbox has then, too. */
  ownerEnded: Promise<void>;
  /** Removes everything that the sandbox has outside its own processes. */
  remove(): Promise<void>;
}

const SIGKILL_STATUS = 137;
const DEFAULT_TAIL = 4096;
const END_MS = 15_000;

/** A running (or ended, not yet removed) sandbox of the `oci` provider. */
export class OciSandbox implements Sandbox {
  readonly id: string;
  readonly labels: Record<string, string>;
  readonly isolation: string;
  readonly exited: Promise<SandboxExit>;
  #options: OciSandboxOptions;
  #execs = 0;
  #ended = false;
  #removed = false;
  #lastUsage: Usage = { cpuSeconds: 0, memoryHighWaterBytes: 0 };
  #stopping: Promise<void> | undefined;

  constructor(options: OciSandboxOptions) {
    this.id = options.record.id;
    this.labels = options.record.labels;
    this.isolation = options.record.isolation;
    this.#options = options;
    this.exited = options.ownerEnded.then(() => this.#readExit());
  }

  address(port: number): { host: string; port: number } {
    return { host: this.#options.record.ip, port };
  }

  async exec(command: string[], options?: ExecOptions): Promise<ExecHandle> {
    if (command.length === 0) throw new SandboxError('refused', 'There is no command to run.');
    if (this.#ended || this.#stopping) throw new SandboxError('failed', `The sandbox ${this.id} has ended.`);
    const { dir, runtime, process } = this.#options;
    this.#execs++;
    return execInSandbox(
      { id: this.id, dir, runtime, process, serial: `${globalThis.process.pid}-${this.#execs}` },
      command,
      options,
    );
  }

  /** After the sandbox's end: what it had used by then. */
  async usage(): Promise<Usage> {
    if (!this.#removed) this.#note(await readUsage(this.#options.layout, this.#options.cgroup));
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
    const { init, record, clock } = this.#options;
    if (!this.#ended && init && graceMs > 0 && (await signalProcess(init, 'SIGTERM'))) {
      await Promise.race([this.exited, new Promise<void>((resolve) => void clock.after(graceMs, resolve))]);
    }
    if (!this.#ended) {
      await this.usage();
      // The first process takes every other of its namespace with it, and the owner sees it end.
      if (!init || !(await signalProcess(init, 'SIGKILL'))) await signalProcess(record.owner, 'SIGKILL');
      await this.#exitWithin(END_MS);
    }
    await this.#options.remove();
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
    const { dir, init, layout, cgroup } = this.#options;
    const text = await readFile(join(dir, 'exit'), 'utf8').catch(() => '');
    const exitCode = /^\d+\n$/.test(text) ? Number(text) : undefined;
    // An owner that was killed leaves the sandbox without anyone to read its output: it ends with it.
    if (exitCode === undefined && init) await signalProcess(init, 'SIGKILL');
    this.#note(await readUsage(layout, cgroup));
    const killed = exitCode === SIGKILL_STATUS || exitCode === undefined;
    const outOfMemory = killed && (await readOomKills(layout, cgroup)) > 0;
    this.#ended = true;
    return { exitCode, outOfMemory };
  }

  /** Both numbers only grow; a group that is being removed reads as zero. */
  #note(usage: Usage): void {
    this.#lastUsage = {
      cpuSeconds: Math.max(usage.cpuSeconds, this.#lastUsage.cpuSeconds),
      memoryHighWaterBytes: Math.max(usage.memoryHighWaterBytes, this.#lastUsage.memoryHighWaterBytes),
    };
  }
}
