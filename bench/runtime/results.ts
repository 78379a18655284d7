import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { busyNote, type Machine, takenOn } from '../support/machine.ts';
import { rounded } from '../support/statistics.ts';
import { againstTable, type Compared } from './against.ts';
import type { ColdStart } from './cold-start.ts';
import type { Contestant } from './contestants.ts';
import type { KnownSessions } from './known-sessions.ts';
import type { Latencies } from './latency.ts';
import type { PooledStart } from './pooled-start.ts';
import type { SaturationResult } from './saturation.ts';
import type { LargeStream } from './streaming.ts';
import type { WebSocketEcho } from './websocket-echo.ts';

export interface RuntimeResults {
  /** ISO 8601. */
  at: string;
  quick: boolean;
  machine: Machine;
  oneConnection: Latencies;
  fixedRate: Latencies & { rate: number };
  saturated: SaturationResult;
  firstByte: Record<Contestant['name'], number>;
  largeStream?: LargeStream;
  coldStart: ColdStart;
  secondStartSeconds: number;
  pooledStart: PooledStart;
  webSocketEcho: WebSocketEcho;
  knownSessions: KnownSessions;
}

const resultsFile = fileURLToPath(new URL('../results/runtime.json', import.meta.url));
const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));

/** The results as a table in Markdown: each measure, its peer, the ratio or difference, and what was aimed at. */
export function table(results: RuntimeResults): string {
  const { oneConnection: one, fixedRate: rate, saturated, firstByte, largeStream, coldStart } = results;
  const ms = (value: number): string => (Number.isFinite(value) ? `${rounded(value, 3)} ms` : 'does not keep up');
  const added = (value: number): string => (Number.isFinite(value) ? `+${ms(value)}` : '');
  const perSecond = (value: number): string => `${Math.round(value).toLocaleString('en')}/s`;
  const rows = [
    [
      'One connection, p50',
      ms(one.platform.p50),
      `direct ${ms(one.direct.p50)}, nginx ${ms(one.nginx.p50)}`,
      added(one.platform.p50 - one.direct.p50),
      'at most +0.4 ms',
    ],
    [
      `${rate.rate} requests/s, p50`,
      ms(rate.platform.p50),
      `direct ${ms(rate.direct.p50)}, nginx ${ms(rate.nginx.p50)}`,
      added(rate.platform.p50 - rate.direct.p50),
      'at most +0.5 ms',
    ],
    [
      `${rate.rate} requests/s, p99`,
      ms(rate.platform.p99),
      `direct ${ms(rate.direct.p99)}, nginx ${ms(rate.nginx.p99)}`,
      added(rate.platform.p99 - rate.direct.p99),
      'at most 3 ms',
    ],
    [
      '32 connections, saturated',
      perSecond(saturated.perSecond.platform),
      `nginx ${perSecond(saturated.perSecond.nginx)}, direct ${perSecond(saturated.perSecond.direct)}`,
      `${rounded(saturated.platformToNginx, 2)} × nginx`,
      'at least 0.4',
    ],
    ['CPU of one request, saturated', `${Math.round(saturated.platformCpuMicros)} µs`, '', '', ''],
    [
      'First streamed byte, p50',
      ms(firstByte.platform),
      `direct ${ms(firstByte.direct)}, nginx ${ms(firstByte.nginx)}`,
      added(firstByte.platform - firstByte.direct),
      'at most +1 ms',
    ],
    ...(largeStream
      ? [
          [
            'The second GB streamed, memory',
            `${Math.round(largeStream.rssMiB.highest)} MiB at most`,
            `${Math.round(largeStream.rssMiB.before)} MiB before`,
            `${Math.round(largeStream.bytes / 2 ** 20 / largeStream.seconds)} MiB/s`,
            'flat',
          ],
        ]
      : []),
    [
      'New session to first byte',
      ms(coldStart.platform),
      `runc run ${ms(coldStart.runtime)}`,
      `${rounded(coldStart.platform / coldStart.runtime, 2)} × runc`,
      'at most 1.3',
    ],
    [
      'Pooled new session to first byte, p50',
      ms(results.pooledStart.p50),
      `cold start ${ms(coldStart.platform)}`,
      `${rounded(results.pooledStart.p50 / coldStart.platform, 2)} × cold`,
      'at most 10 ms',
    ],
    ['Pooled new session to first byte, p95', ms(results.pooledStart.p95), '', '', 'at most 25 ms'],
    [
      'WebSocket echo of 1 KB, p50',
      ms(results.webSocketEcho.platform),
      `direct ${ms(results.webSocketEcho.direct)}`,
      `${rounded(results.webSocketEcho.platform / results.webSocketEcho.direct, 2)} × direct`,
      'at most 1.2',
    ],
    [
      `Memory of each of ${results.knownSessions.sessions.toLocaleString('en')} known sessions`,
      `${results.knownSessions.bytesEach} bytes`,
      '',
      `${results.knownSessions.timers} timers in all`,
      'at most 4,096 bytes',
    ],
    ['Second start to ready', `${rounded(results.secondStartSeconds, 2)} s`, '', '', 'below 3 s'],
  ];
  return [
    '| measure | platform | peer | compared | aim |',
    '|---|---|---|---|---|',
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n');
}

/** Keeps the results in the repository and shows them in the docs. */
export async function keepResults(results: RuntimeResults): Promise<void> {
  await mkdir(dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'runtime', section(results)));
}

/** Shows what `--against` measured in the docs. */
export async function keepAgainst(kept: {
  at: string;
  machine: Machine;
  commit: string;
  results: readonly Compared[];
}): Promise<void> {
  const note = busyNote(kept.machine, 'both were measured in turns, so the ratios count and the times do not');
  const text = [`${takenOn(kept.at, kept.machine)}.${note}`, '', againstTable(kept.commit, kept.results)].join('\n');
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'runtime-against', text));
}

function section(results: RuntimeResults): string {
  return [
    `${takenOn(results.at, results.machine)}.${busyNote(results.machine, 'these numbers are too high and will be replaced')}`,
    '',
    table(results),
  ].join('\n');
}
