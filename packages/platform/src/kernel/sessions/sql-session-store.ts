import type { Database } from '../storage/database.ts';
import type { EndReason } from './session-state.ts';
import type { SessionRow, SessionStore, SessionSummary } from './session-store.ts';

interface Row {
  sandbox_id: string;
  account_id: string;
  resource_arn: string;
  session_id: string;
  version: string;
  idle_seconds: number;
  max_lifetime_seconds: number;
  port: number;
  created_at: number;
  activated_at: number | null;
  ended_at: number | null;
  end_reason: EndReason | 'lost' | null;
}

/** The sessions in the database (`tables.ts`). */
export function createSqlSessionStore(database: Database): SessionStore {
  return {
    async begin(row) {
      await database.execute(
        `INSERT INTO sessions (sandbox_id, account_id, resource_arn, session_id, version, idle_seconds, max_lifetime_seconds, port, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
        [
          row.sandboxId,
          row.accountId,
          row.resourceArn,
          row.sessionId,
          row.version,
          row.lifecycle.idleSeconds,
          row.lifecycle.maxLifetimeSeconds,
          row.port,
          Math.round(row.createdAt),
        ],
      );
    },
    async activate(sandboxId, at) {
      await database.execute('UPDATE sessions SET activated_at = $2 WHERE sandbox_id = $1 AND ended_at IS NULL', [
        sandboxId,
        Math.round(at),
      ]);
    },
    async end(sandboxId, reason, at) {
      await database.execute(
        'UPDATE sessions SET ended_at = $3, end_reason = $2 WHERE sandbox_id = $1 AND ended_at IS NULL',
        [sandboxId, reason, Math.round(at)],
      );
    },
    async live() {
      const rows = await database.query<Row>('SELECT * FROM sessions WHERE ended_at IS NULL');
      return rows.map((row) => ({
        ...toSession(row),
        active: row.activated_at !== null,
        activatedAt: row.activated_at ?? undefined,
      }));
    },
    async list(resourceArn, limit) {
      const rows = await database.query<Row>(
        'SELECT * FROM sessions WHERE resource_arn = $1 ORDER BY created_at DESC, sandbox_id LIMIT $2',
        [resourceArn, limit],
      );
      return rows.map(toSummary);
    },
  };
}

function toSession(row: Row): SessionRow {
  return {
    sandboxId: row.sandbox_id,
    accountId: row.account_id,
    resourceArn: row.resource_arn,
    sessionId: row.session_id,
    version: row.version,
    lifecycle: { idleSeconds: row.idle_seconds, maxLifetimeSeconds: row.max_lifetime_seconds },
    port: row.port,
    createdAt: row.created_at,
  };
}

function toSummary(row: Row): SessionSummary {
  return {
    sandboxId: row.sandbox_id,
    resourceArn: row.resource_arn,
    sessionId: row.session_id,
    version: row.version,
    state: row.ended_at !== null ? 'ended' : row.activated_at !== null ? 'active' : 'starting',
    createdAt: row.created_at,
    endedAt: row.ended_at ?? undefined,
    endReason: row.end_reason ?? undefined,
  };
}
