import type { Logger } from 'pino';
import type { BoundedQueue } from '../bounded-queue.ts';
import type { Clock } from '../clock.ts';
import type { Sandbox, SandboxProvider } from '../sandbox/index.ts';
import type { Leftovers } from './leftovers.ts';
import type { SessionPlan } from './session-plan.ts';
import { Standby } from './standby.ts';
import { untilReady } from './until-ready.ts';

export interface SnapshotTakerDeps {
  provider: SandboxProvider;
  queue: BoundedQueue;
  leftovers: Leftovers;
  /** Whether the machine has room for a sandbox that nobody asked for. */
  room(): boolean;
  clock: Clock;
  newSandboxId(): string;
  log: Logger;
  options: { startTimeoutMs: number; pingTimeoutMs: number };
}

/**
 * Has a snapshot taken of each version that may have one, of a sandbox that is made for that alone, in the background, once one of its sandboxes
 * had to warm up. Where that fails it stays as it was: each warms up itself.
 */
export class SnapshotTaker {
  readonly #deps: SnapshotTakerDeps;
  /** Plans of versions for which it was tried; it is not tried again as long as the server runs. */
  readonly #tried = new WeakSet<SessionPlan>();
  readonly #work = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(deps: SnapshotTakerDeps) {
    this.#deps = deps;
  }

  /** Told of each sandbox that is ready. */
  made(plan: SessionPlan, sandbox: Sandbox): void {
    const { room, log } = this.#deps;
    if (!plan.snapshot || sandbox.copied || !sandbox.snapshot || this.#closing.signal.aborted) return;
    if (this.#tried.has(plan) || !room()) return;
    this.#tried.add(plan);
    const work = this.#take(plan)
      .catch((error: unknown) =>
        log.warn(
          { err: error, version: plan.version },
          'no snapshot of a warm agent: each sandbox of it warms up itself',
        ),
      )
      .finally(() => this.#work.delete(work));
    this.#work.add(work);
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the server is stopping'));
    await Promise.all(this.#work);
  }

  async #take(plan: SessionPlan): Promise<void> {
    const { queue } = this.#deps;
    const { signal } = this.#closing;
    await queue.run(() => this.#with(plan, signal, async (sandbox) => keep(plan, sandbox)), signal);
    // What cannot be restored is noticed here, not by a session; `untilReady` has it forgotten.
    await queue.run(() => this.#with(plan, signal, async () => undefined), signal);
  }

  /** Makes one, and removes it after `use`. */
  async #with(plan: SessionPlan, signal: AbortSignal, use: (sandbox: Sandbox) => Promise<void>): Promise<void> {
    const { provider, newSandboxId, leftovers, clock, options } = this.#deps;
    const sandbox = await provider.create(await plan.sandbox(newSandboxId(), signal), signal);
    const standby = new Standby(sandbox, plan);
    try {
      await untilReady(sandbox, standby.connection, { ...options, ...plan, clock }, signal);
      // A connection of ours would be one in every copy.
      await standby.connection.destroy();
      await use(sandbox);
    } finally {
      await standby.end().catch((error: unknown) => leftovers.note(error, sandbox.id));
    }
  }
}

async function keep(plan: SessionPlan, sandbox: Sandbox): Promise<void> {
  if (sandbox.copied) return;
  const why = plan.snapshot?.(sandbox.id);
  if (why !== undefined) throw new Error(why);
  await sandbox.snapshot?.();
}
