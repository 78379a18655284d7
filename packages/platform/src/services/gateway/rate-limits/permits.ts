import { createHash } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import { every } from '../../../kernel/every.ts';
import { SingleFlight } from '../../../kernel/single-flight.ts';
import type { Database } from '../../../kernel/storage/index.ts';

export interface PermitsDeps {
  database: Pick<Database, 'query' | 'execute'>;
  clock: Clock;
  log: Logger;
}

/** What shares one limit. */
export interface Bucket {
  /** Different for different buckets of all gateways. */
  key: string;
  /** Permits of one window. */
  rate: number;
  /** Of a window, in milliseconds; `MONTH_MS` for a month of the calendar. */
  periodMs: number;
  /** For messages: `the rate limit per-user`. */
  name: string;
  /** What is let through; for messages. */
  of: 'requests' | 'tokens' | 'connections';
}

/** What this server has drawn of one window. */
interface Portion {
  bucket: Bucket;
  window: number;
  /** When the window ends, on the monotonic clock. */
  endsAt: number;
  /** Below nothing: what was used without being taken before. It is drawn from this window and the next ones, before anything is let through. */
  left: number;
  usedAt: number;
  /** Until this time no permits are drawn, because none were left. */
  emptyUntil: number;
  idleMs: number;
}

/** Of what a window has, how much is drawn at once: so many servers find some left to the last twentieth. */
const PORTIONS = 20;
/** Of windows longer than a minute: what a server that is killed has drawn is lost until their end. */
const SMALL_PORTIONS = 1_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Stands for a month of the calendar, in UTC. */
export const MONTH_MS = 31 * DAY_MS;
const PERIODS: Readonly<Record<number, string>> = {
  ...{ 1000: 'second', [MINUTE_MS]: 'minute', [DAY_MS]: 'day', [MONTH_MS]: 'month' },
};
const MOST_BUCKETS = 50_000;
/** A server gives unused permits back if it had no request for this part of the window. */
const IDLE_PART = 0.25;
const LONGEST_IDLE_MS = 15_000;
const LOOK_MS = 100;
/** Draws in a row that came after the end of their window: the database takes longer than that. */
const MOST_LATE = 3;

/**
 * Permits of windows (a second, a minute, a day, a month of the database’s clock), shared by all servers: each draws some at once and gives back what it
 * does not use, so that all together never pass more than a window has. Without the database a server uses up what it has drawn.
 */
export class Permits {
  readonly #deps: PermitsDeps;
  /** That which was drawn longest ago first. */
  readonly #portions = new Map<string, Portion>();
  readonly #draws = new SingleFlight<void>();
  readonly #stop: () => Promise<void>;

  constructor(deps: PermitsDeps) {
    this.#deps = deps;
    this.#stop = every(deps.clock, LOOK_MS, 'give permits back', () => this.#giveBack(), deps.log);
  }

  /**
   * Takes that many permits, at most all of a window. What it resolves with is told how many were used in the end: others are given back, and more are counted.
   * Rejects with ThrottlingException, which says when to come again.
   */
  async take(bucket: Bucket, asked = 1): Promise<(used?: number) => void> {
    if (bucket.rate < 1) throw refused(bucket, bucket.periodMs);
    const count = Math.min(asked, Math.floor(bucket.rate));
    for (let late = 0; late < MOST_LATE; ) {
      const now = this.#deps.clock.monotonic();
      const portion = this.#portions.get(bucket.key);
      const current = portion && now < portion.endsAt;
      if (current && portion.left >= count) {
        portion.left -= count;
        portion.usedAt = now;
        return (used = 0) => {
          if (this.#portions.get(bucket.key) === portion) portion.left += count - used;
          else this.charge(bucket, used - count);
        };
      }
      if (current && now < portion.emptyUntil) throw refused(bucket, portion.endsAt - now);
      await this.#draws.run(bucket.key, () => this.#draw(bucket, count));
      const drawn = this.#portions.get(bucket.key);
      if (drawn && this.#deps.clock.monotonic() >= drawn.endsAt) late += 1;
    }
    throw uncounted(bucket);
  }

  /** Counts what was used without having been taken, whether there is so much left or not. */
  charge(bucket: Bucket, count: number): void {
    if (count <= 0) return;
    const portion = this.#portions.get(bucket.key) ?? {
      ...{ bucket, window: -1, endsAt: 0, left: 0, usedAt: this.#deps.clock.monotonic(), emptyUntil: 0 },
      idleMs: idleOf(bucket),
    };
    portion.left -= Math.ceil(count);
    this.#keep(bucket.key, portion);
  }

  async close(): Promise<void> {
    await this.#stop();
    await this.#giveBack(true).catch((error: unknown) => this.#deps.log.debug({ err: error }, 'permits lapse'));
  }

  async #draw(bucket: Bucket, count: number): Promise<void> {
    const { database, clock } = this.#deps;
    const { key, rate, periodMs } = bucket;
    const asked = clock.monotonic();
    const whole = Math.floor(rate);
    const wanted = Math.max(
      Math.ceil(whole / (periodMs > MINUTE_MS ? SMALL_PORTIONS : PORTIONS)),
      count - this.#leftOf(key),
    );
    let row: Drawn | undefined;
    try {
      [row] = await database.query<Drawn>(DRAW, [hashOf(key), periodMs, whole, wanted, periodMs === MONTH_MS]);
    } catch (cause) {
      throw uncounted(bucket, cause);
    }
    if (!row) throw new Error('a draw of permits answers nothing');
    const now = clock.monotonic();
    const emptyUntil = row.granted < wanted ? now + LOOK_MS : 0;
    // No later than the window: the database looked at its clock after it was asked.
    const drawn = { bucket, window: row.window, endsAt: asked + row.rest, usedAt: now, emptyUntil };
    const before = this.#portions.get(key);
    // What a request gives back of this window comes to it.
    const same = before?.window === row.window ? before : undefined;
    const portion = same ?? { ...drawn, left: Math.min(0, before?.left ?? 0), idleMs: idleOf(bucket) };
    Object.assign(portion, drawn);
    portion.left += row.granted;
    this.#keep(key, portion);
  }

  /** What is left of the portion. Unused permits expire with their window, but a debt stays. */
  #leftOf(key: string): number {
    const portion = this.#portions.get(key);
    if (!portion) return 0;
    return this.#deps.clock.monotonic() < portion.endsAt ? portion.left : Math.min(0, portion.left);
  }

