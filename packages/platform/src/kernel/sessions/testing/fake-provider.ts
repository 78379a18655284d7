import { PassThrough } from 'node:stream';
import type {
  LogLine,
  ProbeReport,
  Sandbox,
  SandboxExit,
  SandboxProvider,
  SandboxSpec,
  Usage,
} from '../../sandbox/index.ts';

/** A sandbox that exists only in memory, for tests of what happens around sandboxes. */
export class FakeSandbox implements Sandbox {
  readonly id: string;
  readonly labels: Record<string, string>;
  readonly isolation = 'fake';
  readonly exited: Promise<SandboxExit>;
  stopped = false;
  used: Usage = { cpuSeconds: 1, memoryHighWaterBytes: 1024 };
  /** Bytes. */
  held = 0;
  stopGate: Promise<void> = Promise.resolve();
  exit: (exit: SandboxExit) => void = () => undefined;

  constructor(spec: Pick<SandboxSpec, 'id' | 'labels'>) {
    this.id = spec.id;
    this.labels = spec.labels;
    this.exited = new Promise((resolve) => {
      this.exit = resolve;
    });
  }

  address(port: number): { host: string; port: number } {
    return { host: '127.0.0.1', port };
  }

  async exec(): Promise<never> {
    throw new Error('a fake sandbox runs no command');
  }

  async usage(): Promise<Usage> {
    return this.used;
  }

  async diskBytes(): Promise<number> {
    return this.held;
  }

  async tail(): Promise<string> {
    return 'last words';
  }

  async lastLines(): Promise<LogLine[]> {
    return [{ line: 'last words' }];
  }

  async *logs(): AsyncIterable<LogLine> {
    yield* new PassThrough().end();
  }

  async stop(): Promise<void> {
    await this.stopGate;
    this.stopped = true;
    this.exit({ exitCode: 137, outOfMemory: false });
  }
}

export class FakeProvider implements SandboxProvider {
  readonly name = 'process';
  readonly created: FakeSandbox[] = [];
  /** Made and neither stopped nor ended. */
  get running(): FakeSandbox[] {
    return this.created.filter((sandbox) => !sandbox.stopped);
  }
  survivors: FakeSandbox[] = [];
  swept: (ReadonlySet<string> | undefined)[] = [];
  sweepFailsWith: Error | undefined;
  createGate: Promise<void> = Promise.resolve();
  failWith: Error | undefined;

  async probe(): Promise<ProbeReport> {
    return { provider: 'fake', usable: true, isolation: 'fake', missing: [] };
  }

  async stage(): Promise<void> {}

  async create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    await this.createGate;
    signal?.throwIfAborted();
    if (this.failWith) throw this.failWith;
    const sandbox = new FakeSandbox(spec);
    this.created.push(sandbox);
    return sandbox;
  }

  async *reattach(): AsyncIterable<Sandbox> {
    yield* this.survivors;
  }

  async sweep(keep?: ReadonlySet<string>): Promise<string[]> {
    this.swept.push(keep);
    if (this.sweepFailsWith) throw this.sweepFailsWith;
    return [];
  }

  async close(): Promise<void> {}
}
