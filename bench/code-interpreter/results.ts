import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { busyNote, type Machine, takenOn } from '../support/machine.ts';
import { rounded } from '../support/statistics.ts';
import type { TransferResults } from './file-transfer.ts';
import type { LiveResults } from './live-sessions.ts';

/** Times in milliseconds, speeds in 2^20 bytes a second. */
export interface CodeInterpreterResults {
  /** ISO 8601. */
  at: string;
  machine: Machine;
  warm: { platform: number; bare: number };
  pooledFirst: { platform: number; coldKernel: number };
  files: TransferResults;
  live: LiveResults;
}

const resultsFile = fileURLToPath(new URL('../results/code-interpreter.json', import.meta.url));
const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));
const ms = (value: number): string => `${rounded(value, 1)} ms`;

/** The results as a table in Markdown. */
export function table({ warm, pooledFirst, files, live }: CodeInterpreterResults): string {
  const { write, read, rssMiB } = files;
  const rows = [
    [
      'Warm `executeCode("1+1")`, p50',
      ms(warm.platform),
      `bare ipykernel ${ms(warm.bare)}`,
      `${rounded(warm.platform / warm.bare, 2)} ×`,
      'at most 10 ms and 1.5 ×',
    ],
    [
      'Pooled session, first result, p50',
      ms(pooledFirst.platform),
      `cold Jupyter kernel ${ms(pooledFirst.coldKernel)}`,
      `${rounded(pooledFirst.platform / pooledFirst.coldKernel, 3)} ×`,
      'at most 50 ms',
    ],
    ['100 MB written in pieces of 4 MB', speeds(write), '', '', 'at least 50 MB/s'],
    ['100 MB read in pieces of 4 MB', speeds(read), '', '', 'at least 50 MB/s'],
    [
      'Memory of the server meanwhile',
      `${rssMiB.highest} MiB at most`,
      `${rssMiB.before} MiB before the third time`,
      `+${rssMiB.highest - rssMiB.before} MiB`,
      'flat',
    ],
    ...liveRows(live),
  ];
  return tableOf(rows);
}

/** The part of live sessions alone. */
export function liveTable(live: LiveResults): string {
  return tableOf(liveRows(live));
}

function liveRows({ asked, answered, start, warm, memory }: LiveResults): string[][] {
  return [
    ['Sessions live at once that answer', `${answered} of ${asked}`, '', '', '50'],
    ['Their starts, four at a time', `p50 ${ms(start.p50)}, p95 ${ms(start.p95)}`, '', '', ''],
    ['Warm `1+1` in one of them', `p50 ${ms(warm.p50)}, p95 ${ms(warm.p95)}`, '', '', ''],
    ['Memory of its processes, p50', `${memory.processes} MiB`, '', '', ''],
    ['Memory of the machine for each', `${memory.machine} MiB`, '', '', ''],
    ['Memory of the platform’s process for each', `${memory.platform} MiB`, '', '', ''],
  ];
}

function speeds({ one, two }: { one: number; two: number }): string {
  return `${rounded(one, 1)} MB/s one after the other, ${rounded(two, 1)} two at a time`;
}

function tableOf(rows: string[][]): string {
  const head = ['| measure | platform | peer | compared | aim |', '|---|---|---|---|---|'];
  return [...head, ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n');
}

/** Keeps the results in the repository and shows them in the docs. */
export async function keepResults(results: CodeInterpreterResults): Promise<void> {
  await mkdir(dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  const taken = `${takenOn(results.at, results.machine)}.${busyNote(results.machine, 'the times are too high')}`;
  const text = `${taken}\n\n${table(results)}`;
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'code-interpreter', text));
}
