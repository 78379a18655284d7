import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { type Machine, takenOn } from '../support/machine.ts';
import { rounded } from '../support/statistics.ts';
import type { Measured } from './throughput.ts';

export interface GatewayResults {
  /** ISO 8601. */
  at: string;
  machine: Machine;
  measured: Measured[];
}

const resultsFile = fileURLToPath(new URL('../results/gateway.json', import.meta.url));
const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

/** The results as a table in Markdown. */
export function table({ measured }: GatewayResults): string {
  const peer = measured.find(({ name }) => name === 'FastMCP');
  const rows = measured.map(({ name, perSecond, p50, p99 }) => [
    ...[name, String(Math.round(perSecond)), `${rounded(p50, 2)} ms`, `${rounded(p99, 2)} ms`],
    peer && name !== peer.name ? `${rounded(perSecond / peer.perSecond, 1)} ×` : '',
  ]);
  const head = [
    '| `tools/call` | a second, 32 connections | p50, one connection | p99 | FastMCP |',
    '|---|---|---|---|---|',
  ];
  return [...head, ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n');
}

/** Keeps the results in the repository and shows them in the docs. */
export async function keepResults(results: GatewayResults): Promise<void> {
  await mkdir(dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  const taken = `${takenOn(results.at, results.machine)}.`;
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'gateway', `${taken}\n\n${table(results)}`));
}
