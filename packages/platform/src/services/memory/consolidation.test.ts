import { expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { jobMigrations } from '../../kernel/jobs/index.ts';
import { meteringMigrations } from '../../kernel/metering/index.ts';
import { storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases, silent } from '../../kernel/storage/testing/databases.ts';
import { ToldChanges } from '../../kernel/storage/testing/told-changes.ts';
import { listEvents } from './event-store.ts';
import { EventWriter, type NewEvent } from './event-writer.ts';
import type { Batch, Extractor } from './extraction/candidate.ts';
import { applyChanges, OvertakenError } from './extraction/changes.ts';
import { extractBatch } from './extraction/extract.ts';
import { localExtractor } from './extraction/local-extractor.ts';
import { addJob, endJob, failedJobs, giveUpJob, queuedJob, requeueJob } from './extraction-job-store.ts';
import { Housekeeping } from './housekeeping.ts';
import { Memories } from './memories.ts';
import { planJobs } from './plan-jobs.ts';
import { findRecord, listRecords, type NewRecord, type RecordFilter } from './record-store.ts';
import { memoryMigrations } from './tables.ts';
import { QueuedEntries } from './testing/queued-entries.ts';

const now = new Date('2026-01-01T00:00:00Z');
const everything: RecordFilter = {
  memoryId: 'm',
  now: new Date(),
  scope: { kind: 'all' },
  strategyId: undefined,
  metadata: [],
  metadataField: '',
};

function record(id: string, content: string, more: Partial<NewRecord> = {}): NewRecord {
  const place = { memoryId: 'm', strategyId: 's', namespace: '/a' };
  return { ...place, id, content, metadata: {}, at: now, insertedAt: now, eventIds: [`1#${id}`], ...more };
}

describeDatabases(
  'memory',
  [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations],
  (database) => {
    it('replaces a record once, keeps it out of lists, and confirms what is known', async () => {
      const insert = (id: string, content: string, supersedes: string[] = []) =>
        database().transaction((tx) =>
          applyChanges(tx, [{ kind: 'insert', record: record(id, content), supersedes }], now),
        );
      await insert('a', 'Lives in Berlin.');
      await insert('b', 'lives in  BERLIN');
      await insert('c', 'Lives in Madrid.', ['a']);
      await expect(insert('d', 'Lives in Rome.', ['a'])).rejects.toBeInstanceOf(OvertakenError);
      expect((await listRecords(database(), everything, 10, undefined)).map(({ id }) => id)).toEqual(['c']);
      const replaced = await findRecord(database(), 'm', 'a', new Date());
      expect(replaced).toMatchObject({ supersededBy: 'c', validTo: now });
      expect(replaced?.eventIds.toSorted()).toEqual(['1#a', '1#b']);
      expect(await findRecord(database(), 'm', 'd', new Date())).toBeUndefined();
      expect(await findRecord(database(), 'other', 'a', new Date())).toBeUndefined();
    });

    it('confirms a record that came from no event without one', async () => {
      const place = { strategyId: 'without events' };
      const insert = (id: string, eventIds: string[]) =>
        database().transaction((tx) => {
          const one = record(id, 'Likes oars.', { ...place, eventIds });
          return applyChanges(tx, [{ kind: 'insert', record: one, supersedes: [] }], now);
        });
      const known = async () => (await findRecord(database(), 'm', 'none', new Date()))?.eventIds;
      await insert('none', []);
      await insert('again', []);
      expect(await known()).toEqual([]);
      // The control: what confirms it by an event is written down.
      await insert('by an event', ['1#e']);
      expect(await known()).toEqual(['1#e']);
    });

    const made: Record<string, number> = {};
    /** What stands, with the events it came from, after one batch in which all of it was said by one person. */
    const saidAtOnce = async (actorId: string, said: string[], extractor = localExtractor) => {
      const at = (minute: number): Date => new Date(now.getTime() + minute * 60_000);
      const messages = said.map((text, n) => ({ role: 'USER' as const, text, at: at(n), eventId: `${n}#c` }));
      const strategy = { id: actorId, template: `/${actorId}`, reflectionTemplate: undefined };
      const values = { actorId, sessionId: 'x', memoryStrategyId: actorId, variables: {} };
      const newRecordId = (): string => {
        made[actorId] = (made[actorId] ?? 0) + 1;
        return `${actorId}${made[actorId]}`;
      };
      const nearest = async () =>
        (await listRecords(database(), { ...everything, strategyId: actorId }, 10, undefined)).map((found) => ({
          ...found,
        }));
      const { changes } = await extractBatch(
        { memory: { id: 'm' }, strategy, kind: 'semantic', values, messages } as unknown as Batch,
        extractor,
        { executor: database(), now: () => now, nearest, newRecordId },
        new AbortController().signal,
      );
      await database().transaction((tx) => applyChanges(tx, changes, now));
      const live = await listRecords(database(), { ...everything, strategyId: actorId }, 10, undefined);
      return live.map(({ content, eventIds }) => [content, ...eventIds.toSorted()].join(' ')).toSorted();
    };

    it('lets a conversation correct and repeat itself within one batch, too', async () => {
      const said = [
        'I live in Berlin with my sister.',
        'I own a red car.',
        'I live in Rome.',
        'I own the red car.',
        'I live in Oslo.',
      ];
      expect(await saidAtOnce('c', said)).toEqual(['I live in Oslo. 4#c', 'I own a red car. 1#c 3#c']);
      expect(await findRecord(database(), 'm', 'c1', new Date())).toMatchObject({ supersededBy: 'c3', validTo: now });
      expect(await findRecord(database(), 'm', 'c3', new Date())).toMatchObject({ supersededBy: 'c5', validTo: now });
    });

    it.each([
      [
        'b',
        ['I live in Paris.', 'I live in Berlin now.', 'I live in Paris, really.'],
        ['I live in Paris, really. 2#c'],
      ],
      ['d', ['I live in Paris.', 'I live in Berlin now.', 'I live in Paris.'], ['I live in Paris. 0#c 2#c']],
    ])('%s: who takes back what he said before has the last word', async (actor, said, standing) => {
      expect(await saidAtOnce(actor, said)).toEqual(standing);
    });

    it('goes on when a decision writes what stands already, and a later one replaces it', async () => {
      expect(await saidAtOnce('e', ['I live in Paris.'])).toEqual(['I live in Paris. 0#c']);
      const decided: Extractor = {
        ...localExtractor,
        decide: async (_batch, [first, second]) => [
          { kind: 'update', id: first?.neighbours.at(-1)?.id ?? '', content: 'I live in Paris.' },
          { kind: 'supersede', id: second?.neighbours[0]?.id ?? '' },
        ],
      };
      const later = ['I live in the centre of Paris.', 'I live in the centre of Rome.'];
      expect(await saidAtOnce('e', later, decided)).toEqual(['I live in the centre of Rome. 1#c']);
    });

    it('ends a job once, and never while it is failed', async () => {
      const job = {
        memoryId: 'm',
        accountId: '1',
        strategyId: 's',
        actorId: 'a',
        sessionId: 'x',
        status: 'QUEUED' as const,
      };
      await addJob(database(), {
        ...job,
        id: 'j',
        events: [{ eventId: '1#a', count: 2 }],
        inline: undefined,
        variables: {},
        createdAt: now,
      });
      expect((await queuedJob(database(), 'j'))?.id).toBe('j');
      await giveUpJob(database(), 'j', 'because \u0000');
      expect(await queuedJob(database(), 'j')).toBeUndefined();
      expect(await endJob(database(), 'j')).toBe(false);
      expect(await failedJobs(database(), 'm', { actorId: 'a' }, 5, undefined)).toMatchObject([
        { id: 'j', failureReason: 'because ' },
      ]);
      expect(await failedJobs(database(), 'm', { actorId: 'b' }, 5, undefined)).toEqual([]);
      expect(await requeueJob(database(), 'other', 'j')).toBeUndefined();
      expect(await requeueJob(database(), 'm', 'j')).toMatchObject({ status: 'QUEUED', failureReason: undefined });
      expect([await endJob(database(), 'j'), await endJob(database(), 'j')]).toEqual([true, false]);
    });

    it('writes events in groups: each once, one bad one alone', async () => {
      const writer = new EventWriter(database());
      const event = (n: number, more: Partial<NewEvent> = {}): NewEvent => ({
        memoryId: 'm',
        actorId: 'a',
        sessionId: 'x',
        eventId: `${String(n).padStart(19, '0')}#a`,
        at: now,
        createdAt: now,
        expiresAt: new Date(now.getTime() + 1000),
        payload: [{ blob: `\u0000 ${n}` }],
        metadata: {},
        branch: undefined,
        variables: {},
        clientToken: `token ${n % 40}`,
        fingerprint: 'f',
        pending: false,
        ...more,
      });
      const outcomes = await Promise.allSettled([
        ...Array.from({ length: 50 }, (_, n) => writer.write(event(n))),
        writer.write(event(60, { metadata: { a: { stringValue: 'nul \u0000' } }, clientToken: undefined })),
      ]);
      expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1);
      const query = {
        memoryId: 'm',
        actorId: 'a',
        sessionId: 'x',
        limit: 100,
        after: undefined,
        branches: undefined,
        metadata: [],
      };
      const found = await listEvents(database(), { ...query, now });
      expect(found.map(({ payload }) => payload[0]?.blob)).toEqual(
        Array.from({ length: 40 }, (_, n) => `\u0000 ${39 - n}`),
      );
      expect(await listEvents(database(), { ...query, now: new Date(now.getTime() + 1000) })).toEqual([]);

      // What has expired is deleted in the background; what a deleted memory held, too.
      const left = async (): Promise<number> => (await database().query('SELECT 1 FROM memory_events')).length;
      const clock = new FakeClock(now.getTime() + 999);
      const housekeeping = new Housekeeping({ database: database(), clock, log: silent });
      await writer.write(
        event(70, { memoryId: 'gone', expiresAt: new Date(now.getTime() + 1e9), clientToken: undefined }),
      );
      expect([await housekeeping.round(), await left()]).toEqual([false, 41]);
      await clock.advance(1);
      expect([await housekeeping.round(), await left()]).toEqual([false, 1]);
      await database().execute("INSERT INTO memory_purges (memory_id) VALUES ('gone')");
      while (await housekeeping.round());
      expect(await left()).toBe(0);
      expect(await database().query('SELECT 1 FROM memory_purges')).toEqual([]);
    });

    it('gives no job more than it can hold, and leaves no event out', async () => {
      const clock = new FakeClock(now.getTime());
      let ids = 0;
      const newId = (): string => `id${String(ids++).padStart(8, '0')}`;
      const memories = new Memories({
        database: database(),
        changes: new ToldChanges(),
        clock,
        region: 'us-east-1',
        newIdSuffix: newId,
      });
      const memoryStrategies = [{ semanticMemoryStrategy: { name: 'facts' } }];
      const memory = await memories.create(
        { name: 'large', eventExpiryDuration: 30, memoryStrategies },
        '123456789012',
      );
      const writer = new EventWriter(database());
      const said: string[] = [];
      for (const size of [10, 200_000, 60_000, 60_000, 10, 10]) {
        const eventId = newId();
        said.push(eventId);
        const session = { memoryId: memory.id, actorId: 'jane', sessionId: 's' };
        const times = { at: now, createdAt: now, expiresAt: new Date(now.getTime() + 1e9) };
        const rest = { metadata: {}, branch: undefined, variables: {}, clientToken: undefined, fingerprint: eventId };
        await writer.write({
          ...session,
          ...times,
          ...rest,
          eventId,
          payload: [{ blob: 'x'.repeat(size) }],
          pending: true,
        });
      }
      const queues = new QueuedEntries();
      const deps = { database: database(), clock, memories, newJobId: newId, delayMs: 0, queues };
      for (let looks = 0; (await planJobs(deps)).more && looks < 10; looks++);
      const jobs: string[][] = [];
      for (const { id } of queues.take()) {
        jobs.push((await queuedJob(database(), id))?.events.map(({ eventId }) => eventId) ?? []);
        await endJob(database(), id);
      }
      expect(jobs).toEqual([said.slice(0, 2), said.slice(2, 4), said.slice(4)]);
    });
  },
);
