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
  /** Once it has been idle for too long: by when it was seen last, so that all servers draw the same. */
  anew(seenAt: string): string;
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

  /** The target of the session, or the one that it would get. This writes nothing, so that refused requests do not fill the table. */
  async nameOf({ key, timeoutSeconds }: StickySession, { usual, anew, names }: Draw): Promise<string> {
    const known = this.#known.get(key);
    if (known && names.includes(known.name) && this.#isFresh(known, timeoutSeconds)) return known.name;
    try {
      const [row] = await this.#deps.database.query<FoundSession>(FIND, [hashOf(key), lapseOf(timeoutSeconds)]);
      if (!row || !names.includes(row.name)) return usual;
      return row.idle ? anew(row.seen) : row.name;
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'a session goes where its hash says: what it was given cannot be asked for');
      return known && names.includes(known.name) ? known.name : usual;
    }
  }

  /** The session goes on, or begins, under the name that it has by `nameOf`. */
  async keep({ key, timeoutSeconds }: StickySession, name: string, names: readonly string[]): Promise<void> {
    const now = this.#deps.clock.monotonic();
    const known = this.#known.get(key);
    if (known?.name === name && this.#isFresh(known, timeoutSeconds)) {
      known.seenAt = now;
      return;
    }
    try {
      const given = [hashOf(key), name, lapseOf(timeoutSeconds), names];
      const [row] = await this.#deps.database.query<{ name: string }>(GIVE, given);
      this.#known.set(key, { name: row?.name ?? name, seenAt: now, writtenAt: now });
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'a session goes where its hash says: what it was given cannot be kept');
    }
  }

  #isFresh({ seenAt, writtenAt }: KnownSession, timeoutSeconds: number): boolean {
    const now = this.#deps.clock.monotonic();
    const idleMs = timeoutSeconds * 1000;
    return now < seenAt + idleMs && now < writtenAt + idleMs * TOLD_PART;
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

/** What the database knows is at most so much older than what happened. */
function lapseOf(timeoutSeconds: number): number {
  return timeoutSeconds * (1 + TOLD_PART);
}

interface FoundSession {
  name: string;
  /** When it was seen last, as a text that is the same for everybody. */
  seen: string;
  idle: boolean;
}

/** $1 session, $2 after how many seconds it is idle. */
const FIND = `
  SELECT name, extract(epoch FROM seen_at)::text AS seen,
    seen_at < clock_timestamp() - make_interval(secs => $2::float8) AS idle
  FROM gateway_sticky_sessions WHERE session = $1`;

/** $1 session, $2 what it is given first, after it was idle for $3 seconds, and after its rule has changed, $4 what the rule has. */
const GIVE = `
  INSERT INTO gateway_sticky_sessions AS s (session, name, seen_at) VALUES ($1, $2, clock_timestamp())
  ON CONFLICT (session) DO UPDATE SET
    name = CASE
      WHEN s.name <> ALL ($4::text[]) OR s.seen_at < clock_timestamp() - make_interval(secs => $3::float8) THEN $2
      ELSE s.name END,
    seen_at = clock_timestamp()
  RETURNING name`;

const BEGIN = `
  INSERT INTO gateway_sticky_sessions (session, name, seen_at) VALUES ($1, $2, clock_timestamp()) ON CONFLICT DO NOTHING`;

/** An identifier of a session can be all that somebody needs who wants to be it. */
function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url');
}
