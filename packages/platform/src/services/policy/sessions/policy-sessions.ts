import { errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Database, Executor } from '../../../kernel/storage/index.ts';
import { storedText, wire } from '../../../kernel/stored-shape.ts';
import type { HistoryEvent, SessionHistory } from '../engine/door.ts';
import { LONGEST_WINDOW_MS } from '../tables.ts';

/** Something that happened in a session, as temporal conditions see it. */
export type Happened = Omit<HistoryEvent, 'time'>;

/** Which session, of whom. */
export interface PolicySession {
  engineArn: string;
  /** Of the engine now. */
  epoch: number;
  id: string;
  /** Whose it is, as a text to be compared. */
  owner: string;
  /** How far back its engine's policies look. */
  windowMs: number;
}

interface Row {
  principal: string;
  epoch: number;
  began: number;
  last_seq: number;
  last_at: number;
}

/** As the header has it. */
const ID = /^[A-Za-z0-9._:-]{1,256}$/;
/** Of one session within the window of its policies. */
const MOST_EVENTS = 10_000;
/** Longest event, in characters of JSON. */
const LONGEST_EVENT = 256 * 1024;
/** Events that are too old go when so many have come. */
const PRUNE_EVERY = 64;

/**
 * The events of policy sessions. They are in the database, so all servers see the same. A decision locks the row of the session until its request is
 * written, so each of three concurrent requests sees the ones before it. The engine remembers the events that it has seen, and each decision reads only the newer ones.
 */
export class PolicySessions {
  readonly #database: Pick<Database, 'transaction'>;
  readonly #clock: Pick<Clock, 'now'>;

