import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { busyNote, type Machine, takenOn } from '../support/machine.ts';
import { rounded } from '../support/statistics.ts';
import type { LimitTimes } from './limits.ts';
import { CONNECTIONS, type Measured } from './measure.ts';

/** Times in milliseconds. */
export interface TrafficResults {
  /** ISO 8601. */
  at: string;
  quick: boolean;
  machine: Machine;
  /** In words, what could not be measured, and why. */
  missing: string[];
  measured: Measured[];
  limits: LimitTimes;
}

const resultsFile = fileURLToPath(new URL('../results/gateway-traffic.json', import.meta.url));
const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

const HEAD = ['| measure | platform | others | compared | aim |', '|---|---|---|---|---|'];
const ms = (value: number): string => `${rounded(value, 2)} ms`;
const rate = (value: number): string => `${Math.round(value).toLocaleString('en')}/s`;

/** The results as a table in Markdown, and what is missing of them. */
export function table({ measured, missing, limits }: TrafficResults): string {
  const rows = measured.filter(({ kind }) => kind === 'gateway').flatMap((one) => rowsOf(one, measured));
  const lines = [...HEAD, ...[...rows, ...limitRows(limits)].map((row) => `| ${row.join(' | ')} |`)];
  return [...lines, ...missing.flatMap((one) => ['', one.replaceAll('\n', ' ')])].join('\n');
}

function limitRows({ checkP50, checkP99, drawP50, drawP99 }: LimitTimes): string[][] {
  const us = (value: number): string => `${rounded(value, 1)} µs`;
  return [
    [
      'Rate limit, from a portion, p50 (p99 of 20 together)',
      `${us(checkP50)} (${us(checkP99)})`,
      '',
      '',
      'at most 20 µs',
    ],
    ['Rate limit, with a draw from the embedded database, p50 (p99)', `${us(drawP50)} (${us(drawP99)})`, '', '', ''],
  ];
}

function rowsOf(own: Measured, measured: readonly Measured[]): string[][] {
  const others = measured.filter(({ kind }) => kind !== 'gateway');
  const peers = measured.filter(({ kind }) => kind === 'peer');
  const direct = others.find(({ kind }) => kind === 'direct');
  const said = (shown: (one: Measured) => string): string =>
    others.map((one) => `${one.name} ${shown(one)}`).join(', ');
  const added = ({ firstP50 }: Measured): number => firstP50 - (direct?.firstP50 ?? 0);
  const times = (of: (one: Measured) => number): string =>
    peers.map((one) => `${rounded(of(own) / of(one), 1)} × ${one.name}`).join(', ');
  return [
    [
      `${own.name}: first token of a stream, p50 (p99)`,
      `${ms(own.firstP50)} (${ms(own.firstP99)})`,
      said((one) => `${ms(one.firstP50)} (${ms(one.firstP99)})`),
      [`+${ms(added(own))} to direct`, ...peers.map((one) => `${one.name} +${ms(added(one))}`)].join(', '),
      'at most +0.7 ms, and a tenth of LiteLLM’s',
    ],
    [
      `${own.name}: streams of 200 tokens, ${CONNECTIONS} connections`,
      ...[rate(own.streamsPerSecond), said((one) => rate(one.streamsPerSecond))],
      ...[times((one) => one.streamsPerSecond), 'at least 5 × LiteLLM'],
    ],
    [
      `${own.name}: whole answers, ${CONNECTIONS} connections`,
      ...[rate(own.wholePerSecond), said((one) => rate(one.wholePerSecond))],
      ...[times((one) => one.wholePerSecond), 'at least 5 × LiteLLM'],
    ],
  ];
}

/** Keeps the results in the repository and shows them in the docs. */
export async function keepResults(results: TrafficResults): Promise<void> {
  await mkdir(dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  const taken = `${takenOn(results.at, results.machine)}.${busyNote(results.machine)}`;
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'gateway-traffic', `${taken}\n\n${table(results)}`));
}
