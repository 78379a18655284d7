import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { busyNote, type Machine, takenOn } from '../support/machine.ts';
import { rounded } from '../support/statistics.ts';

/** Milliseconds. */
export interface Figure {
  what: string;
  p50: number;
  p99: number;
  aim: string;
}

export interface PolicyResults {
  /** ISO 8601. */
  at: string;
  machine: Machine;
  figures: Figure[];
}

const resultsFile = fileURLToPath(new URL('../results/policy.json', import.meta.url));
const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

/** The results as a table in Markdown. */
export function table({ figures }: Pick<PolicyResults, 'figures'>): string {
  const rows = figures.map(
    ({ what, p50, p99, aim }) => `| ${what} | ${rounded(p50, 3)} | ${rounded(p99, 3)} | ${aim} |`,
  );
  return ['| measure | p50, ms | p99, ms | aim |', '|---|---|---|---|', ...rows].join('\n');
}

/** Writes the results beside the others, and into the page. */
export async function keepResults(results: PolicyResults): Promise<void> {
  await mkdir(dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  const taken = `${takenOn(results.at, results.machine)}.${busyNote(results.machine, 'the times are too high')}`;
  const text = `${taken}\n\n${table(results)}`;
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'policy', text));
}
