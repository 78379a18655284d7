import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runChild } from '../support/child.ts';
import { Connection } from '../support/connection.ts';
import { cpuSeconds } from '../support/cpu.ts';
import { median, rounded } from '../support/statistics.ts';
import { saturate } from '../support/wrk.ts';
import { type BenchPlatform, startBenchPlatform } from './bench-platform.ts';
import { signedKilobytes } from './contestants.ts';
import { timeNewSession } from './new-session.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const INSTALL_MS = 600_000;
/** So many requests to one before the other has its turn. */
const TURN = 50;
/** What a measure of speed may lose. */
const MAY_LOSE = 1.05;

export interface AgainstSize {
  sequential: number;
  saturated: { seconds: number; rounds: number };
  streams: number;
  starts: number;
}

/** One measure of both, each the median of its rounds; less is better. */
export interface Compared {
  measure: string;
  unit: 'ms' | 'µs' | 'µs of each, 32 connections';
  before: number;
  now: number;
}

/** One of the two, with a live session. */
interface Side {
  bench: BenchPlatform;
  sessionId: string;
  wires: Buffer[];
}

type Both = { before: Side; now: Side };
type Taken = { before: number[]; now: number[] };
const SIDES = ['before', 'now'] as const;

/**
 * The platform of an earlier commit, in a worktree with an install of its own, and this one (`commit` may be a folder with both), side by side on the same machine and in turns: what
 * changes with the machine changes for both. Rejects where the commit is not there or cannot be installed.
 */
export async function measureAgainst(commit: string, size: AgainstSize): Promise<Compared[]> {
  const dir = await mkdtemp(join(tmpdir(), 'agentplatform-against-'));
  // A folder is a checkout that is installed already.
  const installed = existsSync(commit);
  const checkout = installed ? resolve(commit) : join(dir, 'before');
  await chmod(dir, 0o711);
  const git = (...args: string[]): Promise<string> => runChild('git', ['-C', ROOT, ...args], INSTALL_MS);
  const opened: BenchPlatform[] = [];
  try {
    if (!installed) {
      await git('worktree', 'add', '--detach', checkout, commit);
      await runChild('npm', ['--prefix', checkout, 'ci', '--no-audit', '--no-fund'], INSTALL_MS);
    }
    const former: { startBenchPlatform: typeof startBenchPlatform } = await import(
      pathToFileURL(join(checkout, 'bench/runtime/bench-platform.ts')).href
    );
    const open = async (start: typeof startBenchPlatform, name: string): Promise<Side> => {
      const dataDir = join(dir, name);
      await mkdir(dataDir, { mode: 0o700 });
      const bench = await start(dataDir);
      opened.push(bench);
      const sessionId = `bench-${randomUUID()}`;
      await bench.session(sessionId);
      return { bench, sessionId, wires: (await signedKilobytes(bench, sessionId)).map(({ wire }) => wire) };
    };
    const both: Both = {
      before: await open(former.startBenchPlatform, 'data-before'),
      now: await open(startBenchPlatform, 'data-now'),
    };
    // The heaviest first: it warms everything up.
    return [
      ...(await saturated(both, dir, size.saturated)),
      await oneConnection(both, size.sequential),
      await firstByte(both, size.streams),
      await newSessions(both, size.starts),
    ];
  } finally {
    for (const bench of opened) await bench.close();
    if (!installed) await git('worktree', 'remove', '--force', checkout).catch(() => undefined);
    await rm(dir, { recursive: true, force: true });
  }
}

const none = (): Taken => ({ before: [], now: [] });
const compared = (measure: string, unit: Compared['unit'], { before, now }: Taken): Compared => ({
  ...{ measure, unit, before: median(before), now: median(now) },
});

async function saturated(both: Both, dir: string, size: AgainstSize['saturated']): Promise<Compared[]> {
  const [each, cpu] = [none(), none()];
  for (let round = -1; round < size.rounds; round += 1) {
    for (const side of SIDES) {
      const { bench, sessionId } = both[side];
      const requests = await signedKilobytes(bench, sessionId);
      await bench.settled();
      const before = await cpuSeconds(bench.platform.pid);
      const perSecond = await saturate(dir, {
        ...{ url: bench.endpoint.origin, connections: 32, seconds: size.seconds, path: bench.path },
        ...{ body: 'y'.repeat(1024), headers: requests.map(({ headers }) => headers) },
      });
      // Code that runs for the first time is slower.
      if (round < 0) continue;
      each[side].push(1e6 / perSecond);
      cpu[side].push((((await cpuSeconds(bench.platform.pid)) - before) / (perSecond * size.seconds)) * 1e6);
    }
  }
  return [
    compared('An invocation, saturated', 'µs of each, 32 connections', each),
    compared('CPU of an invocation, saturated', 'µs', cpu),
  ];
}

const connectionTo = ({ bench: { endpoint } }: Side): Promise<Connection> =>
  Connection.open(endpoint.hostname, Number(endpoint.port));

async function oneConnection(both: Both, rounds: number): Promise<Compared> {
  const taken = none();
  const connections = { before: await connectionTo(both.before), now: await connectionTo(both.now) };
  try {
    for (let round = -4 * TURN; round < rounds; round += TURN) {
      for (const side of SIDES) {
        const { wires } = both[side];
        for (let i = 0; i < TURN; i += 1) {
          const begin = performance.now();
          const { endAt } = await connections[side].send(wires[i % wires.length] ?? Buffer.alloc(0));
          if (round >= 0) taken[side].push(endAt - begin);
        }
      }
    }
    return compared('An invocation, one connection, p50', 'ms', taken);
  } finally {
    for (const side of SIDES) connections[side].close();
  }
}

async function firstByte(both: Both, rounds: number): Promise<Compared> {
  const taken = none();
  const body = JSON.stringify({ chunks: 3, everyMs: 5 });
  for (let round = -10; round < rounds; round += 1) {
    for (const side of SIDES) {
      const { bench, sessionId } = both[side];
      const { wire } = await bench.invocation(sessionId, body);
      const connection = await connectionTo(both[side]);
      const begin = performance.now();
      const { firstByteAt } = await connection.send(wire);
      if (round >= 0) taken[side].push(firstByteAt - begin);
      connection.close();
    }
  }
  return compared('First streamed byte on a new connection, p50', 'ms', taken);
}

async function newSessions(both: Both, rounds: number): Promise<Compared> {
  const taken = none();
  for (let round = -1; round < rounds; round += 1) {
    for (const side of SIDES) {
      const ms = await timeNewSession(both[side].bench);
      if (round >= 0) taken[side].push(ms);
    }
  }
  return compared('A new session to its first byte, p50', 'ms', taken);
}

/** As a table; what has lost more than it may is bold. */
export function againstTable(commit: string, results: readonly Compared[]): string {
  const row = ({ measure, unit, before, now }: Compared): string => {
    const ratio = now / before;
    const said = `${rounded(ratio, 2)} ×`;
    const values = [before, now].map((value) => `${rounded(value, unit === 'ms' ? 3 : 0)} ${unit.split(' ')[0]}`);
    return `| ${[measure, ...values, ratio > MAY_LOSE ? `**${said}**` : said, 'at most 1.05 ×'].join(' | ')} |`;
  };
  return [`| measure | ${commit} | this | compared | aim |`, '|---|---|---|---|---|', ...results.map(row)].join('\n');
}
