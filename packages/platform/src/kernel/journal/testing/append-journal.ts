/** Run as a child: appends numbers to a journal, printing each one that was acknowledged, until it is killed. */
import { writeSync } from 'node:fs';
import pino from 'pino';
import { systemClock } from '../../clock.ts';
import { migrate, openDatabase } from '../../storage/index.ts';
import { createJournal } from '../journal.ts';
import { journalMigrations } from '../tables.ts';
import { numberMigrations, numberSink } from './number-sink.ts';

const [dataDir, url] = process.argv.slice(2);
if (!dataDir || !url) throw new Error('usage: append-journal.ts DATA_DIR DATABASE_URL');
const log = pino({ level: 'silent' });
const database = await openDatabase({ dataDir, url, log });
await migrate(database, [...journalMigrations, ...numberMigrations], log);
const journal = await createJournal<{ number: number }>({
  dir: `${dataDir}/journal`,
  database,
  sinks: { number: numberSink },
  clock: systemClock,
  log,
  segmentBytes: 4_096,
  drainDelayMs: 1,
  maxBatch: 50,
});
let next = Number(process.argv[4] ?? 0);
const one = async (): Promise<void> => {
  for (;;) {
    const n = next++;
    await journal.append('number', n);
    // Not by process.stdout, which keeps in memory what a slow reader has not taken: killed, it would take acknowledgements with it.
    writeSync(1, `${n}\n`);
  }
};
await Promise.all([one(), one(), one(), one()]);
