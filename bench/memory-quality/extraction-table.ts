import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Database } from '../../packages/platform/src/kernel/storage/index.ts';
import { localExtractor } from '../../packages/platform/src/services/memory/extraction/local-extractor.ts';
import { figuresOf, type Judged, judgeExtraction } from './extraction.ts';
import { readLabelled } from './labelled.ts';
import { shareInterval } from './statistics.ts';

const CONVERSATIONS = join(import.meta.dirname, 'conversations');
/** The rules were tuned on the first; the second is what they are worth. */
const FILES = { tuned: 'tuned.txt', 'held out': 'held-out.txt' };

/** What rules make of the forty labelled conversations, as a table; with `details`, what they missed and what they should not have kept. */
export async function extractionTable(database: Database, log: Logger, details: boolean): Promise<string> {
  const rows: string[] = [];
  const said: string[] = [];
  for (const [name, file] of Object.entries(FILES)) {
    const judged: Judged[] = [];
    for (const one of await readLabelled(join(CONVERSATIONS, file)))
      judged.push(await judgeExtraction(database, log, localExtractor, one));
    const { conversations, facts, records, found, junk, stale, corrections, corrected } = figuresOf(judged);
    const cells = [shareInterval(found, facts), shareInterval(junk, records), shareInterval(stale, records)];
    rows.push(`| ${name} | ${conversations} | ${cells.join(' | ')} | ${corrected} of ${corrections} |`);
    for (const { title, missed, junk: kept, stale: old } of judged)
      if (missed.length + kept.length + old.length > 0)
        said.push(JSON.stringify({ title, missed, junk: kept, stale: old }));
  }
  const head = [
    '| conversations | number | facts found | records that are junk | records that are stale | corrections taken |',
    '|---|---|---|---|---|---|',
  ];
  return [...head, ...rows, ...(details ? ['', ...said] : [])].join('\n');
}
