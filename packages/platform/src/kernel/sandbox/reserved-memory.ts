import { ProviderLayer } from './provider-layer.ts';
import { type Sandbox, SandboxError, type SandboxProvider, type SandboxSpec } from './sandbox.ts';

/** With it a sandbox keeps its reservation over a restart of the server. */
const LABEL = 'reserved-memory-bytes';

/** A provider that promises no more memory than there is: a sandbox that asks for a part of it is made only while that part is free. */
export class ReservedMemory extends ProviderLayer {
  readonly #totalBytes: number;
  #reserved = 0;

  /** `totalBytes`: what may be promised to all sandboxes together. */
  constructor(inner: SandboxProvider, totalBytes: number) {
    super(inner);
    this.#totalBytes = totalBytes;
  }

  /** Whether half of it is free: sandboxes that nobody asked for yet take no more. */
  get roomToPool(): boolean {
    return this.#reserved * 2 <= this.#totalBytes;
  }

  /** As the provider's own; rejects with SandboxError `capacity` when too much is promised already. */
  override async create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    const bytes = spec.limits.reservedMemoryBytes ?? 0;
    if (bytes === 0) return super.create(spec, signal);
    if (this.#reserved + bytes > this.#totalBytes)
      throw new SandboxError(
        'capacity',
        `No memory is left to reserve: the sandbox needs ${bytes} bytes of its own, but only ${this.#totalBytes - this.#reserved} of ${this.#totalBytes} are free. End sessions, or ask for a smaller minimumMemoryInMiB.`,
      );
    const release = this.#take(bytes);
    try {
      const sandbox = await super.create({ ...spec, labels: { ...spec.labels, [LABEL]: String(bytes) } }, signal);
      void sandbox.exited.then(release);
      return sandbox;
    } catch (error) {
      release();
      throw error;
    }
  }

  override async *reattach(): AsyncIterable<Sandbox> {
    for await (const sandbox of super.reattach()) {
      const bytes = Number(sandbox.labels[LABEL] ?? 0);
      if (bytes > 0) void sandbox.exited.then(this.#take(bytes));
      yield sandbox;
    }
  }

  /** Gives what gives it back. */
  #take(bytes: number): () => void {
    this.#reserved += bytes;
    return () => {
      this.#reserved -= bytes;
    };
  }
}
