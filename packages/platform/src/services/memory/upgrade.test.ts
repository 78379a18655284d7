import { expect, it } from 'vitest';
import { createJobs, jobMigrations } from '../../kernel/jobs/index.ts';
import { migrate, storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases, silent } from '../../kernel/storage/testing/databases.ts';
import { LineQueues } from './line-queues.ts';
import { memoryMigrations } from './tables.ts';

const BEFORE = memoryMigrations.filter(({ id }) => id < 'memory/0009');

describeDatabases(
  'data of a version whose memory kept its own queue',
  [...storageMigrations, ...BEFORE],
  (database) => {
    it('has its waiting batches done in their order, and keeps those that are held or have failed', async () => {
      const add = (id: string, sessionId: string, status: string): Promise<number> =>
        database().execute(
          `INSERT INTO memory_extraction_jobs (id, memory_id, account_id, strategy_id, actor_id, session_id, status, event_ids, variables, created_at, attempts)
         VALUES ($1, 'm', '1', 's', 'a', $2, $3, '[]', '{}', now(), 2)`,
          [id, sessionId, status],
        );
      for (const id of ['one', 'two', 'three']) await add(id, 'x', 'QUEUED');
      await add('held', 'x', 'HELD');
      await add('failed', 'x', 'FAILED');
      await add('other', 'y "quoted"', 'QUEUED');
      await database().exec('CREATE SCHEMA pgboss; CREATE TABLE pgboss.job (id text)');
      await migrate(database(), [
        ...storageMigrations,
        ...BEFORE,
        ...jobMigrations,
        ...memoryMigrations.slice(BEFORE.length),
      ]);

      const jobs = createJobs({ database: database(), log: silent, pollSeconds: 0.2 });
      const done: string[] = [];
      new LineQueues({
        jobs,
        topics: [],
        open: async ({ sessionId, id }) => ({
          topic: undefined,
          run: async () => void done.push(`${sessionId} ${id}`),
        }),
        giveUp: async () => undefined,
        settings: {},
      });
      await jobs.start();
      try {
        await expect
          .poll(() => done.toSorted(), { timeout: 15_000 })
          .toEqual(['x one', 'x three', 'x two', 'y "quoted" other']);
        expect(done.filter((one) => one.startsWith('x'))).toEqual(['x one', 'x two', 'x three']);
      } finally {
        await jobs.stop(0);
      }
      const left = await database().query("SELECT nspname FROM pg_namespace WHERE nspname = 'pgboss'");
      expect(left).toEqual([]);
    });
  },
);
