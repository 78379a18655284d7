import { errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import { type Clock, sleep } from '../clock.ts';
import { CHANGES_CHANNEL, type Change, currentCursor, readChanges } from './changes.ts';
import type { Database, Line } from './database.ts';

/**
 * Takes over what changed, `'all'` when anything may have. Nobody else is told meanwhile: it reads and returns, and leaves to others what takes
 * long. Rejects when it could not, and is told again; being told twice must do no harm.
 */
export type TakeChanges = (changes: readonly Change[] | 'all') => Promise<void>;

/** What whoever keeps something of the database in memory needs of the feed. */
export interface Changes {
  /** Has `take` told of each change of these topics from the opening of the feed on. Call it before the feed starts. */
  subscribe(topics: readonly string[], take: TakeChanges): void;
  /** Throws ServiceUnavailableException when what is kept in memory may be older than the lease. */
  need(): void;
}

export interface ChangeFeedDeps {
  database: Pick<Database, 'query' | 'whenNoted' | 'listen'>;
  /** How long what is known may be used without having been confirmed, in milliseconds. */
  leaseMs: number;
  clock: Clock;
  log: Logger;
}

/** How often it is read without having been told, which confirms what is known: a notification may be lost, a connection silent. */
const LOOK_MS = 500;
const LOST = 'The server has not heard for too long what other servers have changed.';

/** Pause before the next try, after a failure. */
const RETRY_MS = 100;

/**
 * Keeps what is in the memory of this server true while others write: reads the table `changes` at each notification and hands on what it
 * finds. A writer of this server goes on only after its own change has been taken over here. Where several servers share a database, a
 * connection of its own listens; one that is lost is opened again and reads on from its cursor. On the embedded database there are no others.
 */
export class ChangeFeed implements Changes {
  readonly #deps: ChangeFeedDeps;
  readonly #subscribers: { topics: ReadonlySet<string>; take: TakeChanges }[] = [];
  #cursor: string;
  /** When the last read began that was taken over; monotonic, ms. */
  #trueAt: number;
  #line: Line | undefined;
  #started = false;
  #closed = false;
  #failing = false;
  #cancel: () => void = () => undefined;
  #beating: Promise<void> = Promise.resolve();
  #reading: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  private constructor(deps: ChangeFeedDeps, cursor: string) {
    this.#deps = deps;
    this.#cursor = cursor;
    this.#trueAt = deps.clock.monotonic();
  }

  /** Remembers what there is now. Nobody is told before `start`. Rejects with the database's error. */
  static async open(deps: ChangeFeedDeps): Promise<ChangeFeed> {
    const feed = new ChangeFeed(deps, await currentCursor(deps.database));
    deps.database.whenNoted(() => feed.#taken());
    return feed;
  }

  subscribe(topics: readonly string[], take: TakeChanges): void {
    if (this.#started) throw new Error('the change feed has started: some changes may have been missed');
    this.#subscribers.push({ topics: new Set(topics), take });
  }

  /** Tells of what has changed since the opening, and goes on. Rejects with the database's error. */
  async start(): Promise<void> {
    this.#started = true;
    await this.#look();
    this.#arm(LOOK_MS);
  }

  need(): void {
    if (this.#lost())
      throw errors.unavailable(LOST, {
        remedy: 'Repeat the request; nothing needs to be restarted once the database is back.',
        retryAfterSeconds: 2,
      });
  }

  /** For `/readyz`. */
  async health(): Promise<{ ok: boolean; reason?: string }> {
    return this.#lost() ? { ok: false, reason: LOST } : { ok: true };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#beating;
    this.#line?.close();
    await this.#reading.catch(() => undefined);
  }

  #lost(): boolean {
    const { database, clock, leaseMs } = this.#deps;
    return database.listen !== undefined && clock.monotonic() - this.#trueAt > leaseMs;
  }

  #arm(ms: number): void {
    this.#cancel();
    if (this.#closed || !this.#deps.database.listen) return;
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#beating = this.#beating.then(() => this.#beat());
    });
  }

  async #beat(): Promise<void> {
    try {
      await this.#look();
      if (this.#failing) this.#deps.log.info('changes by other servers are heard of again');
      this.#failing = false;
      this.#arm(LOOK_MS);
    } catch (error) {
      if (!this.#failing && !this.#closed)
        this.#deps.log.warn({ err: error }, 'changes by other servers are not heard of; it is tried again');
      this.#failing = true;
      this.#line?.close();
      this.#line = undefined;
      this.#arm(RETRY_MS);
    }
  }

  async #look(): Promise<void> {
    this.#line ??= await this.#deps.database.listen?.(CHANGES_CHANNEL, {
      // What fails here is tried again by the next look.
      heard: () => void this.#readAnew().catch(() => undefined),
      lost: () => {
        this.#line = undefined;
        this.#arm(RETRY_MS);
      },
    });
    await this.#readAnew();
  }

  /** Resolves when this server has taken over all that was committed before the call, or answers nothing by what it knows any more. */
  async #taken(): Promise<void> {
    const { clock, leaseMs } = this.#deps;
    const began = clock.monotonic();
    while (this.#started && !this.#closed && clock.monotonic() - began <= leaseMs) {
      try {
        return await this.#readAnew();
      } catch {
        await sleep(clock, RETRY_MS);
      }
    }
  }

  /** One read that begins after the call, shared by all who ask until it does. */
  #readAnew(): Promise<void> {
    this.#next ??= this.#reading
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        this.#reading = this.#read();
        return this.#reading;
      });
    return this.#next;
  }

  async #read(): Promise<void> {
    const { database, clock } = this.#deps;
    const reader = database.listen ? this.#line : database;
    if (!reader) throw new Error('no connection listens for changes');
    const began = clock.monotonic();
    const { cursor, behind, changes } = await readChanges(reader, this.#cursor);
    await Promise.all(
      this.#subscribers.map(async ({ topics, take }) => {
        const own = changes.filter(({ topic }) => topics.has(topic));
        if (behind) await take('all');
        else if (own.length > 0) await take(own);
      }),
    );
    this.#cursor = cursor;
    this.#trueAt = began;
  }
}
