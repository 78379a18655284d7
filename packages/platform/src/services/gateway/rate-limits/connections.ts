import { createHash } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import { every } from '../../../kernel/every.ts';
import { SingleFlight } from '../../../kernel/single-flight.ts';
import type { Database } from '../../../kernel/storage/index.ts';
import { type Bucket, uncounted } from './permits.ts';

export interface ConnectionsDeps {
  database: Pick<Database, 'execute' | 'transaction'>;
  clock: Clock;
  /** This life of this server. */
  epoch: number;
  log: Logger;
}

/** Places for connections that this server has. */
interface Places {
  held: number;
  used: number;
  usedAt: number;
  emptyUntil: number;
}

/** Of all places of a bucket, how many are taken at once. */
const PORTIONS = 20;
/** A server that does not say that it lives loses its places after so long. */
const LEASE_SECONDS = 30;
const LOOK_MS = 1_000;
const EMPTY_MS = 100;
const RENEW_MS = 10_000;

/** Places for connections that are open at the same time, shared by all servers: each has some of them on a lease. */
export class Connections {
  readonly #deps: ConnectionsDeps;
  readonly #places = new Map<string, Places>();
  readonly #draws = new SingleFlight<void>();
  readonly #stop: () => Promise<void>;
  #renewedAt = 0;

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps;
    this.#stop = every(deps.clock, LOOK_MS, 'keep places for connections', () => this.#look(), deps.log);
  }

  /** Takes a place; what it resolves with gives it back when the connection ends. Rejects with ThrottlingException. */
  async take(bucket: Bucket): Promise<() => void> {
    for (;;) {
      const now = this.#deps.clock.monotonic();
      const places = this.#places.get(bucket.key);
      if (places && places.used < Math.min(places.held, bucket.rate)) {
        places.used += 1;
        let open = true;
        return () => {
          if (open) places.used -= 1;
          open = false;
          places.usedAt = this.#deps.clock.monotonic();
        };
      }
      if (bucket.rate < 1 || (places && now < places.emptyUntil)) throw refused(bucket);
      await this.#draws.run(bucket.key, () => this.#draw(bucket));
    }
  }

  async close(): Promise<void> {
    await this.#stop();
    const { database, epoch, log } = this.#deps;
    await database
      .execute('DELETE FROM gateway_connections WHERE epoch = $1', [epoch])
      .catch((error: unknown) => log.debug({ err: error }, 'places for connections lapse'));
  }

  async #draw(wanted: Bucket): Promise<void> {
    const { database, clock, epoch } = this.#deps;
    const { key, rate } = wanted;
    const places = this.#places.get(key) ?? { held: 0, used: 0, usedAt: clock.monotonic(), emptyUntil: 0 };
    const bucket = hashOf(key);
    try {
      places.held = await database.transaction(async (tx) => {
        await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 16))', [bucket]);
        const [row] = await tx.query<{ others: number }>(
          'SELECT coalesce(sum(held), 0)::float8 AS others FROM gateway_connections WHERE bucket = $1 AND epoch <> $2 AND expires_at > clock_timestamp()',
          [bucket, epoch],
        );
        const free = Math.floor(rate) - (row?.others ?? 0);
        const held = Math.max(places.used, Math.min(free, places.held + Math.ceil(rate / PORTIONS)));
        await tx.execute(HOLD, [bucket, epoch, held, LEASE_SECONDS]);
        return held;
      });
    } catch (cause) {
      throw uncounted(wanted, cause);
    }
    const now = clock.monotonic();
    if (places.used >= places.held) places.emptyUntil = now + EMPTY_MS;
    places.usedAt = now;
    this.#places.set(key, places);
  }

  /** Gives back what nobody uses, and renews the lease of the rest. */
  async #look(): Promise<void> {
    await this.#renew();
    const now = this.#deps.clock.monotonic();
    for (const [key, places] of this.#places) {
      if (places.used === places.held || now < places.usedAt + LOOK_MS) continue;
      // In the place of a draw: what that says must not be said before this.
      await this.#draws.run(key, () => this.#giveBack(key, places));
    }
  }

  async #giveBack(key: string, places: Places): Promise<void> {
    const { database, epoch } = this.#deps;
    const before = places.held;
    places.held = places.used;
    try {
      await database.execute(HOLD, [hashOf(key), epoch, places.held, LEASE_SECONDS]);
      if (places.held === 0 && places.used === 0) this.#places.delete(key);
    } catch (error) {
      places.held = before;
      this.#deps.log.debug({ err: error }, 'places for connections are given back later');
    }
  }

  /** Renews the rows of the places that this server holds, to show that it is alive. */
  async #renew(): Promise<void> {
    const { database, clock, epoch } = this.#deps;
    const now = clock.monotonic();
    if (now < this.#renewedAt + RENEW_MS || this.#places.size === 0) return;
    const all = [...this.#places];
    await database.execute(RENEW, [
      all.map(([key]) => hashOf(key)),
      all.map(([, { held }]) => held),
      epoch,
      LEASE_SECONDS,
    ]);
    this.#renewedAt = now;
  }
}

const HOLD = `
  INSERT INTO gateway_connections AS c (bucket, epoch, held, expires_at)
  VALUES ($1, $2, $3, clock_timestamp() + make_interval(secs => $4::int))
  ON CONFLICT (bucket, epoch) DO UPDATE SET held = excluded.held, expires_at = excluded.expires_at`;

const RENEW = `
  INSERT INTO gateway_connections AS c (bucket, epoch, held, expires_at)
  SELECT bucket, $3, held, clock_timestamp() + make_interval(secs => $4::int) FROM unnest($1::text[], $2::bigint[]) AS u (bucket, held)
  ON CONFLICT (bucket, epoch) DO UPDATE SET expires_at = excluded.expires_at`;

function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url');
}

function refused({ name, rate }: Bucket): Error {
  return errors.throttling(`${name} lets ${rate} connections be open at the same time.`, {
    remedy: 'Come again once one of them has ended, or have the gateway’s owner raise it.',
    retryAfterSeconds: 1,
  });
}
