import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';
import type { Database } from '../../../kernel/storage/index.ts';

export interface StickySessionsDeps {
  database: Pick<Database, 'query' | 'execute'>;
  clock: Pick<Clock, 'monotonic'>;
  log: Logger;
}

/** One session under one weighted rule. */
export interface StickySession {
  /** Different for different sessions of all rules. */
  key: string;
  /** How long it may be idle before it is drawn anew. */
  timeoutSeconds: number;
}

/** What it may be given. */
export interface Draw {
  /** By its hash: what every server says that cannot ask the database. */
  usual: string;
  /** Once it has been idle for too long. */
  anew: string;
  /** What the rule has now. */
  names: readonly string[];
}

interface KnownSession {
  name: string;
  seenAt: number;
  writtenAt: number;
}

const MOST_KNOWN = 10_000;
/** Of its timeout: after so long the others are told that a session is not idle. */
const TOLD_PART = 0.25;

/** Which entry of a weighted rule each session was given: on all servers the same, until it was idle for its time. */
export class StickySessions {
  readonly #deps: StickySessionsDeps;
  readonly #known = new Lru<string, KnownSession>(MOST_KNOWN);

  constructor(deps: StickySessionsDeps) {
    this.#deps = deps;
  }

  /** The name that the session has, or is given now. */
  async nameOf({ key, timeoutSeconds }: StickySession, { usual, anew, names }: Draw): Promise<string> {
    const now = this.#deps.clock.monotonic();
    const known = this.#known.get(key);
    const idleMs = timeoutSeconds * 1000;
    if (
      known &&
      names.includes(known.name) &&
      now < known.seenAt + idleMs &&
      now < known.writtenAt + idleMs * TOLD_PART
    ) {
      known.seenAt = now;
      return known.name;
    }
    try {
      // What the database knows is at most so much older than what happened.
      const lapse = timeoutSeconds * (1 + TOLD_PART);
      const [row] = await this.#deps.database.query<{ name: string }>(GIVE, [hashOf(key), usual, anew, lapse, names]);
      const name = row?.name ?? usual;
      this.#known.set(key, { name, seenAt: now, writtenAt: now });
      return name;
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'a session goes where its hash says: what it was given cannot be asked for');
      return known && names.includes(known.name) ? known.name : usual;
    }
  }

  /** A session that the answer of that entry has begun stays there. One that is known already is nobody's to move. */
  async begin({ key }: Pick<StickySession, 'key'>, name: string): Promise<void> {
    try {
      await this.#deps.database.execute(BEGIN, [hashOf(key), name]);
    } catch (error) {
      this.#deps.log.warn(
        { err: error },
        'a new session goes where its hash says: it could not be kept where it began',
      );
    }
  }
}

/** $1 session, $2 what it is given first, $3 what it is given after it was idle for $4 seconds or its rule has changed, $5 what the rule has. */
const GIVE = `
  INSERT INTO gateway_sticky_sessions AS s (session, name, seen_at) VALUES ($1, $2, clock_timestamp())
  ON CONFLICT (session) DO UPDATE SET
    name = CASE
      WHEN s.name <> ALL ($5::text[]) THEN excluded.name
      WHEN s.seen_at < clock_timestamp() - make_interval(secs => $4::float8) THEN $3
      ELSE s.name END,
    seen_at = clock_timestamp()
  RETURNING name`;

const BEGIN = `
  INSERT INTO gateway_sticky_sessions (session, name, seen_at) VALUES ($1, $2, clock_timestamp()) ON CONFLICT DO NOTHING`;

/** An identifier of a session can be all that somebody needs who wants to be it. */
function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url');
}
