import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import type { Machine } from '../support/machine.ts';
import { rounded } from '../support/statistics.ts';
import type { LargeResults } from './large.ts';
import type { Mem0Results } from './mem0.ts';

export interface Timed {
  p50: number;
  p99: number;
  perSecond: number;
}

export interface MemoryResults {
  /** ISO 8601. */
  at: string;
  quick: boolean;
  machine: Machine;
  /** The embedding model of both sides, or 'none'. */
  model: string;
  oneEvent: Timed;
  manyEvents: Timed & { connections: number };
  list: { short: Timed; long: Timed; events: number };
  /** Without and with the embedding of the query, over so many records. */
  retrieve: { records: number; lexical: boolean; without: Timed; whole: Timed };
  mem0?: Mem0Results;
  large?: LargeResults;
}

const resultsFile = fileURLToPath(new URL('../results/memory.json', import.meta.url));
const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

/** The results as a table in Markdown: each measure, its peer, the ratio, and what was aimed at. */
export function table(results: MemoryResults): string {
  const { oneEvent, manyEvents, list, retrieve, mem0, large } = results;
  const ms = (value: number): string => `${rounded(value, 2)} ms`;
  const ratio = (own: number, other: number | undefined): string =>
    other === undefined ? '' : `${rounded(own / other, 3)} ×`;
  const peer = (name: string, value: number | undefined): string => (value === undefined ? '' : `${name} ${ms(value)}`);
  const rows = [
    [
      'CreateEvent, one connection, p50',
      ms(oneEvent.p50),
      peer('mem0 `add` without inference', mem0?.written.p50),
      ratio(oneEvent.p50, mem0?.written.p50),
      'at most 3 ms',
    ],
    [
      'The same, records made of it in the background',
      ms(oneEvent.p50),
      peer('mem0 `add` with a scripted model', mem0?.inferred.p50),
      ratio(oneEvent.p50, mem0?.inferred.p50),
      '',
    ],
    [
      `CreateEvent, ${manyEvents.connections} connections`,
      `${manyEvents.perSecond.toLocaleString('en')}/s, p99 ${ms(manyEvents.p99)}`,
      '',
      '',
      'at least 1,000/s',
    ],
    [
      `ListEvents, the newest 20 of ${list.events.toLocaleString('en')}, p50`,
      ms(list.long.p50),
      peer('of 20:', list.short.p50),
      ratio(list.long.p50, list.short.p50),
      'flat',
    ],
    [
      `Retrieve over ${retrieve.records.toLocaleString('en')} records${retrieve.lexical ? ' by words' : ', without the embedding call'}, p50`,
      ms(retrieve.without.p50),
      peer('mem0 `search` without embedding', mem0?.searched.p50),
      ratio(retrieve.without.p50, mem0?.searched.p50),
      'at most 25 ms',
    ],
    [
      'The same with the embedding call, p50',
      ms(retrieve.whole.p50),
      peer('mem0', mem0?.whole.p50),
      ratio(retrieve.whole.p50, mem0?.whole.p50),
      '',
    ],
    ...(large?.filters ?? []).map((filter) => [
      `PostgreSQL, ${large?.records.toLocaleString('en')} records, namespace with ${filter.share}`,
      `p50 ${ms(filter.retrieveP50)}, p99 ${ms(filter.retrieveP99)}`,
      `exact search: recall@10 ${rounded(filter.recallAt10, 3)}`,
      '',
      'p50 at most 50 ms, recall@10 at least 0.95',
    ]),
  ];
  return [
    '| measure | platform | peer | compared | aim |',
    '|---|---|---|---|---|',
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n');
}

/** Keeps the results in the repository and shows them in the docs. What this run left out stays as it was measured before. */
export async function keepResults(results: MemoryResults): Promise<void> {
  const before: Partial<MemoryResults> = await readFile(resultsFile, 'utf8').then(JSON.parse, () => ({}));
  const kept = {
    ...(before.large ? { large: before.large } : {}),
    ...(before.mem0 ? { mem0: before.mem0 } : {}),
    ...results,
  };
  await mkdir(dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(kept, undefined, 2)}\n`);
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'memory', section(kept)));
}

function section(results: MemoryResults): string {
  const { cpu, cores, memoryGiB, kernel, node, loadAtStart } = results.machine;
  const busy =
    loadAtStart > cores / 2
      ? ' **The machine was busy with other work: these numbers are too high and will be replaced.**'
      : '';
  const peer = results.mem0 ? `mem0 ${results.mem0.version} on a local qdrant` : 'without mem0';
  return [
    `Taken ${results.at.slice(0, 10)} on ${cpu}, ${cores} cores, ${memoryGiB} GiB, Linux ${kernel}, Node ${node}, ${peer}, embeddings by ${results.model} for both; load ${loadAtStart} at the start.${busy}`,
    '',
    table(results),
  ].join('\n');
}
