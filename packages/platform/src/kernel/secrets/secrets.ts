import { randomBytes } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Database, Executor } from '../storage/index.ts';
import { KEY_BYTES, open, seal } from './envelope.ts';
import { SecretIntegrityError } from './errors.ts';
import type { MasterKeys } from './master-keys.ts';
import { Secret } from './secret.ts';

/** Whose secret, and which. */
export interface SecretName {
  accountId: string;
  /** Any text; services take the ARN of what the secret belongs to, and a word. */
  name: string;
}

/** Secrets at rest: each value under a data key of its own, the data keys under the master key, bound to account and name. */
export interface Secrets {
  /** Stores or replaces. Give `tx` to store it together with other rows. */
  put(name: SecretName, value: Secret, tx?: Executor): Promise<void>;
  /** Stores it unless there is one, and gives the one that there is then: servers that start at once get the same. */
  keep(name: SecretName, value: Secret): Promise<Secret>;
  /** Undefined when there is none; throws `SecretIntegrityError` when it was tampered with. */
  get(name: SecretName): Promise<Secret | undefined>;
  /** Whether there was one. */
  delete(name: SecretName, tx?: Executor): Promise<boolean>;
  /**
   * Makes a new master key, seals every data key anew with it and forgets the old ones, while others read and write. With
   * `keepKeys`, and where they come from the configuration, the keys stay as they are: everything is sealed with the first of them. `others` is called before the old ones go, and must seal anew
   * whatever else lies under the master key (the sealer's texts). Returns how many were sealed anew. Without
   * `keepKeys` no other server may be at work: it would not know the new key.
   */
  rotate(others?: () => Promise<number>, options?: { keepKeys?: boolean }): Promise<number>;
}

interface Row {
  account_id: string;
  name: string;
  key_id: string;
  sealed_key: Uint8Array;
  sealed_value: Uint8Array;
}

const ROTATION_BATCH = 100;
const REPLACE = `DO UPDATE
  SET key_id = excluded.key_id, sealed_key = excluded.sealed_key, sealed_value = excluded.sealed_value,
      version = secrets.version + 1, updated_at = excluded.updated_at`;

export function createSecrets(deps: { database: Database; keys: MasterKeys; clock: Clock }): Secrets {
  const { database, keys, clock } = deps;

  const openKey = (row: Row): Buffer => {
    const master = keys.byId(row.key_id);
    if (!master) {
      throw new SecretIntegrityError(`the master key ${row.key_id} is not known: restore the file of master keys`);
    }
    return open(master.bytes, row.sealed_key, contextOf('key', row.account_id, row.name));
  };

  const resealOnce = async (): Promise<number> =>
    database.transaction(async (tx) => {
      const { id, bytes } = keys.current();
      const rows = await tx.query<Row>(
        'SELECT account_id, name, key_id, sealed_key, sealed_value FROM secrets WHERE key_id <> $1 LIMIT $2 FOR UPDATE',
        [id, ROTATION_BATCH],
      );
      for (const row of rows) {
        const sealed = seal(bytes, openKey(row), contextOf('key', row.account_id, row.name));
        await tx.query('UPDATE secrets SET key_id = $3, sealed_key = $4 WHERE account_id = $1 AND name = $2', [
          row.account_id,
          row.name,
          id,
          sealed,
        ]);
      }
      return rows.length;
    });

  const insert = async (name: SecretName, value: Secret, onConflict: string, tx: Executor): Promise<void> => {
    const { accountId, name: of } = name;
    const master = keys.current();
    const dataKey = randomBytes(KEY_BYTES);
    await tx.query(
      `INSERT INTO secrets (account_id, name, key_id, sealed_key, sealed_value, version, updated_at)
       VALUES ($1, $2, $3, $4, $5, 1, $6) ON CONFLICT (account_id, name) ${onConflict}`,
      [
        accountId,
        of,
        master.id,
        seal(master.bytes, dataKey, contextOf('key', accountId, of)),
        seal(dataKey, Buffer.from(value.reveal()), contextOf('value', accountId, of)),
        new Date(clock.now()),
      ],
    );
    // A rotation ended before the statement was run: what it wrote nobody could open.
    if (!keys.byId(master.id)) await insert(name, value, `${REPLACE} WHERE secrets.key_id = '${master.id}'`, tx);
  };

  /** Forgets the old keys, unless something is still under one. Whoever is writing is waited for; who writes from then on sees that they are gone. */
  const retire = async (): Promise<boolean> =>
    database.transaction(async (tx) => {
      await tx.exec('LOCK TABLE secrets IN SHARE MODE');
      const [left] = await tx.query('SELECT 1 FROM secrets WHERE key_id <> $1 LIMIT 1', [keys.current().id]);
      if (left) return false;
      await keys.retire();
      return true;
    });

  const get = async ({ accountId, name }: SecretName): Promise<Secret | undefined> => {
    const [row] = await database.query<Row>(
      'SELECT account_id, name, key_id, sealed_key, sealed_value FROM secrets WHERE account_id = $1 AND name = $2',
      [accountId, name],
    );
    if (!row) return undefined;
    return new Secret(open(openKey(row), row.sealed_value, contextOf('value', accountId, name)).toString());
  };

  return {
    put: (name, value, tx = database) => insert(name, value, REPLACE, tx),
    keep: async (name, value) => {
      const known = await get(name);
      if (known) return known;
      await insert(name, value, 'DO NOTHING', database);
      // Deleted in between, it is the caller's own that counts.
      return (await get(name)) ?? value;
    },
    get,
    delete: async ({ accountId, name }, tx = database) =>
      (await tx.execute('DELETE FROM secrets WHERE account_id = $1 AND name = $2', [accountId, name])) > 0,
    rotate: async (others, { keepKeys = keys.fixed } = {}) => {
      if (!keepKeys) await keys.add();
      let total = 0;
      for (;;) {
        const count = await resealOnce();
        total += count;
        if (count > 0) continue;
        // Late, so that what was being written when the key changed is there by now.
        const more = others ? await others() : 0;
        if (keepKeys || (await retire())) return total + more;
      }
    },
  };
}

/** Unambiguous whatever the names contain; what was sealed for one place opens in no other. */
function contextOf(part: 'key' | 'value', accountId: string, name: string): string {
  return JSON.stringify(['agentplatform-secret', part, accountId, name]);
}
