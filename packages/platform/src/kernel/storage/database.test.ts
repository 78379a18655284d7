import { expect, test } from 'vitest';
import { DatabaseError } from './errors.ts';
import { type Migration, migrate } from './migrations.ts';
import { describeDatabases, silent } from './testing/databases.ts';

const migrations: Migration[] = [
  {
    id: 'test/0001',
    sql: 'CREATE TABLE things (id text PRIMARY KEY, count bigint NOT NULL, data jsonb, at timestamptz NOT NULL)',
  },
  { id: 'test/0002', sql: 'CREATE INDEX things_count ON things (count); CREATE INDEX things_at ON things (at)' },
];

describeDatabases('database', migrations, (database, kind) => {
  test('values come back the same from both', async () => {
    const at = new Date('2026-01-02T03:04:05.678Z');
    const [row] = await database().query<{ bytes: Uint8Array }>(
      `SELECT 9007199254740991::bigint AS safe, 9007199254740993::bigint AS large, 1.50::numeric AS exact, true AS yes,
              $1::timestamptz AS at, '2026-01-02'::date AS day, ARRAY['a','b'] AS list, '{"a":[1]}'::jsonb AS json,
              '\\x0102'::bytea AS bytes, $2::text AS nothing, $3::text[] AS given`,
      [at, undefined, ['x', 'y"z']],
    );
    expect({ ...row, bytes: [...(row?.bytes ?? [])] }).toEqual({
      safe: 9007199254740991,
      large: 9007199254740993n,
      exact: '1.50',
      yes: true,
      at,
      day: '2026-01-02',
      list: ['a', 'b'],
      json: { a: [1] },
      bytes: [1, 2],
      nothing: null,
      given: ['x', 'y"z'],
    });
  });

  test('what is written is read, and what changed is counted', async () => {
    const row = { id: 'counted', count: 2 ** 40, data: { list: [1, 2] }, at: new Date('2026-05-06T07:08:09.123Z') };
    const insert = 'INSERT INTO things (id, count, data, at) VALUES ($1, $2, $3, $4) RETURNING *';
    expect(await database().query(insert, [row.id, row.count, JSON.stringify(row.data), row.at])).toEqual([row]);
    expect(await database().execute('UPDATE things SET count = 1 WHERE id = $1', ['counted'])).toBe(1);
    expect(await database().execute('UPDATE things SET count = 1 WHERE id = $1', ['nobody'])).toBe(0);
  });

  test('a failed statement is typed, shows no parameter, and does not disturb the next one', async () => {
    const insert = () =>
      database().execute('INSERT INTO things (id, count, at) VALUES ($1, 1, $2)', ['twice', new Date()]);
    await insert();
    const error = await insert().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(DatabaseError);
    expect(error).toMatchObject({ code: '23505', constraint: 'things_pkey' });
    await expect(database().query('SELECT $1::int / 0', [4711])).rejects.toThrow(/^division by zero$/);
    await expect(database().query('SELEC')).rejects.toBeInstanceOf(DatabaseError);
    await expect(database().exec('BEGIN; SELECT nothing; COMMIT')).rejects.toBeInstanceOf(DatabaseError);
    expect(await database().query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  // The embedded database answers a statement when it is over.
  if (kind === 'postgres') {
    test('what a failed statement held is free when its error is there', async () => {
      await database().execute("INSERT INTO things (id, count, at) VALUES ('free', 1, now())");
      // Many subtransactions, which take the server a while to undo.
      const failing = `DO $$ BEGIN
        UPDATE things SET count = count + 1 WHERE id = 'free';
        FOR n IN 1..5000 LOOP
          BEGIN INSERT INTO things VALUES ('sub' || n, n, NULL, now()); EXCEPTION WHEN division_by_zero THEN NULL; END;
        END LOOP;
        PERFORM 1 / 0;
      END $$`;
      for (let time = 0; time < 10; time++) {
        await expect(database().exec(failing)).rejects.toThrow(/division by zero/);
        const free = "SELECT count FROM things WHERE id = 'free' FOR UPDATE SKIP LOCKED";
        expect(await database().query(free)).toEqual([{ count: 1 }]);
      }
    });
  }

  test('a transaction is all or nothing', async () => {
    const insert = 'INSERT INTO things (id, count, at) VALUES ($1, 0, now())';
    await database().transaction(async (tx) => {
      await tx.query(insert, ['kept-1']);
      await tx.execute(insert, ['kept-2']);
    });
    const stop = new Error('changed my mind');
    await expect(
      database().transaction(async (tx) => {
        await tx.query(insert, ['lost']);
        throw stop;
      }),
    ).rejects.toBe(stop);
    const rows = await database().query("SELECT id FROM things WHERE id LIKE 'kept-%' OR id = 'lost' ORDER BY id");
    expect(rows).toEqual([{ id: 'kept-1' }, { id: 'kept-2' }]);
  });

  test('a transaction whose first statement fails, and one that has none, leave nothing open', async () => {
    await expect(database().transaction((tx) => tx.query('SELECT 1 / 0'))).rejects.toMatchObject({ code: '22012' });
    await expect(database().transaction((tx) => tx.exec('SELECT 1 / 0'))).rejects.toMatchObject({ code: '22012' });
    expect(await database().transaction(async () => 'nothing')).toBe('nothing');
    await expect(database().transaction(() => Promise.reject(new Error('undone')))).rejects.toThrow('undone');
    await database().transaction((tx) => tx.query('SAVEPOINT known'));
    await expect(database().query('SAVEPOINT known')).rejects.toMatchObject({ code: '25P01' });
  });

  test('statements beside a transaction are not part of it', async () => {
    const entered = Promise.withResolvers<void>();
    const leave = Promise.withResolvers<void>();
    const transaction = database().transaction(async (tx) => {
      await tx.query("INSERT INTO things (id, count, at) VALUES ('inside', 0, now())");
      entered.resolve();
      await leave.promise;
      throw new Error('undone');
    });
    await entered.promise;
    const beside = database().query("INSERT INTO things (id, count, at) VALUES ('beside', 0, now())");
    leave.resolve();
    await expect(transaction).rejects.toThrow('undone');
    await beside;
    expect(await database().query("SELECT id FROM things WHERE id IN ('inside', 'beside')")).toEqual([
      { id: 'beside' },
    ]);
  });

  test('many at once all get through', async () => {
    const sums = await Promise.all(
      Array.from({ length: 200 }, async (_, n) => {
        if (n % 10 > 0) return database().query<{ n: number }>('SELECT $1::int AS n', [n]);
        return database().transaction((tx) => tx.query<{ n: number }>('SELECT $1::int AS n', [n]));
      }),
    );
    expect(sums.map((rows) => rows[0]?.n)).toEqual(Array.from({ length: 200 }, (_, n) => n));
  });

  test('health tells how long a statement takes', async () => {
    expect(await database().health()).toEqual({ ok: true, latencyMs: expect.any(Number) });
  });

  test('vectors are compared', async () => {
    expect(database().vector).toEqual({ available: true });
    const rows = await database().query(`SELECT '[1,2]'::vector <-> '[4,6]'::vector AS distance, '[1,2]'::vector AS v`);
    expect(rows).toEqual([{ distance: 5, v: '[1,2]' }]);
  });

  test('migrations run once, in order, and never change afterwards', async () => {
    expect(await migrate(database(), migrations, silent)).toEqual([]);
    const more = [...migrations, { id: 'test/0003', sql: 'ALTER TABLE things ADD COLUMN note text' }];
    const [first, second] = await Promise.all([migrate(database(), more, silent), migrate(database(), more, silent)]);
    expect([first, second].flat()).toEqual(['test/0003']);
    await expect(migrate(database(), [{ id: 'test/0001', sql: 'SELECT 1' }], silent)).rejects.toThrow(/another text/);
    await expect(migrate(database(), [...more, ...more], silent)).rejects.toThrow(
      /two migrations are named test\/0001/,
    );
    const broken = [
      ...more,
      { id: 'test/0004', sql: 'CREATE TABLE half (a int)' },
      { id: 'test/0005', sql: 'NONSENSE' },
    ];
    await expect(migrate(database(), broken, silent)).rejects.toBeInstanceOf(DatabaseError);
    expect(await database().query("SELECT to_regclass('half') AS half")).toEqual([{ half: null }]);
  });
});
