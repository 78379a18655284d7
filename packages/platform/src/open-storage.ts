import { join } from 'node:path';
import { journalSinks } from './journal-sinks.ts';
import { createJournal, type Journal } from './kernel/journal/index.ts';
import {
  configuredMasterKeys,
  createSecrets,
  type MasterKeys,
  openMasterKeyFile,
  type Secrets,
} from './kernel/secrets/index.ts';
import { ChangeFeed, type Database, IdempotencyStore, migrate, openDatabase } from './kernel/storage/index.ts';
import { allMigrations } from './migrations.ts';
import type { Ground } from './open-ground.ts';
import type { AnyModule } from './service-module.ts';

/** What outlives the server. */
export interface Storage {
  database: Database;
  /** Whether other servers may be on the same database. */
  shared: boolean;
  /** Tells what any server has changed; whoever keeps something in memory subscribes while it is made. */
  changes: ChangeFeed;
  masterKeys: MasterKeys;
  secrets: Secrets;
  journal: Journal<Record<string, unknown>>;
  idempotency: IdempotencyStore;
}

/** Opens the database with the tables of these services, and what lies before it. */
export async function openStorage(ground: Ground, modules: readonly AnyModule[]): Promise<Storage> {
  const { config, clock, log, cache, closing } = ground;
  const migrations = allMigrations(modules);
  const opened = await openDatabase({
    dataDir: config.data,
    clock,
    log,
    cacheDir: join(cache.path, 'database'),
    prepared: migrations,
    ...(config.databaseUrl ? { url: config.databaseUrl } : {}),
  });
  const database = ground.tracer.watch(opened);
  closing.add(() => database.close());
  await migrate(database, migrations, log);
  const changes = await ChangeFeed.open({ database, leaseMs: config.servers.leaseSeconds * 1000, clock, log });
  closing.add(() => changes.close());
  const masterKeys = config.secrets.key
    ? configuredMasterKeys(config.secrets.key)
    : await openMasterKeyFile(config.secrets.keyFile ?? join(config.data, 'keys', 'master.key'));
  const secrets = createSecrets({ database, keys: masterKeys, clock });
  const journal = await createJournal({
    dir: join(config.data, 'journal'),
    database,
    clock,
    log,
    sinks: journalSinks(modules),
  });
  closing.add(() => journal.close());
  const idempotency = new IdempotencyStore({ database, clock, newId: ground.identifiers.request });
  return { database, shared: database.kind === 'postgres', changes, masterKeys, secrets, journal, idempotency };
}
