import { startFailureReason } from './command-failure.ts';
import type { CreateQueue } from './create-queue.ts';
import type { ProvidedSandbox } from './provided-sandbox.ts';
import { SandboxError, type SandboxSpec } from './sandbox.ts';
import { checkSpec } from './spec-check.ts';

/** The sandboxes that a provider has in this process, those being made included: an id is made once, and only so many at a time. */
export class SandboxTable {
  readonly #queue: CreateQueue;
  readonly #closing: AbortSignal;
  readonly #known = new Map<string, ProvidedSandbox | 'making'>();

  /** Nothing is made any more after `closing` aborts. */
  constructor(queue: CreateQueue, closing: AbortSignal) {
    this.#queue = queue;
    this.#closing = closing;
  }

  /** Whether some sandbox is being made. */
  get making(): boolean {
    return [...this.#known.values()].includes('making');
  }

  has(id: string): boolean {
    return this.#known.has(id);
  }

  set(sandbox: ProvidedSandbox): void {
    this.#known.set(sandbox.id, sandbox);
  }

  delete(id: string): void {
    this.#known.delete(id);
  }

  /** Checks `spec`, waits for its turn and makes the sandbox. What `make` rejects with becomes a SandboxError. */
  async create<Engine>(
    spec: SandboxSpec,
    signal: AbortSignal | undefined,
    open: () => Promise<Engine>,
    make: (engine: Engine) => Promise<ProvidedSandbox>,
  ): Promise<ProvidedSandbox> {
    await checkSpec(spec);
    return this.#queue.run(async () => {
      if (this.#closing.aborted) throw new SandboxError('unavailable', 'The sandbox provider is closed.');
      const engine = await open();
      if (this.has(spec.id)) throw new SandboxError('refused', `A sandbox with the id ${spec.id} exists already.`);
      this.#known.set(spec.id, 'making');
      try {
        const sandbox = await make(engine);
        this.set(sandbox);
        return sandbox;
      } catch (error) {
        this.delete(spec.id);
        throw asSandboxError(error);
      }
    }, signal);
  }

  /**
   * Ends those that are neither to be kept nor being made, the usual way, so that whoever waits for their exit learns of it. Returns
   * their ids, and all that stay.
   */
  async sweep(keep: ReadonlySet<string>): Promise<{ ended: string[]; kept: Set<string>; making: boolean }> {
    const making = [...this.#known].filter(([, sandbox]) => sandbox === 'making').map(([id]) => id);
    const kept = new Set([...keep, ...making]);
    const ended: string[] = [];
    for (const [id, sandbox] of this.#known) {
      if (sandbox === 'making' || kept.has(id)) continue;
      await sandbox.stop();
      ended.push(id);
    }
    return { ended, kept, making: making.length > 0 };
  }
}

export function asSandboxError(error: unknown): SandboxError {
  if (error instanceof SandboxError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new SandboxError(startFailureReason(message), `The sandbox could not be made: ${message}`, { cause: error });
}
