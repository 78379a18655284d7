import type { Database } from '../../kernel/storage/index.ts';

/** A session as its caller asked for it. */
export interface SessionRecord {
  sessionId: string;
  accountId: string;
  interpreterArn: string;
  /** Who started it, as `ownerOf` says; undefined for one of before that was kept. */
  owner: string | undefined;
  name: string | undefined;
  timeoutSeconds: number;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

export interface RecordPage {
  limit: number;
  after: string | undefined;
  /** Only what was started by this one; undefined for all. */
  owner: string | undefined;
  /** Only these ids, or all but these. */
  live?: { ids: readonly string[]; wanted: boolean };
}

interface Row {
  session_id: string;
  account_id: string;
  interpreter_arn: string;
  owner: string | null;
  name: string | null;
  timeout_seconds: number;
  created_at: number;
}

/** The sessions that were ever started, in the table `code_interpreter_sessions`. */
export class SessionRecords {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async add(record: SessionRecord): Promise<void> {
    await this.#database.execute(
      `INSERT INTO code_interpreter_sessions (session_id, account_id, interpreter_arn, owner, name, timeout_seconds, created_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      [
        record.sessionId,
        record.accountId,
        record.interpreterArn,
        record.owner ?? null,
        record.name ?? null,
        record.timeoutSeconds,
        Math.round(record.createdAt),
      ],
    );
  }

  async remove(sessionId: string): Promise<void> {
    await this.#database.execute('DELETE FROM code_interpreter_sessions WHERE session_id = $1', [sessionId]);
  }

  /** Undefined for another account's session as for none. */
  async get(accountId: string, interpreterArn: string, sessionId: string): Promise<SessionRecord | undefined> {
    const [row] = await this.#database.query<Row>(
      'SELECT * FROM code_interpreter_sessions WHERE session_id = $1 AND account_id = $2 AND interpreter_arn = $3',
      [sessionId, accountId, interpreterArn],
    );
    return row && fromRow(row);
  }

  /** Newest first; `after` is `next` of the page before. */
  async list(
    accountId: string,
    interpreterArn: string,
    page: RecordPage,
  ): Promise<{ items: SessionRecord[]; next: string | undefined }> {
    const [at, id] = page.after?.split(' ') ?? [];
    const rows = await this.#database.query<Row>(
      `SELECT * FROM code_interpreter_sessions
       WHERE account_id = $1 AND interpreter_arn = $2
         AND ($3::bigint IS NULL OR (created_at, session_id) < ($3::bigint, $4::text))
         AND ($5::jsonb IS NULL OR ($5::jsonb ? session_id) = $6::boolean)
         AND ($7::text IS NULL OR owner = $7::text)
       ORDER BY created_at DESC, session_id DESC LIMIT $8`,
      [
        accountId,
        interpreterArn,
        at === undefined ? null : Number(at),
        id ?? null,
        page.live ? JSON.stringify(page.live.ids) : null,
        page.live?.wanted ?? null,
        page.owner ?? null,
        page.limit + 1,
      ],
    );
    const items = rows.slice(0, page.limit).map(fromRow);
    const last = items.at(-1);
    return { items, next: rows.length > page.limit && last ? `${last.createdAt} ${last.sessionId}` : undefined };
  }
}

function fromRow(row: Row): SessionRecord {
  return {
    sessionId: row.session_id,
    accountId: row.account_id,
    interpreterArn: row.interpreter_arn,
    owner: row.owner ?? undefined,
    name: row.name ?? undefined,
    timeoutSeconds: row.timeout_seconds,
    createdAt: Number(row.created_at),
  };
}
