import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { busyNote, type Machine, takenOn } from '../support/machine.ts';
import { rounded } from '../support/statistics.ts';
import type { HalfLoad } from './half-load.ts';
import type { Listing } from './listing.ts';
import type { Neighbours } from './neighbours.ts';
import type { Processes } from './processes.ts';
import type { Registration } from './registration.ts';
import type { Searching } from './searching.ts';
import { CONNECTIONS, type Measured } from './throughput.ts';

/** Through gateways, through peers and directly. */
export interface Calls {
  /** In words, what could not be measured, and why. */
  missing: string[];
  measured: Measured[];
  half: HalfLoad[];
}

/** What is measured, by the names that `--only` takes. Times in milliseconds. */
export interface Parts {
  calls: Calls;
  neighbours: Neighbours;
  lists: Listing;
  /** Undefined where npm could not bring the document. */
  document: Registration | undefined;
  search: Searching;
  servers: Processes;
}
export type Part = keyof Parts;
export const PARTS = ['calls', 'neighbours', 'lists', 'document', 'search', 'servers'] as const satisfies Part[];

interface Taken {
  /** ISO 8601. */
  at: string;
  quick: boolean;
  machine: Machine;
}

/** What was measured, each part with when and where. */
export type GatewayResults = { [Name in Part]?: { taken: Taken; found: Parts[Name] } };

const resultsFile = fileURLToPath(new URL('../results/gateway.json', import.meta.url));
const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

const HEAD = ['| measure | platform | peer | compared | aim |', '|---|---|---|---|---|'];
const ms = (value: number): string => (Number.isFinite(value) ? `${rounded(value, 2)} ms` : 'not kept up');
const rate = (value: number): string => `${Math.round(value).toLocaleString('en')}/s`;
const added = (value: number): string => `${value < 0 ? '' : '+'}${ms(value)}`;

/** The results as a table in Markdown, when and where each part was taken, and what is missing. */
export function table({ calls, neighbours, lists, document, search, servers }: GatewayResults): string {
  const rows = [
    ...(calls ? [...callRows(calls.found), ...halfRows(calls.found)] : []),
    ...(neighbours ? [neighboursRow(neighbours.found)] : []),
    ...(lists ? [listingRow(lists.found)] : []),
    ...(document?.found ? [registrationRow(document.found)] : []),
    ...(search ? searchRows(search.found) : []),
    ...(servers ? [processesRow(servers.found, servers.taken.machine)] : []),
  ];
  const lines = [...HEAD, ...rows.map((row) => `| ${row.join(' | ')} |`)];
  const missing = [
    ...(calls?.found.missing ?? []),
    ...(document && !document.found ? ['GitHub’s document is not measured: npm could not bring it.'] : []),
  ];
  return [...lines, ...missing.flatMap((one) => ['', one.replaceAll('\n', ' ')])].join('\n');
}

/** When and where each part was taken, those of one run in one line. */
function takenLines(results: GatewayResults): string[] {
  const parts = new Map<string, string[]>();
  for (const name of PARTS) {
    const { taken } = results[name] ?? {};
    if (!taken) continue;
    const line = `${takenOn(taken.at, taken.machine)}${taken.quick ? ', a quick run' : ''}.${busyNote(taken.machine)}`;
    parts.set(line, [...(parts.get(line) ?? []), name]);
  }
  return [...parts].map(([line, names]) => `- ${names.join(', ')}: ${line}`);
}

