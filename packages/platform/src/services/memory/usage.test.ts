import { expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { jobMigrations } from '../../kernel/jobs/index.ts';
import { meteringMigrations } from '../../kernel/metering/index.ts';
import { type Database, storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases, silent } from '../../kernel/storage/testing/databases.ts';
import { addBranch, keepSession } from './event-store.ts';
import { EventWriter, type NewEvent } from './event-writer.ts';
import { Housekeeping } from './housekeeping.ts';
import { createMemoryStore, type Memory } from './memory.ts';
import { MemoryQuota } from './memory-quota.ts';
import { deleteRecord, insertRecord, updateRecord } from './record-store.ts';
import { memoryMigrations } from './tables.ts';

const now = new Date(1_760_000_000_000);
let made = 0;
const event = (memoryId: string, text: string, more: Partial<NewEvent> = {}): NewEvent => ({
  memoryId,
  actorId: 'a',
  sessionId: 's',
  eventId: `e${++made}`,
  at: now,
  payload: [{ conversational: { role: 'USER', content: { text } } }],
  metadata: {},
  branch: undefined,
  variables: {},
  createdAt: now,
  expiresAt: new Date(now.getTime() + 86_400_000),
  pending: false,
  clientToken: undefined,
  fingerprint: 'f',
  ...more,
});
const record = (memoryId: string, id: string, content: string) => ({
  id,
  memoryId,
  strategyId: 's',
  namespace: '/a',
  content,
  metadata: {},
  at: now,
  insertedAt: now,
  eventIds: [],
});

async function used(database: Database, memoryId: string): Promise<number | undefined> {
  const [row] = await database.query<{ bytes: number }>('SELECT bytes FROM memory_usage WHERE memory_id = $1', [
    memoryId,
  ]);
  return row?.bytes;
}

describeDatabases(
  'what a memory takes up',
  [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations],
  (database) => {
    it('is counted with its rows, alone and in groups, and given back with them', async () => {
      const writer = new EventWriter(database());
      const id = 'counted';
      await writer.write(event(id, 'x'.repeat(10_000)));
      const one = (await used(database(), id)) ?? 0;
      expect(one).toBeGreaterThan(10_000);
      expect(one).toBeLessThan(12_000);
      await Promise.all(Array.from({ length: 50 }, () => writer.write(event(id, 'x'.repeat(10_000)))));
      const many = (await used(database(), id)) ?? 0;
      expect(many).toBeGreaterThan(51 * 10_000);
      // A repeated token adds nothing.
      await writer.write(event(id, 'y', { clientToken: 't' }));
      const before = await used(database(), id);
      expect(await writer.write(event(id, 'y'.repeat(5000), { clientToken: 't' }))).toBe('duplicate');
      expect(await used(database(), id)).toBe(before);

      await insertRecord(database(), record(id, 'r1', 'z'.repeat(1000)));
      expect(await used(database(), id)).toBeGreaterThanOrEqual((before ?? 0) + 2000);
      await updateRecord(database(), id, 'r1', { content: 'z', at: now }, now);
      await deleteRecord(database(), id, 'r1', now);
      expect(await used(database(), id)).toBe(before);
      await addBranch(
        database(),
        { memoryId: id, actorId: 'a', sessionId: 's' },
        {
          name: 'b',
          parent: undefined,
          rootEventId: undefined,
        },
      );
      await keepSession(database(), { memoryId: id, actorId: 'a', sessionId: 's' }, now);
      await database().execute('DELETE FROM memory_events WHERE memory_id = $1', [id]);
      // What is left: the session and the branch.
      expect(await used(database(), id)).toBeLessThan(1000);
      expect(await used(database(), id)).toBeGreaterThan(500);
      await database().execute('DELETE FROM memory_branches WHERE memory_id = $1', [id]);
      await database().execute('DELETE FROM memory_sessions WHERE memory_id = $1', [id]);
      expect(await used(database(), id)).toBe(0);
    });

    it('is given back by housekeeping, and forgotten with the memory', async () => {
      const clock = new FakeClock();
      const writer = new EventWriter(database());
      const past = new Date(clock.now() - 1);
      await writer.write(event('expired', 'x'.repeat(1000), { expiresAt: past }));
      await writer.write(event('purged', 'x'.repeat(1000), { expiresAt: new Date(clock.now() + 1e9) }));
      await database().execute("INSERT INTO memory_purges (memory_id) VALUES ('purged')");
      const housekeeping = new Housekeeping({ database: database(), clock, log: silent });
      while (await housekeeping.round());
      // Its session is known still.
      expect(await used(database(), 'expired')).toBeLessThan(500);
      expect(await used(database(), 'purged')).toBeUndefined();
    });

    it('has a limit for each memory and for all of an account', async () => {
      const clock = new FakeClock();
      const store = createMemoryStore(database(), clock);
      const writer = new EventWriter(database());
      const memory = (id: string, accountId: string): Promise<Memory> =>
        store.create({ arn: `arn:${id}`, accountId, id, name: id, data: { eventExpiryDays: 3, strategies: [] } });
      const full = await memory('full', '111111111111');
      const empty = await memory('empty', '111111111111');
      const other = await memory('other', '222222222222');
      const quota = new MemoryQuota(database(), clock, { ofMemory: 4000, ofAccount: 6000 });
      await quota.need(full);
      await writer.write(event('full', 'x'.repeat(4000)));
      // What was read within the last second is believed.
      await quota.need(full);
      await clock.advance(1000);
      await expect(quota.need(full)).rejects.toMatchObject({
        code: 'ServiceQuotaExceededException',
        status: 402,
        wireMessage: expect.stringMatching(
          /^The memory full holds \d+ bytes, and may hold 4000\. .*quotas\.bytesPerMemory/,
        ),
      });
      await quota.need(empty);
      await writer.write(event('empty', 'x'.repeat(2000)));
      await clock.advance(1000);
      await expect(quota.need(empty)).rejects.toMatchObject({
        wireMessage: expect.stringContaining('quotas.memoryBytesPerAccount'),
      });
      await quota.need(other);
      await database().execute("DELETE FROM memory_events WHERE memory_id = 'full'");
      await clock.advance(1000);
      await quota.need(full);
      await quota.need(empty);
    });
  },
);
