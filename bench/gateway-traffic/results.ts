import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { busyNote, type Machine, takenOn } from '../support/machine.ts';
import { rounded } from '../support/statistics.ts';
import type { LimitTimes } from './limits.ts';
import { CONNECTIONS, type Measured } from './measure.ts';

/** When, where and how carefully it was measured. */
interface Taken {
  /** ISO 8601. */
  at: string;
  quick: boolean;
  machine: Machine;
}

/** Each half can be measured by itself. */
export interface TrafficResults {
  /** Times in milliseconds. */
  streams?: Taken & {
    /** In words, what could not be measured, and why. */
    missing: string[];
    measured: Measured[];
  };
  limits?: Taken & LimitTimes;
}

const resultsFile = fileURLToPath(new URL('../results/gateway-traffic.json', import.meta.url));
const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

const HEAD = ['| measure | platform | others | compared | aim |', '|---|---|---|---|---|'];
const ms = (value: number): string => `${rounded(value, 2)} ms`;
const rate = (value: number): string => `${Math.round(value).toLocaleString('en')}/s`;

/** The results as tables in Markdown, and what is missing of them. */
export function tables({ streams, limits }: TrafficResults): string {
  const parts: string[] = [];
  if (streams) {
    const rows = streams.measured
      .filter(({ kind }) => kind === 'gateway')
      .flatMap((one) => rowsOf(one, streams.measured));
    parts.push(said(streams), ...streams.missing.map((one) => one.replaceAll('\n', ' ')), tableOf(rows));
  }
  if (limits) parts.push(said(limits), tableOf(limitRows(limits)));
  return parts.join('\n\n');
}

function tableOf(rows: readonly string[][]): string {
  return [...HEAD, ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n');
}

function said({ at, machine, quick }: Taken): string {
  return `${takenOn(at, machine)}${quick ? ', few turns' : ''}.${busyNote(machine)}`;
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
  const words = (shown: (one: Measured) => string): string =>
    others.flatMap((one) => (shown(one) === '' ? [] : [`${one.name} ${shown(one)}`])).join(', ');
  const added = ({ firstP50 }: Measured): number => firstP50 - (direct?.firstP50 ?? 0);
  const times = (of: (one: Measured) => number): string =>
    peers.map((one) => `${rounded(of(own) / of(one), 1)} × ${one.name}`).join(', ');
  return [
    [
      `${own.name}: first token of a stream, p50 (p99)`,
      `${ms(own.firstP50)} (${ms(own.firstP99)})`,
      words((one) => `${ms(one.firstP50)} (${ms(one.firstP99)})`),
      [`+${ms(added(own))} to direct`, ...peers.map((one) => `${one.name} +${ms(added(one))}`)].join(', '),
      'at most +0.7 ms, and a tenth of LiteLLM’s',
    ],
    [
      `${own.name}: streams of 200 tokens, ${CONNECTIONS} connections`,
      ...[rate(own.streamsPerSecond), words((one) => rate(one.streamsPerSecond))],
      ...[times((one) => one.streamsPerSecond), 'at least 5 × LiteLLM'],
    ],
    [
      `${own.name}: processor of one stream`,
      ...[ms(own.cpuOfStream), words((one) => (one.cpuOfStream === 0 ? '' : ms(one.cpuOfStream)))],
      ...[times((one) => 1 / one.cpuOfStream), ''],
    ],
    [
      `${own.name}: whole answers, ${CONNECTIONS} connections`,
      ...[rate(own.wholePerSecond), words((one) => rate(one.wholePerSecond))],
      ...[times((one) => one.wholePerSecond), 'at least 5 × LiteLLM'],
    ],
    [
      `${own.name}: processor of one whole answer`,
      ...[ms(own.cpuOfWhole), words((one) => (one.cpuOfWhole === 0 ? '' : ms(one.cpuOfWhole)))],
      ...[times((one) => 1 / one.cpuOfWhole), ''],
    ],
  ];
}

/** Keeps the results in the repository and shows them in the docs; what was not measured this time stays. */
export async function keepResults(results: TrafficResults): Promise<void> {
  await mkdir(dirname(resultsFile), { recursive: true });
  const before = await readFile(resultsFile, 'utf8').catch(() => '{}');
  const all: TrafficResults = { ...JSON.parse(before), ...results };
  await writeFile(resultsFile, `${JSON.stringify(all, undefined, 2)}\n`);
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'gateway-traffic', tables(all)));
}
