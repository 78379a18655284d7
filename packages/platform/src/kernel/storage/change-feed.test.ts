import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { until } from '../sandbox/testing/until.ts';
import { ChangeFeed, type ChangeFeedDeps } from './change-feed.ts';
import { type Change, forgetChanges, noteChanges } from './changes.ts';
import type { Database, Executor } from './database.ts';
import { type Migration, migrate } from './migrations.ts';
import { storageMigrations } from './tables.ts';
import { describeDatabases, silent, type TemporaryDatabase, temporaryPglite } from './testing/databases.ts';
import { startPostgres, type TestPostgres } from './testing/postgres.ts';

const migrations: Migration[] = [
  ...storageMigrations,
  { id: 'test/0001', sql: 'CREATE TABLE kept (id text PRIMARY KEY, value int); CREATE TABLE unkept (id text)' },
  { id: 'test/0002', sql: noteChanges('kept', 'id') },
];

const put = (on: Executor, id: string): Promise<number> =>
  on.execute('INSERT INTO kept VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET value = kept.value + 1', [id]);

const feeds: ChangeFeed[] = [];
afterEach(async () => {
  await Promise.all(feeds.splice(0).map((feed) => feed.close()));
});

/** A feed that has started, and what it has told so far. */
async function heardOn(
  database: ChangeFeedDeps['database'],
  over: { leaseMs?: number; take?: () => Promise<void> } = {},
): Promise<{ feed: ChangeFeed; told: (Change | 'all')[] }> {
  const feed = await ChangeFeed.open({ database, leaseMs: over.leaseMs ?? 60_000, clock: systemClock, log: silent });
  feeds.push(feed);
  const told: (Change | 'all')[] = [];
  feed.subscribe(['kept', 'thing'], async (changes) => {
    await over.take?.();
    told.push(...(changes === 'all' ? (['all'] as const) : changes));
  });
  await feed.start();
  return { feed, told };
}

const kept = (key: string): Change => ({ topic: 'kept', key });

