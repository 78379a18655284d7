import type { ProbeReport, Sandbox, SandboxProvider, SandboxSpec } from './sandbox.ts';

/** A provider that knows which of its sandboxes are alive, those being made included: by that, what was handed to one ends with it. */
export class LiveSandboxes implements SandboxProvider {
  readonly name: SandboxProvider['name'];
  readonly #inner: SandboxProvider;
  readonly #live = new Map<string, Promise<Sandbox | undefined>>();

  constructor(inner: SandboxProvider) {
    this.name = inner.name;
    this.#inner = inner;
  }

  /** Whether a sandbox of this id runs or is being made. */
  has(id: string): boolean {
    return this.#live.has(id);
  }

  /** The sandbox of this id, once it is made; undefined when there is none, or when it could not be made. Never rejects. */
  async find(id: string): Promise<Sandbox | undefined> {
    return this.#live.get(id);
  }

  async create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    // An id that is taken stays with whoever has it: the provider refuses this one.
    if (this.#live.has(spec.id)) return this.#inner.create(spec, signal);
    const making = this.#inner.create(spec, signal);
    const entry = making.catch(() => undefined);
    this.#live.set(spec.id, entry);
    try {
      const sandbox = await making;
      void sandbox.exited.then(() => this.#forget(spec.id, entry));
      return sandbox;
    } catch (error) {
      this.#forget(spec.id, entry);
      throw error;
    }
  }

  async *reattach(): AsyncIterable<Sandbox> {
    for await (const sandbox of this.#inner.reattach()) {
      const entry = Promise.resolve(sandbox);
      this.#live.set(sandbox.id, entry);
      void sandbox.exited.then(() => this.#forget(sandbox.id, entry));
      yield sandbox;
    }
  }

  probe(): Promise<ProbeReport> {
    return this.#inner.probe();
  }

  sweep(keep?: ReadonlySet<string>): Promise<string[]> {
    return this.#inner.sweep(keep);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #forget(id: string, entry: Promise<Sandbox | undefined>): void {
    if (this.#live.get(id) === entry) this.#live.delete(id);
  }
}
