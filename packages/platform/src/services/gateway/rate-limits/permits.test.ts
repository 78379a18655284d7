import pino from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import { allMigrations } from '../../../migrations.ts';
import { loadServices } from '../../../open-services.ts';
import { services } from '../../../services.ts';
import { Connections } from './connections.ts';
import { type Bucket, MONTH_MS, Permits } from './permits.ts';

const log = pino({ level: 'silent' });
const MINUTE = 60_000;
const migrations = allMigrations((await loadServices(services)).map(({ module }) => module));
const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0)) await one.close();
});

let buckets = 0;
const bucketOf = (rate: number, periodMs = MINUTE): Bucket => {
  buckets += 1;
  return { key: `bucket-${buckets}`, rate, periodMs, name: 'The rate limit few', of: 'requests' };
};
const server = (database: Pick<Database, 'query' | 'execute'>): Permits => {
  const permits = new Permits({ database, clock: systemClock, log });
  closing.push(permits);
  return permits;
};
/** How many of so many requests go through. */
const through = async (bucket: Bucket, asked: readonly Pick<Permits, 'take'>[]): Promise<number> => {
  const ends = await Promise.allSettled(asked.map((one) => one.take(bucket)));
  return ends.filter(({ status }) => status === 'fulfilled').length;
};
/** What `work` resolves with where it began and ended in one minute of the clock. */
const withinMinute = async <Value>(work: () => Promise<Value>): Promise<Value> => {
  for (;;) {
    const minute = (): number => Math.floor(Date.now() / MINUTE);
    const before = minute();
    const value = await work();
    if (minute() === before) return value;
  }
};
const many = <One>(one: One, count: number): One[] => Array.from({ length: count }, () => one);

describeDatabases('permits', migrations, (database) => {
  it('of one window are as many as it has, however many servers draw at once', async () => {
    const counts = await withinMinute(async () => {
      const [a, b] = [server(database()), server(database())];
      const few = await through(bucketOf(2), [a, b, a, b, b]);
      const asked = many(a, 150).flatMap((one) => [one, b]);
      return [few, await through(bucketOf(100), asked)];
    });
    expect(counts).toEqual([2, 100]);
  });

  it('come anew with the next second', async () => {
    const one = server(database());
    const bucket = bucketOf(1, 1_000);
    await one.take(bucket);
    const refusal = await one.take(bucket).then(
      () => undefined,
      (error: unknown) => error,
    );
    // The second may have ended just then.
    if (refusal !== undefined)
      expect(refusal).toMatchObject({
        ...{ code: 'ThrottlingException', message: expect.stringContaining('lets 1 requests a second through') },
        retryAfterSeconds: expect.any(Number),
      });
    for (;;) if ((await through(bucket, [one])) === 1) break;
  });

  it.each([
    ['day', 86_400_000],
    ['month', MONTH_MS],
  ])('of a %s hold for all servers, and say when the next begins', async (period, periodMs) => {
    const [a, b] = [server(database()), server(database())];
    const bucket = bucketOf(5, periodMs);
    expect(await through(bucket, [a, b, a, b, a, b, a])).toBe(5);
    const now = new Date();
    const next =
      period === 'day'
        ? Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1)
        : Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
    const refusal = await a.take(bucket).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(refusal).toMatchObject({ message: expect.stringContaining(`lets 5 requests a ${period} through`) });
    const { retryAfterSeconds } = refusal as { retryAfterSeconds: number };
    // The clock has gone on since, by no more than a test takes.
    expect(Math.abs(now.getTime() + retryAfterSeconds * 1000 - next)).toBeLessThan(600_000);
    const [row] = await database().query<{ ends: Date }>(
      'SELECT max(ends_at) AS ends FROM gateway_permits WHERE window_no = (SELECT window_no FROM gateway_permits ORDER BY drawn_at DESC LIMIT 1)',
    );
    expect(row?.ends.getTime()).toBe(next);
  });

  it('that a server does not use are the others’', async () => {
    const counts = await withinMinute(async () => {
      const [a, b] = [server(database()), server(database())];
      const bucket = bucketOf(100);
      // A draw is of five.
      const used = await through(bucket, many(a, 3));
      await a.close();
      return [used, await through(bucket, many(b, 120))];
    });
    expect(counts).toEqual([3, 97]);
  });

  it('taken by a request that another limit refuses are there for the next one', async () => {
    const counts = await withinMinute(async () => {
      const one = server(database());
      const bucket = bucketOf(1);
      const back = await one.take(bucket);
      const without = await through(bucket, [one]);
      back();
      return [without, await through(bucket, [one, one])];
    });
    expect(counts).toEqual([0, 1]);
  });

  it('are used up, and no more, without the database', async () => {
    const counts = await withinMinute(async () => {
      let there = true;
      const failing = {
        query: (sql: string, params?: unknown[]) =>
          there ? database().query(sql, params) : Promise.reject(new Error('gone')),
        execute: (sql: string, params?: unknown[]) => database().execute(sql, params),
      } as Pick<Database, 'query' | 'execute'>;
      const one = server(failing);
      const bucket = bucketOf(100);
      await one.take(bucket);
      there = false;
      const rest = await through(bucket, many(one, 50));
      await expect(one.take(bucket)).rejects.toMatchObject({ code: 'ThrottlingException' });
      there = true;
      return [rest, await through(bucket, many(one, 200))];
    });
    expect(counts).toEqual([4, 95]);
  });

  it('of a limit that was lowered meanwhile are none but what was drawn', async () => {
    const counts = await withinMinute(async () => {
      const one = server(database());
      const bucket = bucketOf(100);
      const before = await through(bucket, many(one, 50));
      return [before, await through({ ...bucket, rate: 20 }, many(one, 50))];
    });
    expect(counts).toEqual([50, 0]);
  });

  it('that were taken together are given back but for those that were used', async () => {
    const counts = await withinMinute(async () => {
      const one = server(database());
      const bucket = bucketOf(100);
      const settle = await one.take(bucket, 90);
      const meanwhile = await through(bucket, many(one, 20));
      settle(30);
      return [meanwhile, await through(bucket, many(one, 80))];
    });
    expect(counts).toEqual([10, 60]);
  });

  it('that were used without being taken let nothing through, on any server, in this window and those after', async () => {
    const outcome = await withinMinute(async () => {
      const [a, b] = [server(database()), server(database())];
      const bucket = bucketOf(100);
      const settle = await a.take(bucket, 10);
      settle(95);
      const left = await through(bucket, many(a, 20));
      return [left, await through(bucket, [b])];
    });
    expect(outcome).toEqual([5, 0]);
  });

  it('of a debt are paid from the next windows before anything goes through', async () => {
    const one = server(database());
    const bucket = bucketOf(10, 1_000);
    const began = Date.now();
    one.charge(bucket, 25);
    for (;;) if ((await through(bucket, [one])) === 1) break;
    // Three windows have twenty-five; two have twenty.
    expect(Math.floor(Date.now() / 1_000) - Math.floor(began / 1_000)).toBeGreaterThanOrEqual(2);
  });

  it('of more than a window has are all of it', async () => {
    const counts = await withinMinute(async () => {
      const one = server(database());
      const bucket = bucketOf(100);
      const settle = await one.take(bucket, 5_000);
      const meanwhile = await through(bucket, [one]);
      settle(0);
      return [meanwhile, await through(bucket, [one])];
    });
    expect(counts).toEqual([0, 1]);
  });

  it('of nothing are none', async () => {
    expect(await through(bucketOf(0), [server(database())])).toBe(0);
  });
});

