import type { Database, Executor } from '../storage/index.ts';
import type { ServerRecord, ServerStore } from './server-store.ts';

interface Row {
  server_id: string;
  epoch: number;
  beat: number;
  lease_ms: number;
  address: string | null;
}

/** The servers in the database (`tables.ts`). */
export function createSqlServerStore(database: Database): ServerStore {
  return {
    async claim({ serverId, leaseMs, address }) {
      const [row] = await database.query<{ epoch: number }>(
        `INSERT INTO servers (server_id, epoch, beat, lease_ms, address)
         VALUES ($1, nextval('server_epochs'), 0, $2, $3)
         ON CONFLICT (server_id) DO UPDATE SET
           epoch = excluded.epoch, beat = 0, lease_ms = excluded.lease_ms, address = excluded.address
         RETURNING epoch`,
        [serverId, leaseMs, address ?? null],
      );
      if (!row) throw new Error('unreachable: a claim returns its row');
      return row.epoch;
    },
    async renew(serverId, epoch) {
      const changed = await database.execute('UPDATE servers SET beat = beat + 1 WHERE server_id = $1 AND epoch = $2', [
        serverId,
        epoch,
      ]);
      if (changed === 0) return undefined;
      return (await database.query<Row>('SELECT * FROM servers')).map(toRecord);
    },
    depose: ({ serverId, epoch, beat }, at) =>
      database.transaction(async (tx) => {
        // The row's lock keeps a renewal, and the `begin` of a session, of that server waiting until it is gone.
        const deposed = await tx.execute('DELETE FROM servers WHERE server_id = $1 AND epoch = $2 AND beat = $3', [
          serverId,
          epoch,
          beat,
        ]);
        if (deposed === 0) return undefined;
        return endAll(tx, serverId, 'lost', at);
      }),
    async announce(serverId, epoch, address) {
      await database.execute('UPDATE servers SET address = $3 WHERE server_id = $1 AND epoch = $2', [
        serverId,
        epoch,
        address,
      ]);
    },
    release: (serverId, epoch, at) =>
      database.transaction(async (tx) => {
        const left = await tx.execute('DELETE FROM servers WHERE server_id = $1 AND epoch = $2', [serverId, epoch]);
        if (left > 0) await endAll(tx, serverId, 'shutdown', at);
      }),
  };
}

function endAll(tx: Executor, serverId: string, reason: 'lost' | 'shutdown', at: number): Promise<number> {
  return tx.execute('UPDATE sessions SET ended_at = $2, end_reason = $3 WHERE server_id = $1 AND ended_at IS NULL', [
    serverId,
    Math.round(at),
    reason,
  ]);
}

function toRecord(row: Row): ServerRecord {
  return {
    serverId: row.server_id,
    epoch: row.epoch,
    beat: row.beat,
    leaseMs: row.lease_ms,
    address: row.address ?? undefined,
  };
}
