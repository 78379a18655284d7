import { randomUUID } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import { type Clock, sleep } from '../../../kernel/clock.ts';
import { SingleFlight } from '../../../kernel/single-flight.ts';
import type { Database, Executor } from '../../../kernel/storage/index.ts';

export interface RefreshesDeps {
  database: Database;
  clock: Clock;
  /** The same in each life of this server. */
  serverId: string;
}

/** The token that a lease is for, with its provider and workload. */
export interface HeldToken {
  key: string;
  accountId: string;
  providerId: string;
  workload: string;
}

/** What tokens are forgotten of: a provider that is gone or another now, a workload that is gone, or a whole account. */
export type Forgotten = { providerId: string } | { accountId: string; workload?: string };

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

  /** Ends what this server held when it died: nobody waits until that lapses. Call it before anything is asked for. */
  async start(): Promise<void> {
    const { database, serverId } = this.#deps;
    await database.execute('DELETE FROM identity_refreshes WHERE server = $1', [serverId]);
  }

  /**
   * Returns what `look` finds, or else what `work` makes. Only one caller at a time runs `work`, and `look` is tried again before. `work` gets a function that gives the lease back.
   * It must call the function in the transaction that stores the token. If the lease has been lost, the function rejects with ThrottlingException, so that the
   * token is not stored. Rejects with the errors of `look` and `work`, and with the signal's reason.
   */
  async one<Found>(
    held: HeldToken,
    look: () => Promise<Found | undefined>,
    work: (release: (tx: Executor) => Promise<void>) => Promise<Found>,
    signal?: AbortSignal,
  ): Promise<Found> {
    const run = (flown: AbortSignal) => this.#alone(held, look, work, flown);
    // Of one key all find and make the same.
    return (await this.#flights.run(held.key, run, signal)) as Found;
  }

  /** Runs `work` while nobody gets a new token of that key, once whoever does is done. */
  exclusively<Result>(held: HeldToken, work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#alone<Result>(held, async () => undefined, work, signal);
  }

  /** Ends the lease on a token that is being replaced: what is on its way for the old one is not written. Before it, in its transaction. */
  async end(key: string, tx: Executor): Promise<void> {
    await tx.execute('DELETE FROM identity_refreshes WHERE key = $1', [key]);
  }

  /** Ends the leases on tokens that are being forgotten: what is on its way is not written. Before those, in their transaction. */
  async forget(of: Forgotten, tx: Executor): Promise<void> {
    if ('providerId' in of) await tx.execute('DELETE FROM identity_refreshes WHERE provider_id = $1', [of.providerId]);
    else
      await tx.execute('DELETE FROM identity_refreshes WHERE account_id = $1 AND ($2::text IS NULL OR workload = $2)', [
        of.accountId,
        of.workload ?? null,
      ]);
  }

  async #alone<Found>(
    held: HeldToken,
    look: () => Promise<Found | undefined>,
    work: (release: (tx: Executor) => Promise<void>) => Promise<Found>,
    signal: AbortSignal,
  ): Promise<Found> {
    const { database, clock } = this.#deps;
    const holder = randomUUID();
    const giveBack = (tx: Executor): Promise<number> =>
      tx.execute('DELETE FROM identity_refreshes WHERE key = $1 AND holder = $2', [held.key, holder]);
    const release = async (tx: Executor): Promise<void> => {
      if ((await giveBack(tx)) === 0) throw changedMeanwhile();
    };
    const until = clock.now() + 2 * HOLD_MS;
    while (!(await this.#take(held, holder))) {
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
      await giveBack(database).catch(() => undefined);
    }
  }

  async #take({ key, accountId, providerId, workload }: HeldToken, holder: string): Promise<boolean> {
    const { database, clock, serverId } = this.#deps;
    const now = clock.now();
    const taken = await database.execute(
      `INSERT INTO identity_refreshes (key, holder, server, account_id, provider_id, workload, until) VALUES ($1, $2, $3, $4, $5, $6, $7)
       ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, server = excluded.server, until = excluded.until
         WHERE identity_refreshes.until < $8`,
      [key, holder, serverId, accountId, providerId, workload, new Date(now + HOLD_MS), new Date(now)],
    );
    return taken > 0;
  }
}

/** Whoever asks once more gets what is true then: another token, a new consent, or that the provider is gone. */
export function changedMeanwhile(): Error {
  return errors.throttling('The grant, its provider or the vault was changed while the token was fetched.', {
    remedy: 'Repeat the request.',
    retryAfterSeconds: 1,
  });
}
