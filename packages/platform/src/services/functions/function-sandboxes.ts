import { errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { Lease, SessionKey, SessionPlan, Sessions } from '../../kernel/sessions/index.ts';
import type { PlatformFunction } from './function.ts';
import { MAX_AGE_SECONDS } from './function-plan.ts';

export interface FunctionSandboxesDeps {
  sessions: Sessions;
  planOf(fn: PlatformFunction): SessionPlan;
  clock: Clock;
  /** Events of one function at once. */
  concurrency: number;
  newIdSuffix(): string;
  log: Logger;
}

/** One sandbox of a function, which has one event at a time. */
interface Place {
  key: SessionKey;
  revision: string;
  /** On the clock's `monotonic`. */
  madeAt: number;
}

/** Places of one function. */
interface Shelf {
  /** The one that was used last is used next; some may have ended meanwhile. */
  idle: Place[];
  busy: number;
  /** The newest known revision. Only its sandboxes take events. Undefined if the function was deleted. */
  revision: string | undefined;
  /** Of the row that was read last. */
  version: number;
  createdAt: number;
}

/** What came of an event as far as its sandbox is concerned: `spent` ones take no other. */
export type SandboxState = 'good' | 'spent';

/** The sandboxes of functions on this server: each event has one for itself, and leaves it to the next event of the same revision. */
export class FunctionSandboxes {
  readonly #deps: FunctionSandboxesDeps;
  readonly #shelves = new Map<string, Shelf>();

  constructor(deps: FunctionSandboxesDeps) {
    this.#deps = deps;
  }

  /**
   * Gives `work` a sandbox for one event. One whose work rejects is ended. Rejects with ThrottlingException where too many events are under way,
   * as `Sessions.acquire`, and as `work`.
   */
  async use<Result extends { sandbox: SandboxState }>(
    fn: PlatformFunction,
    signal: AbortSignal,
    work: (lease: Lease) => Promise<Result>,
  ): Promise<Result> {
    const { concurrency } = this.#deps;
    const shelf = this.#shelfOf(fn);
    if (shelf.busy >= concurrency)
      throw errors.throttling(`The function ${fn.name} has ${concurrency} events under way, which is the limit.`, {
        remedy: 'Repeat the request in a moment, or raise functions.concurrency.',
        retryAfterSeconds: 1,
      });
    shelf.busy += 1;
    let place: Place | undefined;
    let state: SandboxState = 'spent';
    try {
      const taken = this.#take(fn, shelf) ?? (await this.#begin(fn, signal));
      place = taken.place;
      try {
        const result = await work(taken.lease);
        state = result.sandbox;
        return result;
      } finally {
        taken.lease.release();
      }
    } finally {
      shelf.busy -= 1;
      if (place) this.#leave(fn.arn, shelf, place, state);
    }
  }

  /** Ends idle sandboxes of other revisions than that of `fn`, of all where the function is gone; busy ones end with their event. */
  retain(arn: string, fn: PlatformFunction | undefined): void {
    this.#deps.sessions.pool.retain(arn, fn ? [fn.revision] : []);
    const shelf = this.#shelves.get(arn);
    if (!shelf) return;
    if (fn) this.#learn(shelf, fn);
    else this.#settle(shelf, undefined);
    this.#forget(arn, shelf);
  }

  /** ARNs of functions that have sandboxes here. */
  known(): string[] {
    return [...this.#shelves.keys()];
  }

  #shelfOf(fn: PlatformFunction): Shelf {
    const { arn, revision, version, createdAt } = fn;
    const known = this.#shelves.get(arn);
    if (known) {
      this.#learn(known, fn);
      return known;
    }
    const made: Shelf = { idle: [], busy: 0, revision, version, createdAt };
    this.#shelves.set(arn, made);
    return made;
  }

  /** The later version of the row has the revision, whatever the clocks of servers say; a function that was made anew counts from the beginning. */
  #learn(shelf: Shelf, { revision, version, createdAt }: PlatformFunction): void {
    if (revision === shelf.revision || (createdAt === shelf.createdAt && version < shelf.version)) return;
    Object.assign(shelf, { version, createdAt });
    this.#settle(shelf, revision);
  }

  #settle(shelf: Shelf, revision: string | undefined): void {
    shelf.revision = revision;
    const old = shelf.idle.filter((place) => place.revision !== revision);
    shelf.idle = shelf.idle.filter((place) => place.revision === revision);
    for (const place of old) this.#end(place);
  }

  #take({ revision }: PlatformFunction, shelf: Shelf): { place: Place; lease: Lease } | undefined {
    const { sessions, clock } = this.#deps;
    const oldest = clock.monotonic() - MAX_AGE_SECONDS * 1000;
    // A call that has read the function before it changed gets a sandbox of what it has read.
    if (revision !== shelf.revision) return undefined;
    for (let place = shelf.idle.pop(); place; place = shelf.idle.pop()) {
      const lease = place.madeAt > oldest ? sessions.tryAcquire(place.key) : undefined;
      if (lease) return { place, lease };
      this.#end(place);
    }
    return undefined;
  }

  async #begin(fn: PlatformFunction, signal: AbortSignal): Promise<{ place: Place; lease: Lease }> {
    const { sessions, planOf, clock, newIdSuffix } = this.#deps;
    const { accountId, arn, revision } = fn;
    const key = { accountId, resourceArn: arn, sessionId: `${revision}-${newIdSuffix()}` };
    const place = { key, revision, madeAt: clock.monotonic() };
    try {
      return { place, lease: await sessions.acquire(key, async () => planOf(fn), signal) };
    } catch (error) {
      this.#end(place);
      throw error;
    }
  }

  #leave(arn: string, shelf: Shelf, place: Place, state: SandboxState): void {
    if (state === 'good' && place.revision === shelf.revision) shelf.idle.push(place);
    else this.#end(place);
    this.#forget(arn, shelf);
  }

  #forget(arn: string, shelf: Shelf): void {
    shelf.idle = shelf.idle.filter(({ key }) => this.#deps.sessions.get(key));
    if (shelf.busy === 0 && shelf.idle.length === 0 && this.#shelves.get(arn) === shelf) this.#shelves.delete(arn);
  }

  /** In the background: nobody waits for it. */
  #end({ key }: Place): void {
    const { sessions, log } = this.#deps;
    sessions
      .stop(key)
      .catch((error: unknown) => log.warn({ err: error, ...key }, 'a sandbox of a function did not end'));
  }
}
