import { randomUUID } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import { type Clock, sleep } from '../../../kernel/clock.ts';
import { SingleFlight } from '../../../kernel/single-flight.ts';
import type { Database, Executor } from '../../../kernel/storage/index.ts';

export interface RefreshesDeps {
  database: Database;
  clock: Clock;
}

/** Longer than a token endpoint is waited for, with all tries, and the writing of its answer. */
const HOLD_MS = 60_000;
/** How often the others look whether the holder is done. */
const LOOK_MS = 100;

/**
 * Sees to it that one gets a new token, however many wait for it, across servers too: one of this server, who holds a row of the database. The row
 * is a lease and no lock, for it is held while a provider answers, and the embedded database has one connection. Of a holder that died it lapses.
 */
export class Refreshes {
  readonly #deps: RefreshesDeps;
  readonly #flights = new SingleFlight<unknown>();

  constructor(deps: RefreshesDeps) {
    this.#deps = deps;
  }

  /**
   * What `look` finds, else what `work` makes, which one at a time does, and none that another has made meanwhile. `work` is given what gives the
   * lease back, for the transaction that writes what it made. Rejects with what either rejects with, and the signal's reason.
   */
  async one<Found>(
    key: string,
    look: () => Promise<Found | undefined>,
    work: (release: (tx: Executor) => Promise<void>) => Promise<Found>,
    signal?: AbortSignal,
  ): Promise<Found> {
    const run = (flown: AbortSignal) => this.#alone(key, look, work, flown);
    // Of one key all find and make the same.
    return (await this.#flights.run(key, run, signal)) as Found;
  }

  /** Runs `work` while nobody gets a new token of that key, once whoever does is done. */
  exclusively<Result>(key: string, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#alone<Result>(key, async () => undefined, work, signal);
  }

  async #alone<Found>(
    key: string,
    look: () => Promise<Found | undefined>,
    work: (release: (tx: Executor) => Promise<void>) => Promise<Found>,
    signal: AbortSignal,
  ): Promise<Found> {
    const { database, clock } = this.#deps;
    const holder = randomUUID();
    const release = async (tx: Executor): Promise<void> => {
      await tx.execute('DELETE FROM identity_refreshes WHERE key = $1 AND holder = $2', [key, holder]);
    };
    const until = clock.now() + 2 * HOLD_MS;
    while (!(await this.#take(key, holder))) {
      if (clock.now() > until) throw errors.throttling('Another server is getting this token for too long.');
      await sleep(clock, LOOK_MS, signal);
      const found = await look();
      if (found !== undefined) return found;
    }
    try {
      // Somebody may have been done between the first look and the lease.
      return (await look()) ?? (await work(release));
    } finally {
      // One that cannot be given back lapses.
      await release(database).catch(() => undefined);
    }
  }

  async #take(key: string, holder: string): Promise<boolean> {
    const { database, clock } = this.#deps;
    const now = clock.now();
    const taken = await database.execute(
      `INSERT INTO identity_refreshes (key, holder, until) VALUES ($1, $2, $3)
       ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, until = excluded.until WHERE identity_refreshes.until < $4`,
      [key, holder, new Date(now + HOLD_MS), new Date(now)],
    );
    return taken > 0;
  }
}
