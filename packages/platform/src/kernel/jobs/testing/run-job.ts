/** Run as a child: enqueues one job whose run never ends, and says when it has begun. */
import pino from 'pino';
import { migrate, openDatabase } from '../../storage/index.ts';
import { createJobs } from '../jobs.ts';
import { jobMigrations } from '../tables.ts';

const [dataDir, cacheDir, url] = process.argv.slice(2);
if (!dataDir) throw new Error('usage: run-job.ts DATA_DIR CACHE_DIR [URL]');
const log = pino({ level: 'silent' });
const database = await openDatabase({ dataDir, cacheDir, url, log });
await migrate(database, jobMigrations);
const jobs = createJobs({ database, log });
const queue = jobs.define<{ n: number }>('endless', {
  parse: (data) => data as { n: number },
  run: async () => {
    process.stdout.write('running\n');
    await new Promise(() => {});
  },
});
await jobs.start();
await queue.enqueue({ n: 7 });
