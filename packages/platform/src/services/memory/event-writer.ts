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
  row: object;
  size: number;
  resolve(outcome: WriteOutcome): void;
  reject(error: unknown): void;
}

const INSERT = `
  WITH input AS (
    SELECT * FROM json_to_recordset($1::json) AS x(memory_id text, actor_id text, session_id text, event_id text,
      at timestamptz, created_at timestamptz, expires_at timestamptz, payload text, metadata jsonb, branch text,
      root_event_id text, variables jsonb, client_token text, fingerprint text, pending boolean)),
  written AS (
    INSERT INTO memory_events (memory_id, actor_id, session_id, event_id, at, created_at, expires_at, payload, metadata,
      branch, root_event_id, variables, client_token, fingerprint, pending)
    SELECT * FROM input
    ON CONFLICT (memory_id, client_token) WHERE client_token IS NOT NULL DO NOTHING
    RETURNING memory_id, actor_id, session_id, event_id, created_at),
  sessions AS (
    INSERT INTO memory_sessions (memory_id, actor_id, session_id, created_at)
    SELECT memory_id, actor_id, session_id, min(created_at) FROM written GROUP BY 1, 2, 3
    ON CONFLICT DO NOTHING)
  SELECT event_id FROM written`;

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
      this.#waiting.push({ event, row: rowOf(event, payload), size: payload.length, resolve, reject });
      if (!this.#writing) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#writing = true;
    while (this.#waiting.length > 0) {
      const batch = this.#next();
      try {
        const rows = await this.#database.query<{ event_id: string }>(INSERT, [
          JSON.stringify(batch.map(({ row }) => row)),
        ]);
        const written = new Set(rows.map((row) => row.event_id));
        for (const { event, resolve } of batch) resolve(written.has(event.eventId) ? 'written' : 'duplicate');
      } catch (error) {
        // One event must not fail for its neighbour's sake.
        if (batch.length === 1) batch[0]?.reject(error);
        else for (const one of batch) await this.#alone(one);
      }
    }
    this.#writing = false;
  }

  async #alone({ event, row, resolve, reject }: Waiting): Promise<void> {
    try {
      const rows = await this.#database.query(INSERT, [JSON.stringify([row])]);
      resolve(rows.length === 1 ? 'written' : event.clientToken === undefined ? 'written' : 'duplicate');
    } catch (error) {
      reject(error);
    }
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

function rowOf(event: NewEvent, payload: string): object {
  return {
    memory_id: event.memoryId,
    actor_id: event.actorId,
    session_id: event.sessionId,
    event_id: event.eventId,
    at: event.at.toISOString(),
    created_at: event.createdAt.toISOString(),
    expires_at: event.expiresAt.toISOString(),
    payload,
    metadata: event.metadata,
    branch: event.branch?.name ?? null,
    root_event_id: event.branch?.rootEventId ?? null,
    variables: event.variables,
    client_token: event.clientToken ?? null,
    fingerprint: event.fingerprint,
    pending: event.pending,
  };
}
