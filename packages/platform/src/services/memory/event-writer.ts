import { errors } from '@agentplatform/contract';
import type { Database } from '../../kernel/storage/index.ts';
import type { StoredEvent } from './event.ts';

/** An event on its way into the log. */
export interface NewEvent extends StoredEvent {
  createdAt: Date;
  expiresAt: Date;
  /** Whether long-term records are to be extracted from it. */
  pending: boolean;
  clientToken: string | undefined;
  /** Of the request; the same token with another one is a mistake. */
  fingerprint: string;
}

/** `duplicate`: an event with this client token is in the log already. */
export type WriteOutcome = 'written' | 'duplicate';

const MAX_BATCH = 200;
const MAX_BATCH_CHARACTERS = 4_000_000;
const MAX_WAITING = 20_000;

interface Waiting {
  event: NewEvent;
  values: unknown[];
  size: number;
  resolve(outcome: WriteOutcome): void;
  reject(error: unknown): void;
}

/** The columns of an event in the order of `valuesOf`, with their types. */
const COLUMNS = {
  memory_id: 'text',
  actor_id: 'text',
  session_id: 'text',
  event_id: 'text',
  at: 'timestamptz',
  created_at: 'timestamptz',
  expires_at: 'timestamptz',
  payload: 'text',
  metadata: 'jsonb',
  branch: 'text',
  root_event_id: 'text',
  variables: 'jsonb',
  client_token: 'text',
  fingerprint: 'text',
  pending: 'boolean',
};
const NAMES = Object.keys(COLUMNS).join(', ');

/** Keeps events and makes their sessions known; gives the ids of those that were not there already. */
const keep = (rows: string, sessions: string): string => `
  WITH written AS (
    INSERT INTO memory_events (${NAMES}) ${rows}
    ON CONFLICT (memory_id, client_token) WHERE client_token IS NOT NULL DO NOTHING
    RETURNING memory_id, actor_id, session_id, event_id, created_at),
  sessions AS (
    INSERT INTO memory_sessions (memory_id, actor_id, session_id, created_at) ${sessions} ON CONFLICT DO NOTHING)
  SELECT event_id FROM written`;

const KEEP_MANY = keep(
  `SELECT * FROM json_to_recordset($1::json) AS x(${Object.entries(COLUMNS).map((column) => column.join(' '))})`,
  'SELECT memory_id, actor_id, session_id, min(created_at) FROM written GROUP BY 1, 2, 3',
);
/** A caller who is alone waits for no JSON and no grouping: 0.3 ms less in the embedded database. */
const KEEP_ONE = keep(
  `VALUES (${Object.values(COLUMNS).map((type, index) => `$${index + 1}::${type}`)})`,
  'SELECT memory_id, actor_id, session_id, created_at FROM written',
);

/**
 * Writes events in groups: what arrives while one group is being written goes into the next, so that many callers share
 * one commit and one sync of the disk, and a single caller waits for nothing but its own.
 */
export class EventWriter {
  readonly #database: Database;
  #waiting: Waiting[] = [];
  #writing = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Resolves once the event is durable. Throws ThrottledException when too many wait, and what the database throws. */
  write(event: NewEvent): Promise<WriteOutcome> {
    if (this.#waiting.length >= MAX_WAITING) {
      throw errors.throttled('Too many events wait to be written.', { retryAfterSeconds: 1 });
    }
    const payload = JSON.stringify(event.payload);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ event, values: valuesOf(event, payload), size: payload.length, resolve, reject });
      if (!this.#writing) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#writing = true;
    while (this.#waiting.length > 0) {
      const batch = this.#next();
      try {
        const written = await this.#keep(batch);
        for (const { event, resolve } of batch) resolve(written.has(event.eventId) ? 'written' : 'duplicate');
      } catch (error) {
        // One event must not fail for its neighbour's sake.
        if (batch.length === 1) batch[0]?.reject(error);
        else for (const one of batch) await this.#alone(one);
      }
    }
    this.#writing = false;
  }

  async #alone(one: Waiting): Promise<void> {
    const { event, resolve, reject } = one;
    try {
      const written = await this.#keep([one]);
      resolve(written.has(event.eventId) ? 'written' : 'duplicate');
    } catch (error) {
      reject(error);
    }
  }

  /** The ids of the events that were written. */
  async #keep(batch: readonly Waiting[]): Promise<Set<string>> {
    const [first, ...more] = batch.map(({ values }) => values);
    const rows =
      first && more.length === 0
        ? await this.#database.query<{ event_id: string }>(KEEP_ONE, first)
        : await this.#database.query<{ event_id: string }>(KEEP_MANY, [
            JSON.stringify(batch.map(({ values }) => rowOf(values))),
          ]);
    return new Set(rows.map((row) => row.event_id));
  }

  #next(): Waiting[] {
    let size = 0;
    let count = 0;
    for (const one of this.#waiting) {
      size += one.size;
      if (count > 0 && (count === MAX_BATCH || size > MAX_BATCH_CHARACTERS)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }
}

function valuesOf(event: NewEvent, payload: string): unknown[] {
  return [
    event.memoryId,
    event.actorId,
    event.sessionId,
    event.eventId,
    event.at,
    event.createdAt,
    event.expiresAt,
    payload,
    event.metadata,
    event.branch?.name ?? null,
    event.branch?.rootEventId ?? null,
    event.variables,
    event.clientToken ?? null,
    event.fingerprint,
    event.pending,
  ];
}

function rowOf(values: readonly unknown[]): object {
  return Object.fromEntries(Object.keys(COLUMNS).map((name, index) => [name, values[index]]));
}
