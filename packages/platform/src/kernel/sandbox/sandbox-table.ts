import { startFailureReason } from '../processes/index.ts';
import type { CreateQueue } from './create-queue.ts';
import { type HostStage, type StagedSpec, stageSpec } from './host-stage.ts';
import type { ProvidedSandbox } from './provided-sandbox.ts';
import { SandboxError, type SandboxSpec } from './sandbox.ts';

interface Swept {
  ended: string[];
  kept: Set<string>;
  making: boolean;
  errors: unknown[];
}

/** The sandboxes that a provider has in this process, those being made included: an id is made once, and only so many at a time. */
export class SandboxTable {
  readonly #stage: HostStage;
  readonly #queue: CreateQueue;
  readonly #closing: AbortSignal;
  readonly #known = new Map<string, ProvidedSandbox | 'making'>();

  /** Nothing is made any more after `closing` aborts. */
  constructor(stage: HostStage, queue: CreateQueue, closing: AbortSignal) {
    this.#stage = stage;
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

  /** Checks `spec`, finds on this machine what it names, waits for its turn and makes the sandbox. What `make` rejects with becomes a SandboxError. */
  async create<Engine>(
    spec: SandboxSpec,
    signal: AbortSignal | undefined,
    open: () => Promise<Engine>,
    make: (engine: Engine, staged: StagedSpec) => Promise<ProvidedSandbox>,
  ): Promise<ProvidedSandbox> {
    const staged = await stageSpec(this.#stage, spec, signal);
    return this.#queue.run(async () => {
      if (this.#closing.aborted) throw new SandboxError('unavailable', 'The sandbox provider is closed.');
      const engine = await open();
      if (this.has(spec.id)) throw new SandboxError('refused', `A sandbox with the id ${spec.id} exists already.`);
      this.#known.set(spec.id, 'making');
      try {
        const sandbox = await make(engine, staged);
        this.set(sandbox);
        return sandbox;
      } catch (error) {
        this.delete(spec.id);
        throw asSandboxError(error);
      }
    }, signal);
  }

  /** Ends the commands that run in them for this process. */
  async endCommands(): Promise<void> {
    await Promise.all(
      [...this.#known.values()].map((sandbox) => (sandbox === 'making' ? undefined : sandbox.endCommands())),
    );
  }

  /**
   * Ends those that are neither to be kept nor being made, the usual way, so that whoever waits for their exit learns of it; without `keep`,
   * those that could not be removed at their end. Returns their ids, all that stay, and why some could not be ended.
   */
  async sweep(keep: ReadonlySet<string> | undefined): Promise<Swept> {
    const stays = (id: string, sandbox: ProvidedSandbox | 'making'): boolean =>
      sandbox === 'making' || (keep ? keep.has(id) : !sandbox.leftBehind);
    const staying = [...this.#known].filter(([id, sandbox]) => stays(id, sandbox)).map(([id]) => id);
    const swept: Swept = { ended: [], kept: new Set([...(keep ?? []), ...staying]), making: this.making, errors: [] };
    for (const [id, sandbox] of [...this.#known]) {
      if (sandbox === 'making' || swept.kept.has(id)) continue;
      await sandbox.stop().then(
        () => swept.ended.push(id),
        (error: unknown) => swept.errors.push(error),
      );
    }
    return swept;
  }
}

export function asSandboxError(error: unknown): SandboxError {
  if (error instanceof SandboxError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new SandboxError(startFailureReason(message), `The sandbox could not be made: ${message}`, { cause: error });
}
