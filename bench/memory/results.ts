import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { busyNote, type Machine, takenOn } from '../support/machine.ts';
import { rounded } from '../support/statistics.ts';
import type { GrowthResults } from './growth.ts';
import type { LargeResults } from './large.ts';
import type { Mem0Results } from './mem0.ts';

export interface Timed {
  p50: number;
  p99: number;
  perSecond: number;
}

/** With the longest of all. */
export type Spread = Timed & { longest: number };

/** Parts that were measured, each when it was; a run keeps what it left out as it was before. */
export interface MemoryResults {
  platform?: PlatformResults;
  mem0?: Mem0Results;
  large?: LargeResults;
  growth?: GrowthResults;
}

export interface PlatformResults {
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
}

const resultsFile = fileURLToPath(new URL('../results/memory.json', import.meta.url));
const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

const HEAD = ['| measure | platform | peer | compared | aim |', '|---|---|---|---|---|'];

/** The results as a table in Markdown: each measure, its peer, the ratio, and what was aimed at. */
export function table(results: MemoryResults): string {
  const { platform, mem0, large, growth } = results;
  const rows = [
    ...(platform ? platformRows(platform, mem0) : []),
    ...(large ? largeRows(large) : []),
    ...(growth ? growthRows(growth) : []),
  ];
  return [...HEAD, ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n');
}

const ms = (value: number): string => `${rounded(value, 2)} ms`;

function platformRows(
  { oneEvent, manyEvents, list, retrieve }: PlatformResults,
  mem0: Mem0Results | undefined,
): string[][] {
  const ratio = (own: number, other: number | undefined): string =>
    other === undefined ? '' : `${rounded(own / other, 3)} ×`;
  const peer = (name: string, value: number | undefined): string => (value === undefined ? '' : `${name} ${ms(value)}`);
  return [
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
  ];
}

function largeRows({ records, filters }: LargeResults): string[][] {
  return filters.map((filter) => [
    `PostgreSQL, ${records.toLocaleString('en')} records, namespace with ${filter.share}`,
    `p50 ${ms(filter.retrieveP50)}, p99 ${ms(filter.retrieveP99)}`,
    `exact search: recall@10 ${rounded(filter.recallAt10, 3)}`,
    '',
    'p50 at most 50 ms, recall@10 at least 0.95',
  ]);
}

function growthRows({ alone, stages, behind, last }: GrowthResults): string[][] {
  const spread = ({ p50, p99, longest }: Spread): string => `p50 ${ms(p50)}, p99 ${ms(p99)}, longest ${ms(longest)}`;
  const [first] = stages;
  const beside = `alone: ${spread(alone)}`;
  return [
    ...[...stages, last].flatMap(({ records, batch, event }) => [
      [
        `A batch of 100 records, up to ${records.toLocaleString('en')}, vectors by the local model`,
        spread(batch),
        first ? `the first: p50 ${ms(first.batch.p50)}` : '',
        first ? `${rounded(batch.p50 / first.batch.p50, 2)} ×` : '',
        'flat',
      ],
      ['CreateEvent beside it', spread(event), beside, `${rounded(event.p50 / alone.p50, 2)} ×`, ''],
    ]),
    [
      `CreateEvent in the ${Math.round(behind.seconds)} s ${behind.done ? 'until the last vector is made' : 'after it, while vectors are made'}`,
      spread(behind.event),
      beside,
      `${rounded(behind.event.p50 / alone.p50, 2)} ×`,
      '',
    ],
  ];
}

/** Keeps the results in the repository and shows them in the docs. */
export async function keepResults(results: MemoryResults): Promise<void> {
  const before: MemoryResults = await readFile(resultsFile, 'utf8').then(JSON.parse, () => ({}));
  const kept = { ...before, ...results };
  await mkdir(dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(kept, undefined, 2)}\n`);
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'memory', section(kept)));
}

function section(results: MemoryResults): string {
  const { platform, mem0, large, growth } = results;
  const said: string[] = [];
  if (platform) {
    const peer = mem0 ? `mem0 ${mem0.version} on a local qdrant` : 'without mem0';
    said.push(
      `${takenOn(platform.at, platform.machine)}, ${peer}, embeddings by ${platform.model} for both.${busyNote(platform.machine)}`,
    );
  }
  if (large) {
    const { embedded, indexSeconds } = large;
    said.push(
      `PostgreSQL with pgvector ${large.pgvector}: ${takenOn(large.at, large.machine)}; ${embedded.toLocaleString('en')} sentences embedded, the rest perturbed, the graph built in ${Math.round(indexSeconds)} s.${busyNote(large.machine)}`,
    );
  }
  if (growth)
    said.push(
      `Records that become more: ${takenOn(growth.at, growth.machine)}, embeddings by ${growth.model} in a process of the platform's own.${busyNote(growth.machine)}`,
    );
  return [...said.flatMap((paragraph) => [paragraph, '']), table(results)].join('\n');
}
