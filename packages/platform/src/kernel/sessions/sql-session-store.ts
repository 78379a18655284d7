import type { Database } from '../storage/index.ts';
import { NotHeldError, type ServerHold } from './server-hold.ts';
import type { EndReason } from './session-state.ts';
import type {
  LiveSession,
  ServerHolder,
  SessionAddress,
  SessionRow,
  SessionStore,
  SessionSummary,
} from './session-store.ts';

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
  cpu_seconds_before: number;
  kind: string;
  server_id: string;
}

/** Of taking an id whose holder ends at that very moment. */
const MAX_ATTEMPTS = 5;

/** The sessions in the database (`tables.ts`). */
export function createSqlSessionStore(database: Database): SessionStore {
  /** Waits for a deposition of this server that is under way, and does nothing after it. */
  const insert = async (row: SessionRow, hold: ServerHold, activatedAt: number | undefined): Promise<boolean> => {
    const inserted = await database.execute(
      `WITH me AS (SELECT server_id FROM servers WHERE server_id = $11 AND epoch = $12 FOR SHARE)
       INSERT INTO sessions (sandbox_id, account_id, resource_arn, session_id, version, idle_seconds, max_lifetime_seconds, port,
         created_at, activated_at, server_id, cpu_seconds_before, kind)
       SELECT $1, $2, $3, $4, $5, $6::float8, $7::float8, $8::int, $9::bigint, $10::bigint, server_id, $13::float8, $14 FROM me
       ON CONFLICT (resource_arn, session_id) WHERE ended_at IS NULL DO NOTHING`,
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
        activatedAt === undefined ? null : Math.round(activatedAt),
        hold.serverId,
        hold.epoch,
        row.cpuSecondsBefore,
        row.kind,
      ],
    );
    return inserted > 0;
  };
  const holderOf = async (key: { resourceArn: string; sessionId: string }): Promise<ServerHolder | undefined> => {
    const [row] = await database.query<{ server_id: string; epoch: number | null; address: string | null }>(
      `SELECT sessions.server_id, servers.epoch, servers.address FROM sessions LEFT JOIN servers ON servers.server_id = sessions.server_id
       WHERE resource_arn = $1 AND session_id = $2 AND ended_at IS NULL`,
      [key.resourceArn, key.sessionId],
    );
    // Epochs begin with 1: a server that is not there has no life, and no address either.
    return row && { serverId: row.server_id, epoch: row.epoch ?? 0, address: row.address ?? undefined };
  };
  const isCurrent = async ({ serverId, epoch }: ServerHold): Promise<boolean> =>
    (await database.query('SELECT 1 FROM servers WHERE server_id = $1 AND epoch = $2', [serverId, epoch])).length > 0;
  return {
    async begin(row, hold, activatedAt) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        if (await insert(row, hold, activatedAt)) return undefined;
        const holder = await holderOf(row);
        if (holder) return holder;
        if (!(await isCurrent(hold))) throw new NotHeldError();
        // Whoever had it has ended in between.
      }
      throw new Error(`the session ${row.sessionId} begins and ends too often`);
    },
    async activate(sandboxId, at) {
      const changed = await database.execute(
        'UPDATE sessions SET activated_at = $2 WHERE sandbox_id = $1 AND ended_at IS NULL',
        [sandboxId, Math.round(at)],
      );
      return changed > 0;
    },
    async end(sandboxId, reason, at) {
      await database.execute(
        'UPDATE sessions SET ended_at = $3, end_reason = $2 WHERE sandbox_id = $1 AND ended_at IS NULL',
        [sandboxId, reason, Math.round(at)],
      );
    },
    async live(serverId) {
      await database.execute("UPDATE sessions SET server_id = $1 WHERE server_id = '' AND ended_at IS NULL", [
        serverId,
      ]);
      const rows = await database.query<Row>('SELECT * FROM sessions WHERE server_id = $1 AND ended_at IS NULL', [
        serverId,
      ]);
      return rows.map((row) => ({
        ...toSession(row),
        active: row.activated_at !== null,
        activatedAt: row.activated_at ?? undefined,
      }));
    },
    holder: (resourceArn, sessionId) => holderOf({ resourceArn, sessionId }),
    async inSandbox(sandboxId) {
      const [row] = await database.query<Row>('SELECT * FROM sessions WHERE sandbox_id = $1 AND ended_at IS NULL', [
        sandboxId,
      ]);
      return row && addressOf(toSession(row));
    },
    async of(resourceArn) {
      const rows = await database.query<Row>(
        'SELECT * FROM sessions WHERE resource_arn = $1 AND ended_at IS NULL ORDER BY created_at DESC, sandbox_id',
        [resourceArn],
      );
      return rows.map(toLive);
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

function addressOf({ kind, accountId, resourceArn, sessionId }: SessionRow): SessionAddress {
  return { kind, accountId, resourceArn, sessionId };
}

function toSession(row: Row): SessionRow {
  return {
    sandboxId: row.sandbox_id,
    kind: row.kind,
    accountId: row.account_id,
    resourceArn: row.resource_arn,
    sessionId: row.session_id,
    version: row.version,
    lifecycle: { idleSeconds: row.idle_seconds, maxLifetimeSeconds: row.max_lifetime_seconds },
    port: row.port,
    createdAt: row.created_at,
    cpuSecondsBefore: row.cpu_seconds_before,
  };
}

function toLive(row: Row): LiveSession {
  return { ...toSession(row), serverId: row.server_id, state: row.activated_at === null ? 'starting' : 'active' };
}

function toSummary(row: Row): SessionSummary {
  return {
    sandboxId: row.sandbox_id,
    kind: row.kind,
    resourceArn: row.resource_arn,
    sessionId: row.session_id,
    version: row.version,
    state: row.ended_at !== null ? 'ended' : row.activated_at !== null ? 'active' : 'starting',
    createdAt: row.created_at,
    endedAt: row.ended_at ?? undefined,
    endReason: row.end_reason ?? undefined,
  };
}