function callRows({ measured }: Calls): string[][] {
  const others = measured.filter(({ kind }) => kind !== 'gateway');
  const peers = measured.filter(({ kind }) => kind === 'peer');
  const direct = measured.find(({ kind }) => kind === 'direct');
  const said = (shown: (one: Measured) => string): string =>
    others.map((one) => `${one.name} ${shown(one)}`).join(', ');
  return measured
    .filter(({ kind }) => kind === 'gateway')
    .flatMap(({ name, perSecond, p50, p99 }) => [
      [
        `\`tools/call\`, ${name}, ${CONNECTIONS} connections`,
        rate(perSecond),
        said((one) => rate(one.perSecond)),
        peers.map((one) => `${rounded(perSecond / one.perSecond, 1)} × ${one.name}`).join(', '),
        'at least 5 × each',
      ],
      [
        `The same over one connection, p50 (p99)`,
        `${ms(p50)} (${ms(p99)})`,
        said((one) => `${ms(one.p50)} (${ms(one.p99)})`),
        direct ? `${added(p50 - direct.p50)} to direct` : '',
        '',
      ],
    ]);
}

function halfRows({ half, measured }: Calls): string[][] {
  const isPeer = (wanted: string): boolean => measured.some(({ name, kind }) => name === wanted && kind === 'peer');
  return half.map(({ name, rate: offered, p50, direct, added: more }) => [
    `\`tools/call\`, ${name}, at half of its saturation (${rate(offered)}), p50`,
    ...(isPeer(name) ? ['', `${ms(p50)}, direct ${ms(direct)}`] : [ms(p50), `direct ${ms(direct)}`]),
    added(more),
    isPeer(name) ? '' : 'at most +1 ms',
  ]);
}

function neighboursRow({ rate: offered, sound, dead, hanging }: Neighbours): string[] {
  return [
    `A target at ${rate(offered)}, beside a dead one at ${rate(offered)} and ${hanging} calls without an answer, p99 (p50)`,
    `${ms(dead.p99)} (${ms(dead.p50)})`,
    `beside a sound one ${ms(sound.p99)} (${ms(sound.p50)})`,
    `${rounded(dead.p99 / sound.p99, 2)} ×`,
    'does not move',
  ];
}

function listingRow({ tools, bytes, first, p50, p99 }: Listing): string[] {
  return [
    `${tools.toLocaleString('en')} tools listed (${Math.round(bytes / 1024)} KiB), p50 (p99)`,
    ...[`${ms(p50)} (${ms(p99)})`, `the first time ${ms(first)}`, '', 'at most 10 ms'],
  ];
}

function registrationRow({ package: name, ready, callable }: Registration): string[] {
  const seconds = (value: number): string => `${rounded(value / 1000, 2)} s`;
  return [
    `GitHub's document (\`${name}\`), until a tool was called`,
    ...[seconds(callable), `READY after ${seconds(ready)}`, '', 'at most 3 s'],
  ];
}

function searchRows({ tools, words, meaning }: Searching): string[][] {
  const over = `Search over ${tools.toLocaleString('en')} tools`;
  const { p50, p99, embedding } = meaning;
  return [
    [`${over} by words, p50 (p99)`, `${ms(words.p50)} (${ms(words.p99)})`, '', '', 'at most 10 ms'],
    [
      `${over} by meaning and words, after the embedding call, p50`,
      ms(Math.max(0, p50 - embedding)),
      `with it ${ms(p50)} (p99 ${ms(p99)})`,
      ...['', 'at most 10 ms'],
    ],
  ];
}

function processesRow({ one, two, ratio, cores, cpuMicros }: Processes, machine: Machine): string[] {
  return [
    `Signed, ${CONNECTIONS} connections, PostgreSQL: two servers`,
    rate(two),
    `one server ${rate(one)}, ${rounded(cores, 2)} cores busy, ${Math.round(cpuMicros)} µs of CPU a call`,
    `${rounded(ratio, 2)} × one server; ${machine.cores} cores for these, PostgreSQL, the API and the load`,
    '',
  ];
}

/** Keeps what was measured in the repository, beside what was measured of other parts before, and shows all of it in the docs. */
export async function keepResults(measured: GatewayResults): Promise<void> {
  const kept: GatewayResults = JSON.parse(await readFile(resultsFile, 'utf8').catch(() => '{}'));
  const results = { ...kept, ...measured };
  await mkdir(dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  const text = [...takenLines(results), '', table(results)].join('\n');
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'gateway', text));
}