describeDatabases('places for connections', migrations, (database) => {
  let epochs = 0;
  const life = (): Connections => {
    epochs += 1;
    const places = new Connections({ database: database(), clock: systemClock, epoch: epochs, log });
    closing.push(places);
    return places;
  };

  it('are as many as there may be, whoever has them, and are had again once a connection ends', async () => {
    const [a, b] = [life(), life()];
    const bucket = bucketOf(3);
    const ends = await Promise.all([a.take(bucket), b.take(bucket), a.take(bucket)]);
    expect(await through(bucket, [a, b])).toBe(0);
    ends[1]?.();
    // It is given back within a second or two.
    for (;;) if ((await through(bucket, [a])) === 1) break;
    expect(await through(bucket, [a, b])).toBe(0);
  });

  it('of a server that is gone are free once its lease is over', async () => {
    const [a, b] = [life(), life()];
    const bucket = bucketOf(1);
    await a.take(bucket);
    expect(await through(bucket, [b])).toBe(0);
    await database().exec('UPDATE gateway_connections SET expires_at = now()');
    for (;;) if ((await through(bucket, [b])) === 1) break;
  });
});

describe('a place', () => {
  it('is given back once, however often that is said', async () => {
    const tx = { query: async () => [{ others: 0 }], execute: async () => 1 };
    const database = { execute: async () => 1, transaction: async (work: (tx: unknown) => unknown) => work(tx) };
    const places = new Connections({
      ...{ database: database as unknown as Database, clock: systemClock, epoch: 1, log },
    });
    closing.push(places);
    const bucket = bucketOf(1);
    const end = await places.take(bucket);
    end();
    end();
    expect(await through(bucket, [places, places])).toBe(1);
  });
});
