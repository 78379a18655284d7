import type { Logger } from 'pino';
import type { BoundedQueue } from '../bounded-queue.ts';
import type { Clock } from '../clock.ts';
import type { SandboxProvider } from '../sandbox/index.ts';
import { Timers } from '../timers.ts';
import type { Leftovers } from './leftovers.ts';
import { KEPT_ARRIVALS, poolTarget } from './pool-target.ts';
import type { PoolPlan, SessionPlan } from './session-plan.ts';
import type { SnapshotTaker } from './snapshot-taker.ts';
import { Standby } from './standby.ts';
import { untilReady } from './until-ready.ts';

export interface WarmPoolOptions {
  /** Most sandboxes kept ready, of all versions together. */
  maxTotal: number;
  /** Milliseconds without a new session after which a version has none. */
  idleMs: number;
  /** Sandboxes made at once. */
  fills: number;
  startTimeoutMs: number;
  pingTimeoutMs: number;
}

export interface WarmPoolDeps {
  provider: SandboxProvider;
  queue: BoundedQueue;
  leftovers: Leftovers;
  snapshots: Pick<SnapshotTaker, 'made'>;
  /** Whether the machine has room for a sandbox that nobody asked for. */
  room(): boolean;
  recordStart(outcome: 'ready' | 'failed', seconds: number): void;
  clock: Clock;
  newSandboxId(): string;
  log: Logger;
  options: WarmPoolOptions;
}

/** The sandboxes of one version of one resource. */
interface Shelf {
  plan: SessionPlan;
  pool: PoolPlan;
  arrivals: number[];
  ready: Standby[];
  filling: number;
  /** Sandboxes in a row that failed to start, or ended, before a session took one. */
  failures: number;
  retryAt: number;
  drained: boolean;
}

/** After a session took one, so that the new session's first request has the machine to itself. */
const REFILL_DELAY_MS = 20;
const BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 300_000;

/**
 * Sandboxes that were started before anybody asked, for what is in use: each belongs to one version of one resource, is given to one session
 * and never comes back. What is kept grows with the rate of new sessions and shrinks to none when they stop. They have no row in
 * the database, so that the next start of a killed server removes them like anything that nobody owns.
 */
export class WarmPool {
  readonly #deps: WarmPoolDeps;
  readonly #shelves = new Map<string, Shelf>();
  readonly #work = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #timers: Timers;
  #fills = 0;

  constructor(deps: WarmPoolDeps) {
    this.#deps = deps;
    this.#timers = new Timers(deps.clock);
  }

