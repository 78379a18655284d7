import { expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { jobMigrations } from '../../../kernel/jobs/index.ts';
import { meteringMigrations } from '../../../kernel/metering/index.ts';
import { storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import { ToldChanges } from '../../../kernel/storage/testing/told-changes.ts';
import { EventWriter } from '../event-writer.ts';
import { endJob, queuedJob } from '../extraction-job-store.ts';
import { Memories } from '../memories.ts';
import { planJobs } from '../plan-jobs.ts';
import { memoryMigrations } from '../tables.ts';
import { QueuedEntries } from '../testing/queued-entries.ts';

const SECOND = 1000;

describeDatabases(
  'batches of a self-managed strategy',
  [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations],
  (database) => {
    it('wait for enough messages, for enough text or for silence, each session for itself', async () => {
      const clock = new FakeClock();
      let ids = 0;
      const newId = (): string => `id${String(ids++).padStart(8, '0')}`;
      const memories = new Memories({
        database: database(),
        changes: new ToldChanges(),
        clock,
        region: 'us-east-1',
        newIdSuffix: newId,
      });
      const selfManagedConfiguration = {
        invocationConfiguration: { topicArn: 'arn:aws:sns:r:1:t', payloadDeliveryBucketName: 'bucket' },
        triggerConditions: [
          { messageBasedTrigger: { messageCount: 3 } },
          { tokenBasedTrigger: { tokenCount: 100 } },
          { timeBasedTrigger: { idleSessionTimeout: 60 } },
        ],
      };
      const memory = await memories.create(
        {
          name: 'own',
          eventExpiryDuration: 30,
          memoryStrategies: [{ customMemoryStrategy: { name: 'own', configuration: { selfManagedConfiguration } } }],
        },
        '123456789012',
      );
      const writer = new EventWriter(database());
      const say = async (sessionId: string, text: string, source?: string): Promise<string> => {
        const eventId = newId();
        const at = new Date(clock.now());
        await writer.write({
          memoryId: memory.id,
          actorId: 'jane',
          sessionId,
          eventId,
          at,
          payload: [{ conversational: { role: 'TOOL', content: { text } } }],
          metadata: source === undefined ? {} : { 'agentplatform.source': { stringValue: source } },
          branch: undefined,
          variables: {},
          createdAt: at,
          expiresAt: new Date(clock.now() + 1e9),
          pending: true,
          clientToken: undefined,
          fingerprint: eventId,
        });
        return eventId;
      };
      const queues = new QueuedEntries();
      const deps = { database: database(), clock, memories, newJobId: newId, delayMs: 0, queues };
      /** Which events each job that is ready now has. */
      const ready = async (): Promise<string[][]> => {
        await planJobs(deps);
        const batches: string[][] = [];
        for (const { id } of queues.take()) {
          batches.push((await queuedJob(database(), id))?.events.map(({ eventId }) => eventId) ?? []);
          await endJob(database(), id);
        }
        return batches;
      };

      // Messages: the third one brings all, those that memory itself said do not count.
      const first = await say('a', 'one');
      expect(await ready()).toEqual([]);
      const second = await say('a', 'two');
      await say('a', 'recalled', 'memory');
      await say('b', 'of another session');
      expect(await ready()).toEqual([]);
      const third = await say('a', 'three');
      const [batch = [], ...others] = await ready();
      expect(others).toEqual([]);
      expect(batch).toEqual(expect.arrayContaining([first, second, third]));
      expect(await ready()).toEqual([]);

      // Text: four hundred characters are a hundred tokens.
      const long = await say('c', 'x'.repeat(400));
      expect(await ready()).toEqual([[long]]);

      // Silence, counted from the last event of the session.
      await clock.advance(50 * SECOND);
      await say('b', 'and again');
      expect(await ready()).toEqual([]);
      await clock.advance(50 * SECOND);
      expect(await ready()).toEqual([]);
      const plan = await planJobs(deps);
      expect(plan.nextIdleAt).toBe(clock.now() + 10 * SECOND);
      await clock.advance(10 * SECOND);
      expect((await ready()).map((events) => events.length)).toEqual([2]);
      expect(await ready()).toEqual([]);
    });
  },
);