describeDatabases('what a server itself has changed', migrations, (database) => {
  it('is taken over before its writer goes on, whatever way it was written', async () => {
    const { told } = await heardOn(database());
    await put(database(), 'a');
    expect(told.splice(0)).toEqual([kept('a')]);
    await database().query("UPDATE kept SET value = 7 WHERE id = 'a' RETURNING id");
    expect(told.splice(0)).toEqual([kept('a')]);
    await database().exec("DELETE FROM kept WHERE id = 'a'");
    expect(told.splice(0)).toEqual([kept('a')]);
    await database().transaction(async (tx) => {
      await put(tx, 'b');
      await put(tx, 'c');
      await put(tx, 'c');
      expect(told).toEqual([]);
    });
    expect(told.splice(0).map((change) => change !== 'all' && change.key)).toEqual(expect.arrayContaining(['b', 'c']));
  });

  it('is told once, and nothing that was rolled back or that nobody keeps', async () => {
    const { told } = await heardOn(database());
    await database().execute("INSERT INTO unkept VALUES ('a')");
    const failed = database().transaction(async (tx) => {
      await put(tx, 'never');
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    await put(database(), 'd');
    await put(database(), 'e');
    expect(told).toEqual([kept('d'), kept('e')]);
  });

  it('is told by its kind where a table holds several', async () => {
    const { told } = await heardOn(database());
    const insert = (arn: string, kind: string): Promise<number> =>
      database().execute(
        `INSERT INTO resources (arn, kind, account_id, id, parent, name, data, tags, version, created_at, updated_at)
         VALUES ($1, $2, '1', $1, '', $1, '{}', '{}', 1, now(), now())`,
        [arn, kind],
      );
    await insert('arn:other', 'other');
    await insert('arn:thing', 'thing');
    expect(told).toEqual([{ topic: 'thing', key: 'arn:thing' }]);
  });

  it('between the opening of the feed and its start is told at the start', async () => {
    const feed = await ChangeFeed.open({ database: database(), leaseMs: 60_000, clock: systemClock, log: silent });
    feeds.push(feed);
    const told: unknown[] = [];
    feed.subscribe(['kept'], async (changes) => void told.push(changes));
    await put(database(), 'early');
    expect(told).toEqual([]);
    await feed.start();
    expect(told).toEqual([[kept('early')]]);
    expect(() => feed.subscribe(['kept'], async () => undefined)).toThrow(/has started/);
  });

  it('is told again when it could not be taken over, and its writer waits', async () => {
    let failures = 3;
    const { told } = await heardOn(database(), {
      take: async () => {
        if (failures-- > 0) throw new Error('not now');
      },
    });
    await put(database(), 'again');
    expect(failures).toBe(-1);
    expect(told).toEqual([kept('again')]);
  });

  it('and was forgotten before it was told has everything read anew', async () => {
    const forget = forgetChanges(database());
    const feed = await ChangeFeed.open({ database: database(), leaseMs: 60_000, clock: systemClock, log: silent });
    feeds.push(feed);
    const told: unknown[] = [];
    feed.subscribe(['kept'], async (changes) => void told.push(changes));
    await put(database(), 'forgotten');
    // The control: what is younger stays.
    expect(await forget(0, 100)).toBe(0);
    expect(await forget(Date.now() + 60_000, 100)).toBeGreaterThan(0);
    await feed.start();
    expect(told.splice(0)).toEqual(['all']);
    // Only once; and what was forgotten after it had been told matters to nobody.
    await put(database(), 'told');
    expect(told.splice(0)).toEqual([[kept('told')]]);
    expect(await forget(Date.now() + 60_000, 100)).toBe(1);
    await put(database(), 'next');
    expect(told).toEqual([[kept('next')]]);
  });
});

describe('what another server has changed', () => {
  let server: TestPostgres;
  let url: string;
  let here: TemporaryDatabase;
  let there: TemporaryDatabase;
  let database: Database;
  let other: Database;

  beforeAll(async () => {
    server = await startPostgres();
    url = await server.createDatabase();
    [here, there] = [await temporaryPglite({ url }), await temporaryPglite({ url })];
    [database, other] = [here.database, there.database];
    await migrate(database, migrations, silent);
  });
  afterAll(async () => {
    await here?.dispose();
    await there?.dispose();
    await server?.stop();
  });

  const cutLine = (): Promise<unknown[]> =>
    other.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'agentplatform changes' AND datname = current_database()",
    );

  it('is told without being asked for', async () => {
    const { told } = await heardOn(database);
    await put(other, 'theirs');
    await until(() => told.length > 0);
    expect(told).toEqual([kept('theirs')]);
  });

  it('is told in whatever order transactions commit, and a long one holds up none', async () => {
    const { told } = await heardOn(database);
    const [written, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const long = other.transaction(async (tx) => {
      await put(tx, 'long');
      written.resolve();
      await go.promise;
    });
    await written.promise;
    await put(other, 'short');
    await until(() => told.length > 0);
    await put(database, 'own');
    expect(told.splice(0)).toEqual([kept('short'), kept('own')]);
    // A row of a transaction under way, or of a later one, is not forgotten: who saw neither would never know.
    expect(await forgetChanges(other)(Date.now() + 60_000, 1000)).toBeGreaterThan(0);
    go.resolve();
    await long;
    await until(() => told.length > 0);
    await put(database, 'after');
    expect(told).toEqual([kept('long'), kept('after')]);
  });

  it('while the line was cut is told after it', async () => {
    const { told, feed } = await heardOn(database);
    for (let i = 0; i < 5; i += 1) {
      await until(async () => (await cutLine()).length > 0);
      await put(other, `cut${i}`);
      await until(() => told.length > i);
      feed.need();
    }
    expect(told).toEqual([0, 1, 2, 3, 4].map((i) => kept(`cut${i}`)));
  });

  it('is told though no notification comes', async () => {
    const deaf: ChangeFeedDeps['database'] = {
      ...database,
      listen: (channel, { lost }) => {
        if (!database.listen) throw new Error('no PostgreSQL');
        return database.listen(channel, { heard: () => undefined, lost });
      },
    };
    const { told } = await heardOn(deaf);
    await put(other, 'unheard');
    await until(() => told.length > 0);
    expect(told).toEqual([kept('unheard')]);
  });

  it('that cannot be read for longer than the lease makes what is known count for nothing, until it can', async () => {
    let reads = 0;
    const counted: ChangeFeedDeps['database'] = {
      ...database,
      listen: async (channel, listener) => {
        const line = await database.listen?.(channel, listener);
        if (!line) throw new Error('no PostgreSQL');
        const query: Executor['query'] = async (sql, params) => {
          const rows = await line.query<never>(sql, params);
          reads += 1;
          return rows;
        };
        return { ...line, query };
      },
    };
    const { feed, told } = await heardOn(counted, { leaseMs: 1200 });
    // The control: it is confirmed again and again, for longer than the lease.
    await until(() => {
      feed.need();
      return reads >= 5;
    });
    expect(await feed.health()).toEqual({ ok: true });

    const unlock = await server.hold(url, 'LOCK TABLE changes_forgotten IN ACCESS EXCLUSIVE MODE');
    await put(other, 'missed');
    // Its writer here waits until nothing is answered by what is known any more.
    await put(database, 'own');
    expect(told).toEqual([]);
    await until(async () => !(await feed.health()).ok);
    expect(() => feed.need()).toThrow(/has not heard for too long/);
    await unlock();
    await until(async () => (await feed.health()).ok);
    feed.need();
    expect(told).toHaveLength(2);
    expect(told).toEqual(expect.arrayContaining([kept('missed'), kept('own')]));
  });

  it('and a database that was put back to an earlier state have everything read anew', async () => {
    const feed = await ChangeFeed.open({
      database: { ...database, query: async <Row>() => [{ cursor: '999999999:999999999:' }] as Row[] },
      leaseMs: 60_000,
      clock: systemClock,
      log: silent,
    });
    feeds.push(feed);
    const told: unknown[] = [];
    feed.subscribe(['kept'], async (changes) => void told.push(changes));
    await feed.start();
    expect(told).toEqual(['all']);
  });
});