  #keep(key: string, portion: Portion): void {
    this.#portions.delete(key);
    this.#portions.set(key, portion);
    if (this.#portions.size <= MOST_BUCKETS) return;
    for (const [oldest] of this.#portions) {
      // What it has left lapses with its window.
      this.#portions.delete(oldest);
      return;
    }
  }

  async #giveBack(all = false): Promise<void> {
    const { database, clock } = this.#deps;
    const now = clock.monotonic();
    for (const [key, portion] of this.#portions) {
      const over = now >= portion.endsAt;
      if (portion.left < 0 && !all) {
        // Once in a window, where it has not enough.
        if (over || portion.emptyUntil === 0) await this.#draws.run(key, () => this.#draw(portion.bucket, 0));
        continue;
      }
      if (!over && !all && now < portion.usedAt + portion.idleMs) continue;
      const { window, left } = portion;
      portion.left = Math.min(0, left);
      try {
        if (!over && left > 0) await database.execute(GIVE_BACK, [hashOf(key), window, left]);
        if (portion.left === 0) this.#portions.delete(key);
      } catch (error) {
        portion.left += Math.max(0, left);
        throw error;
      }
    }
  }
}

interface Drawn {
  window: number;
  granted: number;
  /** Milliseconds until the window ends. */
  rest: number;
}

/** A window never begins again, whoever looked at the clock first. $1 bucket, $2 milliseconds of a window, $3 permits of one, $4 permits that are asked for, $5 whether windows are months. */
const DRAW = `
  WITH clock AS (SELECT clock_timestamp() AS at, date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') AS month),
  span AS (
    SELECT CASE WHEN $5::boolean THEN (extract(year FROM month) * 12 + extract(month FROM month))::bigint
      ELSE floor(extract(epoch FROM at) * 1000)::bigint / $2::bigint END AS no FROM clock),
  ends AS (
    SELECT CASE WHEN $5::boolean THEN (month + interval '1 month') AT TIME ZONE 'UTC'
      ELSE to_timestamp((no + 1) * $2::bigint / 1000.0) END AS at FROM clock, span)
  INSERT INTO gateway_permits AS p (bucket, window_no, used, granted, drawn_at, ends_at)
  SELECT $1, no, least($4::bigint, $3::bigint), least($4::bigint, $3::bigint), clock.at, ends.at FROM clock, span, ends
  ON CONFLICT (bucket) DO UPDATE SET
    granted = CASE WHEN p.window_no >= excluded.window_no THEN greatest(0, least($4::bigint, $3::bigint - p.used)) ELSE excluded.granted END,
    used = CASE WHEN p.window_no >= excluded.window_no THEN p.used + greatest(0, least($4::bigint, $3::bigint - p.used)) ELSE excluded.used END,
    ends_at = CASE WHEN p.window_no > excluded.window_no THEN p.ends_at ELSE excluded.ends_at END,
    window_no = greatest(p.window_no, excluded.window_no),
    drawn_at = excluded.drawn_at
  RETURNING window_no AS window, granted, (extract(epoch FROM ends_at - (SELECT at FROM clock)) * 1000)::float8 AS rest`;

const GIVE_BACK =
  'UPDATE gateway_permits SET used = greatest(0, used - $3::bigint) WHERE bucket = $1 AND window_no = $2::bigint';

function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url');
}

function idleOf({ periodMs }: Bucket): number {
  return Math.min(periodMs * IDLE_PART, LONGEST_IDLE_MS);
}

/** A limit that cannot be counted lets nothing through. */
export function uncounted({ name }: Bucket, cause?: unknown): Error {
  return errors.throttling(`${name} cannot be counted just now.`, { retryAfterSeconds: 1, cause });
}

/** `restMs`: until the window ends. */
function refused({ name, rate, periodMs, of }: Bucket, restMs: number): Error {
  return errors.throttling(`${name} lets ${rate} ${of} a ${PERIODS[periodMs]} through.`, {
    remedy: 'Come again later, or have the gateway’s owner raise it.',
    retryAfterSeconds: restMs / 1000,
  });
}
