import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../clock.ts';
import { FakeClock } from '../fake-clock.ts';
import { IdempotencyConflictError, IdempotencyPendingError, IdempotencyStore } from './idempotency-store.ts';
import { storageMigrations } from './tables.ts';
import { describeDatabases } from './testing/databases.ts';

const parse = (response: unknown): string => {
  if (typeof response !== 'string') throw new Error('not a string');
  return response;
};

describeDatabases('idempotency store', storageMigrations, (database) => {
  const key = (fingerprint = 'f') => ({ accountId: '1', operation: 'Create', token: randomUUID(), fingerprint });
  const newStore = (options: { clock?: FakeClock; leaseMs?: number; waitMs?: number; keptBytes?: number } = {}) =>
    new IdempotencyStore({ database: database(), clock: systemClock, newId: randomUUID, ...options });

  test('twenty calls at once do the work once and get one answer', async () => {
    const one = key();
    let runs = 0;
    const stores = [newStore(), newStore()];
    const call = (n: number) =>
      stores[n % 2]?.run(one, parse, async () => {
        runs++;
        await sleep(100);
        return `answer ${runs}`;
      });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => call(n)));
    expect(new Set(answers)).toEqual(new Set(['answer 1']));
    expect(runs).toBe(1);
  });

  test('another input with the same token is refused, finished or not', async () => {
    const one = key('first');
    const store = newStore();
    const gate = Promise.withResolvers<string>();
    const started = Promise.withResolvers<void>();
    const first = store.run(one, parse, () => {
      started.resolve();
      return gate.promise;
    });
    await started.promise;
    const other = () => store.run({ ...one, fingerprint: 'second' }, parse, async () => 'never');
    await expect(other()).rejects.toBeInstanceOf(IdempotencyConflictError);
    gate.resolve('done');
    expect(await first).toBe('done');
    await expect(other()).rejects.toBeInstanceOf(IdempotencyConflictError);
    expect(await store.run({ ...one, accountId: '2' }, parse, async () => 'theirs')).toBe('theirs');
    expect(await store.run({ ...one, operation: 'Delete' }, parse, async () => 'deleted')).toBe('deleted');
  });

  test('work that fails is not remembered', async () => {
    const one = key();
    await expect(newStore().run(one, parse, () => Promise.reject(new Error('oops')))).rejects.toThrow('oops');
    expect(await newStore().run(one, parse, async () => 'second try')).toBe('second try');
  });

  test('an answer is forgotten after its time, and swept', async () => {
    const one = key();
    const clock = new FakeClock();
    const store = newStore({ clock });
    await store.run(one, parse, async () => 'old');
    await clock.advance(24 * 3_600_000 - 1);
    expect(await store.run(one, parse, async () => 'new')).toBe('old');
    await clock.advance(1);
    expect(await store.run(one, parse, async () => 'new')).toBe('new');
    await clock.advance(24 * 3_600_000);
    expect(await store.sweep()).toBeGreaterThan(0);
  });

  test('a call whose process died is taken over after its lease, and one that lives is not', async () => {
    const one = key();
    const clock = new FakeClock();
    // A call that never ends and whose store renews nothing: the process is gone.
    await database().query(
      "INSERT INTO idempotency_records (account_id, operation, token, fingerprint, owner, done, expires_at) VALUES ('1', 'Create', $1, 'f', 'dead', 0, $2)",
      [one.token, new Date(clock.now() + 30_000)],
    );
    const waiting = newStore({ clock, waitMs: 5_000 }).run(one, parse, async () => 'too early');
    const refused = expect(waiting).rejects.toBeInstanceOf(IdempotencyPendingError);
    while (clock.now() < Date.UTC(2026, 0, 1) + 6_000) {
      await sleep(5);
      await clock.advance(1_000);
    }
    await refused;
    await clock.advance(30_000);
    expect(await newStore({ clock }).run(one, parse, async () => 'taken over')).toBe('taken over');
  });

  test('a long call keeps its lease', async () => {
    const one = key();
    const clock = new FakeClock();
    const gate = Promise.withResolvers<string>();
    const started = Promise.withResolvers<void>();
    const slow = newStore({ clock }).run(one, parse, () => {
      started.resolve();
      return gate.promise;
    });
    await started.promise;
    const expires = async (): Promise<number> => {
      const rows = await database().query<{ at: Date }>(
        'SELECT expires_at AS at FROM idempotency_records WHERE token = $1',
        [one.token],
      );
      return Number(rows[0]?.at);
    };
    // Twice as long as a lease of half a minute, in steps that each bring one renewal.
    for (let step = 0; step < 6; step++) {
      const before = await expires();
      await clock.advance(10_000);
      await vi.waitFor(async () => expect(await expires()).toBeGreaterThan(before), { timeout: 10_000 });
    }
    const other = newStore({ clock }).run(one, parse, async () => 'stolen');
    gate.resolve('slow');
    expect(await slow).toBe('slow');
    const pending = Symbol();
    let answer: string | symbol = pending;
    while (answer === pending) {
      await clock.advance(100);
      answer = await Promise.race([other, sleep(5, pending)]);
    }
    expect(answer).toBe('slow');
  });

  test('the answer appears together with the rows of the work', async () => {
    const one = key();
    const crash = newStore().run(one, parse, (settle) =>
      database().transaction(async (tx) => {
        await settle(tx, 'committed');
        throw new Error('rolled back');
      }),
    );
    await expect(crash).rejects.toThrow('rolled back');
    const work = newStore().run(one, parse, async (settle) => {
      await database().transaction((tx) => settle(tx, 'committed'));
      throw new Error('died after the commit');
    });
    await expect(work).rejects.toThrow('died');
    expect(await newStore().run(one, parse, async () => 'again')).toBe('committed');
  });

  test('of ever new tokens the oldest are forgotten beyond a bound, of their own operation alone', async () => {
    const clock = new FakeClock();
    const store = newStore({ clock, keptBytes: 40_000 });
    // Nothing that the database could make smaller.
    const answer = Array.from({ length: 300 }, () => randomUUID()).join('');
    const other = { ...key(), operation: 'Other' };
    await store.run(other, parse, async () => answer);
    const calls = Array.from({ length: 6 }, () => ({ ...key(), operation: 'Flood' }));
    for (const call of calls) {
      await clock.advance(1_000);
      await store.run(call, parse, async () => answer);
    }
    expect(await store.trim()).toBe(3);
    const again = (one: typeof other): Promise<string> => store.run(one, parse, async () => 'anew');
    expect(await Promise.all(calls.slice(3).map(again))).toEqual([answer, answer, answer]);
    expect(await again(other)).toBe(answer);
    expect(await again(calls[0] ?? other)).toBe('anew');
    // The control: within the bound all are kept.
    expect(await newStore({ clock }).trim()).toBe(0);
  });
});
