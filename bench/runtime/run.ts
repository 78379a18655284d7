import { randomUUID } from 'node:crypto';
import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { thisMachine } from '../support/machine.ts';
import { startNginx } from '../support/nginx.ts';
import { againstTable, measureAgainst } from './against.ts';
import { newDirectory, POOLED, reopenBenchPlatform, startBenchPlatform } from './bench-platform.ts';
import { coldStart } from './cold-start.ts';
import { contestantsOf, signedKilobytes } from './contestants.ts';
import { knownSessions } from './known-sessions.ts';
import { fixedRate, oneConnection } from './latency.ts';
import { liveSessions } from './live-sessions.ts';
import { pooledStart } from './pooled-start.ts';
import { keepAgainst, keepResults, type RuntimeResults, table } from './results.ts';
import { saturation } from './saturation.ts';
import { secondStart } from './second-start.ts';
import { firstByte, largeStream } from './streaming.ts';
import { webSocketEcho } from './websocket-echo.ts';

const FULL = {
  sequential: 3000,
  rate: { rate: 2000, seconds: 4, rounds: 5 },
  saturated: { seconds: 4, rounds: 5 },
  streams: 100,
  starts: 15,
  boots: 3,
  pooled: 60,
  echoes: 2000,
};
const QUICK = {
  sequential: 500,
  rate: { rate: 2000, seconds: 2, rounds: 1 },
  saturated: { seconds: 2, rounds: 2 },
  streams: 20,
  starts: 3,
  boots: 1,
  pooled: 15,
  echoes: 500,
};

/**
 * `npm run bench -- runtime [--quick] [--keep] | --live N | --against COMMIT|FOLDER [--quick] [--keep]`: the session's hot path, cold start, streaming and second start, each beside its
 * peer; then starts from the pool, WebSockets and memory. `--live` holds so many sessions at once instead; `--against` measures the platform of a
 * commit and this one in turns. Prints a table; `--keep` writes bench/results/runtime.json and the page docs/benchmarks.md from it.
 */
export async function run(args: string[]): Promise<void> {
  const commit = args[args.indexOf('--against') + 1];
  if (args.includes('--against') && commit !== undefined) return against(commit, args);
  if (args.includes('--live')) return liveSessions(Number(args[args.indexOf('--live') + 1] ?? 200));
  const size = args.includes('--quick') ? QUICK : FULL;
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  const machine = thisMachine({ nginx: ['nginx', '-v'], wrk: ['wrk', '-v'], runc: ['runc', '--version'] });
  const missing = Object.keys(machine.tools).filter((tool) => machine.tools[tool] === 'unknown');
  if (missing.length > 0)
    throw new Error(`This benchmark needs ${missing.join(', ')}; npm run bench installs them on Debian as root.`);
  const dir = await newDirectory();
  // The runtime passes through it as another user.
  await chmod(dir, 0o711);
  const dataDir = join(dir, 'data');
  await mkdir(dataDir, { mode: 0o700 });
  say('Starting the platform and deploying the agent …');
  const bench = await startBenchPlatform(dataDir);
  const { pid } = bench.platform;
  const sessionId = `bench-${randomUUID()}`;
  try {
    const session = await bench.session(sessionId);
    const nginx = await startNginx(dir, `${session.address.host}:${session.address.port}`);
    try {
      const contestants = contestantsOf(bench, session, nginx.port);
      const wires = async () => (await signedKilobytes(bench, sessionId)).map(({ wire }) => wire);
      const one = async (body: object) => (await bench.invocation(sessionId, JSON.stringify(body))).wire;
      const settled = () => bench.settled();
      // The heaviest first: it warms everything up, so that what follows meets a server that has been in use.
      say('32 connections …');
      const requests = await signedKilobytes(bench, sessionId);
      const saturated = await saturation(contestants, {
        dir,
        path: bench.path,
        requests,
        pid,
        ...size.saturated,
        settled,
      });
      say(`${size.rate.rate} requests a second …`);
      const offered = await fixedRate(contestants, await wires(), { ...size.rate, settled });
      await settled();
      say('One connection …');
      const sequential = await oneConnection(contestants, await wires(), size.sequential);
      await settled();
      say('Streams …');
      const first = await firstByte(contestants, await one({ chunks: 3, everyMs: 5 }), size.streams);
      const [, , own] = contestants;
      // The first one brings the heap to its size; what the second adds would be kept of the stream.
      if (own) await largeStream(own, await one({ bytes: 2 ** 30 }), pid);
      const large = own && (await largeStream(own, await one({ bytes: 2 ** 30 }), pid));
      say('WebSocket …');
      const echo = await webSocketEcho(bench, session, size.echoes);
      say('Cold starts …');
      const cold = await coldStart(bench, session, join(dir, 'peer'), size.starts);
      await bench.stop(sessionId);
      await bench.platform.end();
      say('Second start …');
      const boot = await secondStart(dataDir, size.boots);
      say('Pooled starts …');
      const pool = await reopenBenchPlatform(bench, POOLED);
      const pooled = await pooledStart(pool, size.pooled).finally(() => pool.platform.end());
      say('Known sessions …');
      const known = await knownSessions();
      const results: RuntimeResults = {
        at: new Date().toISOString(),
        quick: size === QUICK,
        machine,
        oneConnection: sequential,
        fixedRate: { rate: size.rate.rate, ...offered },
        saturated,
        firstByte: first,
        ...(large ? { largeStream: large } : {}),
        coldStart: cold,
        secondStartSeconds: boot,
        pooledStart: pooled,
        webSocketEcho: echo,
        knownSessions: known,
      };
      process.stdout.write(`${table(results)}\n`);
      if (args.includes('--keep')) await keepResults(results);
    } finally {
      await nginx.end();
    }
  } finally {
    await bench.close();
    await rm(dir, { recursive: true, force: true });
  }
}

async function against(commit: string, args: readonly string[]): Promise<void> {
  const machine = thisMachine({ wrk: ['wrk', '-v'], runc: ['runc', '--version'] });
  const { sequential, saturated, streams, starts } = args.includes('--quick') ? QUICK : FULL;
  const results = await measureAgainst(commit, { sequential, saturated, streams, starts });
  process.stdout.write(`${againstTable(commit, results)}\n`);
  if (args.includes('--keep')) await keepAgainst({ at: new Date().toISOString(), machine, commit, results });
}