  /** Sandboxes that are ready now. */
  get size(): number {
    let size = 0;
    for (const shelf of this.#shelves.values()) size += shelf.ready.length;
    return size;
  }

  /** Digests of the images that they are made from. */
  images(): string[] {
    return [...this.#shelves.values()].flatMap(({ plan }) => plan.image ?? []);
  }

  /** Notes that a session begins, whether or not there is a sandbox for it. */
  arrived(plan: SessionPlan): void {
    const shelf = this.#shelfOf(plan);
    if (!shelf) return;
    shelf.arrivals.push(this.#deps.clock.monotonic());
    if (shelf.arrivals.length > KEPT_ARRIVALS) shelf.arrivals.shift();
    this.#timers.after(REFILL_DELAY_MS, () => this.#settle(shelf));
  }

  /**
   * Makes one for a version that nobody has used yet, as for any session of it; it stands ready then as if a session had come, or is removed
   * where none are kept. Rejects with what was wrong with it: `StartFailure`, `QueueFullError`, `SandboxError`, the plan's own errors, the signal's reason.
   */
  async prepare(plan: SessionPlan, signal: AbortSignal): Promise<void> {
    const { queue } = this.#deps;
    const either = AbortSignal.any([signal, this.#closing.signal]);
    const standby = await queue.run(() => this.#make(plan, either), either);
    const shelf = this.size + this.#fills < this.#deps.options.maxTotal ? this.#shelfOf(plan) : undefined;
    if (!shelf) return this.discard(standby);
    this.#keep(shelf, standby);
    this.arrived(plan);
  }

  /** Where sandboxes of this version stand; undefined where none are kept. */
  #shelfOf(plan: SessionPlan): Shelf | undefined {
    const { pool } = plan;
    if (!pool || pool.max === 0 || this.#closing.signal.aborted) return undefined;
    const key = keyOf(plan, pool);
    let shelf = this.#shelves.get(key);
    if (!shelf) {
      shelf = { plan, pool, arrivals: [], ready: [], filling: 0, failures: 0, retryAt: 0, drained: false };
      this.#shelves.set(key, shelf);
    }
    shelf.plan = plan;
    shelf.pool = pool;
    return shelf;
  }

  /** One that was ready for such a session, or undefined. It is the caller's from here on. */
  take(plan: SessionPlan): Standby | undefined {
    if (!plan.pool) return undefined;
    return this.#shelves.get(keyOf(plan, plan.pool))?.ready.shift();
  }

  /** One that was taken became a session: what starts like it can be trusted again. */
  served(plan: SessionPlan): void {
    const shelf = plan.pool && this.#shelves.get(keyOf(plan, plan.pool));
    if (shelf) Object.assign(shelf, { failures: 0, retryAt: 0 });
  }

  /** Gives back one that was taken, as it was. */
  putBack(plan: SessionPlan, standby: Standby): void {
    const shelf = plan.pool && this.#shelves.get(keyOf(plan, plan.pool));
    if (shelf && !shelf.drained && !this.#closing.signal.aborted) shelf.ready.unshift(standby);
    else this.discard(standby);
  }

  /** Removes one, in the background. */
  discard(standby: Standby): void {
    const { leftovers } = this.#deps;
    this.#track(
      standby.end().catch((error: unknown) => leftovers.note(error, standby.sandbox.id)),
      'could not remove a prepared sandbox',
      { sandboxId: standby.sandbox.id },
    );
  }

  /** Ends what is kept for versions of a resource other than these. */
  retain(resourceArn: string, versions: readonly string[]): void {
    for (const shelf of this.#shelves.values())
      if (shelf.pool.resourceArn === resourceArn && !versions.includes(shelf.plan.version)) this.#drain(shelf);
  }

  /** Ends all that may be older by now than one that is made from now on. */
  renew(): void {
    for (const shelf of this.#shelves.values()) if (shelf.pool.current) this.#drain(shelf);
  }

  /** Ends all that is kept; what is asked for from now on begins anew. Resolves when nothing of it is left. */
  async drainAll(): Promise<void> {
    for (const shelf of this.#shelves.values()) this.#drain(shelf);
    await Promise.all(this.#work);
  }

  /** All that are ready now. */
  all(): Standby[] {
    return [...this.#shelves.values()].flatMap(({ ready }) => ready);
  }

  /** Ends one that is ready, as one that ended by itself. */
  evict(standby: Standby): void {
    for (const shelf of this.#shelves.values()) this.#ended(shelf, standby);
  }

  /** Grows and shrinks by what was asked for lately; called about once a second. */
  tick(): void {
    for (const shelf of this.#shelves.values()) this.#settle(shelf);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the server is stopping'));
    this.#timers.close();
    await this.drainAll();
  }

  #drain(shelf: Shelf): void {
    shelf.drained = true;
    for (const standby of shelf.ready.splice(0)) this.discard(standby);
    for (const [key, one] of this.#shelves) if (one === shelf) this.#shelves.delete(key);
  }

  #settle(shelf: Shelf): void {
    if (shelf.drained || this.#closing.signal.aborted) return;
    const { clock, options, queue, room } = this.#deps;
    const now = clock.monotonic();
    const target = poolTarget(shelf.arrivals, now, { max: shelf.pool.max, idleMs: options.idleMs });
    while (shelf.ready.length > target) {
      const [oldest] = shelf.ready.splice(0, 1);
      if (oldest) this.discard(oldest);
    }
    if (target === 0 && shelf.filling === 0) this.#drain(shelf);
    if (shelf.drained || now < shelf.retryAt) return;
    let missing = Math.min(
      target - shelf.ready.length - shelf.filling,
      options.maxTotal - this.size - this.#fills,
      options.fills - this.#fills,
    );
    // Sessions that somebody waits for come first.
    for (; missing > 0 && queue.waiting === 0 && room(); missing -= 1)
      this.#track(this.#fill(shelf), 'could not prepare a sandbox', { resource: shelf.pool.resourceArn });
  }

  async #fill(shelf: Shelf): Promise<void> {
    const { queue } = this.#deps;
    shelf.filling += 1;
    this.#fills += 1;
    try {
      const standby = await queue.run(() => this.#make(shelf.plan, this.#closing.signal), this.#closing.signal);
      if (shelf.drained || this.#closing.signal.aborted) return this.discard(standby);
      this.#keep(shelf, standby);
    } catch (error) {
      this.#failed(shelf);
      if (!this.#closing.signal.aborted) throw error;
    } finally {
      shelf.filling -= 1;
      this.#fills -= 1;
      // More may be missing than could be made at once.
      this.#timers.after(0, () => this.tick());
    }
  }

  #keep(shelf: Shelf, standby: Standby): void {
    shelf.ready.push(standby);
    void standby.sandbox.exited.then(() => this.#ended(shelf, standby));
  }

  async #make(plan: SessionPlan, signal: AbortSignal): Promise<Standby> {
    const { provider, newSandboxId, recordStart, snapshots, clock, options } = this.#deps;
    const began = clock.monotonic();
    let standby: Standby | undefined;
    try {
      const sandbox = await provider.create(await plan.sandbox(newSandboxId(), signal), signal);
      standby = new Standby(sandbox, plan);
      await untilReady(sandbox, standby.connection, { ...options, ...plan, clock }, signal);
      recordStart('ready', (clock.monotonic() - began) / 1000);
      snapshots.made(plan, sandbox);
      return standby;
    } catch (error) {
      recordStart('failed', (clock.monotonic() - began) / 1000);
      await standby?.end();
      throw error;
    }
  }

  /** One ended by itself while it waited. */
  #ended(shelf: Shelf, standby: Standby): void {
    const at = shelf.ready.indexOf(standby);
    if (at < 0) return;
    shelf.ready.splice(at, 1);
    this.#failed(shelf);
    this.discard(standby);
  }

  #failed(shelf: Shelf): void {
    shelf.failures += 1;
    const wait = Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** (shelf.failures - 1));
    shelf.retryAt = this.#deps.clock.monotonic() + wait;
  }

  #track(work: Promise<void>, failure: string, of: Record<string, string>): void {
    const tracked = work
      .catch((error: unknown) => this.#deps.log.warn({ err: error, ...of }, failure))
      .finally(() => this.#work.delete(tracked));
    this.#work.add(tracked);
  }
}

function keyOf(plan: SessionPlan, pool: PoolPlan): string {
  return `${pool.resourceArn}\n${plan.version}`;
}
