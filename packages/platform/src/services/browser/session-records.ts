import type { data } from '@agentplatform/contract';
import type { Database } from '../../kernel/storage/index.ts';
import { number, object, text, wire } from '../../kernel/stored-shape.ts';

/** What its caller asked of a session, as GetBrowserSession gives it back. */
export interface AskedSession {
  name?: string | undefined;
  timeoutSeconds: number;
  viewPort: data.ViewPort;
  profileIdentifier?: string | undefined;
}

/** A session as its caller asked for it. */
export interface SessionRecord {
  sessionId: string;
  accountId: string;
  browserArn: string;
  /** Who started it, as `ownerOf` says. */
  owner: string;
  asked: AskedSession;
  /** Whether programs may drive it. */
  automation: data.AutomationStreamStatus;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

export interface RecordPage {
  limit: number;
  after: string | undefined;
  /** Only what was started by this one; undefined for all. */
  owner: string | undefined;
  /** Only these ids, or all but these. */
  live?: { ids: readonly string[]; wanted: boolean };
}

const ASKED = object(
  { timeoutSeconds: number, viewPort: wire<data.ViewPort>() },
  { name: text, profileIdentifier: text },
);

interface Row {
  session_id: string;
  account_id: string;
  browser_arn: string;
  owner: string;
  asked: unknown;
  automation: data.AutomationStreamStatus;
  created_at: number;
  updated_at: number;
}

/** The sessions that were ever started, in the table `browser_sessions`. */
export class SessionRecords {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async add(record: SessionRecord): Promise<void> {
    await this.#database.execute(
      `INSERT INTO browser_sessions (session_id, account_id, browser_arn, owner, asked, automation, created_at, updated_at)
       VALUES ($1, $2, $3, $4, $5::jsonb, $6, $7, $7)`,
      [
        record.sessionId,
        record.accountId,
        record.browserArn,
        record.owner,
        JSON.stringify(record.asked),
        record.automation,
        Math.round(record.createdAt),
      ],
    );
  }

  async remove(sessionId: string): Promise<void> {
    await this.#database.execute('DELETE FROM browser_sessions WHERE session_id = $1', [sessionId]);
  }

  /** UpdateBrowserStream. */
  async setAutomation(sessionId: string, automation: data.AutomationStreamStatus, now: number): Promise<void> {
    await this.#database.execute('UPDATE browser_sessions SET automation = $2, updated_at = $3 WHERE session_id = $1', [
      sessionId,
      automation,
      Math.round(now),
    ]);
  }

  /** Undefined for another account's session as for none. */
  async get(accountId: string, browserArn: string, sessionId: string): Promise<SessionRecord | undefined> {
    const [row] = await this.#database.query<Row>(
      'SELECT * FROM browser_sessions WHERE session_id = $1 AND account_id = $2 AND browser_arn = $3',
      [sessionId, accountId, browserArn],
    );
    return row && fromRow(row);
  }

  /** Newest first; `after` is `next` of the page before. */
  async list(
    accountId: string,
    browserArn: string,
    page: RecordPage,
  ): Promise<{ items: SessionRecord[]; next: string | undefined }> {
    const [at, id] = page.after?.split(' ') ?? [];
    const rows = await this.#database.query<Row>(
      `SELECT * FROM browser_sessions
       WHERE account_id = $1 AND browser_arn = $2
         AND ($3::bigint IS NULL OR (created_at, session_id) < ($3::bigint, $4::text))
         AND ($5::jsonb IS NULL OR ($5::jsonb ? session_id) = $6::boolean)
         AND ($7::text IS NULL OR owner = $7::text)
       ORDER BY created_at DESC, session_id DESC LIMIT $8`,
      [
        accountId,
        browserArn,
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
    browserArn: row.browser_arn,
    owner: row.owner,
    asked: ASKED(row.asked, 'asked'),
    automation: row.automation,
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
  };
}
