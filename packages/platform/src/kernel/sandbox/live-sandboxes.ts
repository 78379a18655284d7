import { ProviderLayer } from './provider-layer.ts';
import type { Sandbox, SandboxSpec } from './sandbox.ts';

/** A provider that knows which of its sandboxes are alive, those being made included: by that, what was handed to one ends with it. */
export class LiveSandboxes extends ProviderLayer {
  readonly #live = new Map<string, Promise<Sandbox | undefined>>();

  /** Whether a sandbox of this id runs or is being made. */
  has(id: string): boolean {
    return this.#live.has(id);
  }

  /** The sandbox of this id, once it is made; undefined when it does not exist or could not be made. Never rejects. */
  async find(id: string): Promise<Sandbox | undefined> {
    return this.#live.get(id);
  }

  override async create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    // A taken id stays with its sandbox: the provider refuses this one.
    if (this.#live.has(spec.id)) return super.create(spec, signal);
    const making = super.create(spec, signal);
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

  override async *reattach(): AsyncIterable<Sandbox> {
    for await (const sandbox of super.reattach()) {
      const entry = Promise.resolve(sandbox);
      this.#live.set(sandbox.id, entry);
      void sandbox.exited.then(() => this.#forget(sandbox.id, entry));
      yield sandbox;
    }
  }

  #forget(id: string, entry: Promise<Sandbox | undefined>): void {
    if (this.#live.get(id) === entry) this.#live.delete(id);
  }
}