  constructor({ database, clock }: { database: Pick<Database, 'transaction'>; clock: Pick<Clock, 'now'> }) {
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * Decides on a request by what was before it. The request, and the error event of one that `decide` says is refused, are durable before this
   * resolves. `undone`: what the engine was told did not come to be. Rejects with ValidationException, AccessDeniedException for a session of
   * somebody else, and ConflictException for one that is over.
   */
  async decide<Decided extends { refused: boolean }>(
    session: PolicySession,
    request: Happened,
    decide: (history: SessionHistory, now: Date) => Promise<Decided>,
    undone: (historyId: string) => Promise<void>,
  ): Promise<Decided> {
    checkId(session.id);
    let told: string | undefined;
    try {
      return await this.#database.transaction(async (tx) => {
        const row = await this.#hold(session, tx);
        const at = this.#next(row);
        told = JSON.stringify([session.engineArn, session.id, row.epoch, row.began]);
        const since = at - Math.min(session.windowMs, LONGEST_WINDOW_MS);
        const events = (after: number) => this.#events(session, { after, since }, tx);
        const decided = await decide({ id: told, sequence: row.last_seq + 1, events }, new Date(at));
        const error: Happened[] = decided.refused ? [{ ...request, kind: 'error' }] : [];
        await this.#write(session, row, [request, ...error], tx);
        return decided;
      });
    } catch (error) {
      if (told !== undefined) await undone(told);
      throw error;
    }
  }

  /** Remembers how a request ended. Rejects as `decide`. */
  async add(session: PolicySession, happened: Happened): Promise<void> {
    await this.#database.transaction(async (tx) => {
      const row = await this.#hold(session, tx);
      await this.#write(session, row, [happened], tx);
    });
  }

  /** What was in a session before that moment, to look at. */
  async before(engineArn: string, id: string, at: number, database: Pick<Executor, 'query'>): Promise<HistoryEvent[]> {
    const rows = await database.query<{ at: number; event: string }>(
      'SELECT at, event FROM policy_events WHERE engine_arn = $1 AND session_id = $2 AND at < $3 ORDER BY seq LIMIT $4',
      [engineArn, id, at, MOST_EVENTS],
    );
    return rows.map(eventOf);
  }

  async #hold({ engineArn, id, owner, epoch }: PolicySession, tx: Executor): Promise<Row> {
    await tx.execute(
      `INSERT INTO policy_sessions (engine_arn, session_id, principal, epoch, began, last_seq, last_at, used_at)
       VALUES ($1, $2, $3, $4, $5, 0, 0, $6) ON CONFLICT DO NOTHING`,
      [engineArn, id, owner, epoch, this.#clock.now(), new Date(this.#clock.now())],
    );
    const [row] = await tx.query<Row>(
      'SELECT principal, epoch, began, last_seq, last_at FROM policy_sessions WHERE engine_arn = $1 AND session_id = $2 FOR UPDATE',
      [engineArn, id],
    );
    if (!row) throw new Error('a policy session went away while it was held');
    if (row.principal !== owner)
      throw errors.accessDenied('This policy session belongs to another caller.', {
        remedy: 'Begin one of your own: send an id that nobody else uses.',
      });
    if (row.epoch !== epoch)
      throw errors.conflict('This policy session is over: the temporal policies of its engine have changed.', {
        remedy: 'Begin a new one: send another id.',
      });
    return row;
  }

  /** A clock that stepped back, and one of another server that is behind, do not change the order. */
  #next({ last_at }: Row): number {
    return Math.max(this.#clock.now(), last_at + 1);
  }

  async #events(
    { engineArn, id }: PolicySession,
    { after, since }: { after: number; since: number },
    tx: Executor,
  ): Promise<HistoryEvent[]> {
    const rows = await tx.query<{ at: number; event: string }>(
      `SELECT at, event FROM policy_events WHERE engine_arn = $1 AND session_id = $2 AND seq > $3 AND at >= $4
       ORDER BY seq LIMIT $5`,
      [engineArn, id, after, since, MOST_EVENTS + 1],
    );
    if (rows.length > MOST_EVENTS)
      throw errors.quota(`A policy session has at most ${MOST_EVENTS} events within the window of its policies.`, {
        remedy: 'Begin a new one: send another id.',
      });
    return rows.map(eventOf);
  }

  async #write(session: PolicySession, row: Row, happened: readonly Happened[], tx: Executor): Promise<void> {
    const { engineArn, id } = session;
    let { last_seq: seq, last_at } = row;
    const rows = happened.map((one) => {
      last_at = this.#next({ ...row, last_at });
      return { seq: ++seq, at: last_at, event: written(one) };
    });
    await tx.execute(
      `INSERT INTO policy_events (engine_arn, session_id, seq, at, event)
       SELECT $1, $2, seq, at, event FROM json_to_recordset($3::json) AS r(seq bigint, at bigint, event text)`,
      [engineArn, id, JSON.stringify(rows)],
    );
    await tx.execute(
      'UPDATE policy_sessions SET last_seq = $3, last_at = $4, used_at = $5 WHERE engine_arn = $1 AND session_id = $2',
      [engineArn, id, seq, last_at, new Date(this.#clock.now())],
    );
    if (Math.floor(seq / PRUNE_EVERY) > Math.floor(row.last_seq / PRUNE_EVERY))
      await tx.execute('DELETE FROM policy_events WHERE engine_arn = $1 AND session_id = $2 AND at < $3', [
        ...[engineArn, id, last_at - Math.min(session.windowMs, LONGEST_WINDOW_MS)],
      ]);
  }
}

function checkId(id: string): void {
  if (!ID.test(id))
    throw errors.validation('The id of a policy session has 1 to 256 letters, digits, ".", "_", ":" and "-".');
}

/** As it is kept. Throws ValidationException for one that is too long: what is not remembered could not be counted. */
function written(happened: Happened): string {
  const text = JSON.stringify(happened);
  if (text.length <= LONGEST_EVENT) return text;
  throw errors.validation(
    `What a tool takes and gives may have ${LONGEST_EVENT / 1024} KiB where temporal policies have to remember it.`,
  );
}

function eventOf({ at, event }: { at: number; event: string }): HistoryEvent {
  return { ...storedText(wire<Happened>(), event), time: new Date(at) };
}
