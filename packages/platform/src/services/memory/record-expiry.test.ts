import pino from 'pino';
import { beforeAll, describe, expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { jobMigrations } from '../../kernel/jobs/index.ts';
import { meteringMigrations } from '../../kernel/metering/index.ts';
import { lexicalSearch } from '../../kernel/search/index.ts';
import { storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { applyChanges } from './extraction/changes.ts';
import { Housekeeping } from './housekeeping.ts';
import type { Memory } from './memory.ts';
import { recordView } from './record.ts';
import { expiryFrom, namesExpiry, newExpiry, wantedExpiry } from './record-expiry.ts';
import { listRecords, type RecordFilter, recordsOf } from './record-store.ts';
import { recordTable } from './record-table.ts';
import { Records } from './records.ts';
import { memoryMigrations } from './tables.ts';

const DAY_MS = 86_400_000;
const memory = { id: 'm', data: { strategies: [] } } as unknown as Memory;
const BAD = { code: 'ValidationException' };

describe('a specification of expiry', () => {
  it('names days within a hundred years, and removes only what may be there', () => {
    const field = 'recordExpirySpecification';
    expect(newExpiry(undefined, field)).toBeUndefined();
    expect(newExpiry({ recordExpiryDurationDays: 31 }, field)).toBe(31);
    expect(wantedExpiry({ action: 'REMOVE' }, field)).toBe('never');
    expect(() => newExpiry({ action: 'REMOVE' }, field)).toThrow(expect.objectContaining(BAD));
    expect(() => wantedExpiry({ recordExpiryDurationDays: 36_501 }, field)).toThrow(expect.objectContaining(BAD));
  });

  it('is seen wherever a strategy or a change of one has it', () => {
    const recordExpirySpecification = { recordExpiryDurationDays: 31 };
    expect(namesExpiry([{ summaryMemoryStrategy: { name: 'n' } }, { memoryStrategyId: 'one' }])).toBe(false);
    expect(namesExpiry([{ summaryMemoryStrategy: { name: 'n', recordExpirySpecification } }])).toBe(true);
    expect(namesExpiry([{ memoryStrategyId: 'one', recordExpirySpecification }])).toBe(true);
  });
});

describeDatabases(
  'records that expire',
  [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations],
  (database) => {
    const clock = new FakeClock();
    let ids = 0;
    let records: Records;
    const filter = (): RecordFilter => ({
      memoryId: 'm',
      now: new Date(clock.now()),
      scope: { kind: 'all' },
      strategyId: undefined,
      metadata: [],
      metadataField: '',
    });
    const listed = async () => (await listRecords(database(), filter(), 100, undefined)).map(({ content }) => content);
    const found = async () => {
      const hits = await lexicalSearch(database(), recordTable, filter(), 'tea', 10);
      return [
        ...(
          await recordsOf(
            database(),
            hits.map(({ id }) => id),
          )
        ).values(),
      ].map(({ content }) => content);
    };
    const write = async (text: string, days: number | undefined): Promise<string> => {
      const input = { requestIdentifier: 'r', namespaces: ['/n'], content: { text }, timestamp: new Date(0) };
      const { successfulRecords } = await records.createBatch([input], memory, days);
      return successfulRecords[0]?.memoryRecordId ?? '';
    };
    const update = (memoryRecordId: string, expiry: number | 'never' | undefined) =>
      records.updateBatch([{ memoryRecordId, timestamp: new Date(0) }], memory, expiry);
    const expiresAt = async (id: string) => recordView(await records.get('m', id, undefined)).expiresAt?.getTime();
    const rows = async () => (await database().query('SELECT id FROM memory_records')).length;

    beforeAll(() => {
      const newRecordId = (): string => `mem-${++ids}`;
      records = new Records({ database: database(), clock, newRecordId, onContent: () => undefined });
    });

    it('are in no list, search or answer from then on, and gone with the next round; others stay', async () => {
      const id = await write('tea with milk', 31);
      await write('tea with lemon', undefined);
      expect(await expiresAt(id)).toBe(clock.now() + 31 * DAY_MS);
      clock.jump(31 * DAY_MS - 1);
      expect([await listed(), await found()].map((texts) => texts.length)).toEqual([2, 2]);
      clock.jump(1);
      expect([await listed(), await found()]).toEqual([['tea with lemon'], ['tea with lemon']]);
      await expect(records.get('m', id, undefined)).rejects.toMatchObject({ code: 'ResourceNotFoundException' });
      await expect(records.delete('m', id, undefined)).rejects.toMatchObject({ code: 'ResourceNotFoundException' });
      expect((await update(id, 'never')).failedRecords).toHaveLength(1);

      expect(await rows()).toBe(2);
      await new Housekeeping({ database: database(), clock, log: pino({ level: 'silent' }) }).round();
      expect(await rows()).toBe(1);
    });

    it('are kept as long again by an update, for other days when it names some, and for ever when it says so', async () => {
      const id = await write('coffee', 40);
      const lasting = await write('juice', undefined);
      clock.jump(10 * DAY_MS);
      await update(id, undefined);
      await update(lasting, undefined);
      expect([await expiresAt(id), await expiresAt(lasting)]).toEqual([clock.now() + 40 * DAY_MS, undefined]);
      await update(id, 50);
      expect(await expiresAt(id)).toBe(clock.now() + 50 * DAY_MS);
      await update(id, 'never');
      await update(id, undefined);
      expect(await expiresAt(id)).toBeUndefined();
      await update(lasting, 31);
      expect(await expiresAt(lasting)).toBe(clock.now() + 31 * DAY_MS);
    });

    it('do not stand in the way of the same statement made anew', async () => {
      const place = { memoryId: 'm', strategyId: 's', namespace: '/again' };
      const said = (id: string, now: Date) => {
        const record = {
          ...place,
          id,
          content: 'They drink cocoa.',
          metadata: {},
          at: now,
          insertedAt: now,
          eventIds: ['e'],
        };
        const change = { kind: 'insert' as const, record: { ...record, expiry: expiryFrom(now, 31) }, supersedes: [] };
        return database().transaction((tx) => applyChanges(tx, [change], now));
      };
      await said('first', new Date(clock.now()));
      await said('second', new Date(clock.now()));
      await expect(records.get('m', 'second', undefined)).rejects.toMatchObject({ code: 'ResourceNotFoundException' });
      clock.jump(31 * DAY_MS);
      await said('third', new Date(clock.now()));
      expect((await records.get('m', 'third', undefined)).content).toBe('They drink cocoa.');
    });
  },
);
