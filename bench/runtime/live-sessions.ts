import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { freemem } from 'node:os';
import { Connection } from '../support/connection.ts';
import { median, percentile, rounded } from '../support/statistics.ts';
import { ARGS, type BenchPlatform, newDirectory, reopenBenchPlatform, startBenchPlatform } from './bench-platform.ts';

/** Starts at once; more would wait in the platform's own queue. */
const AT_ONCE = 4;
const MIB = 2 ** 20;

/** So many sessions live at once, each in its own sandbox; all are asked in turns, the server is restarted under them, and all end. */
export async function liveSessions(count: number): Promise<void> {
  if (!Number.isSafeInteger(count) || count < 1) throw new Error('--live takes a number of sessions');
  const dir = await newDirectory();
  let bench = await startBenchPlatform(`${dir}/data`);
  try {
    const ids = Array.from({ length: count }, () => `live-${randomUUID()}`);
    const before = { free: freemem(), rss: await rssOf(bench) };
    const began = performance.now();
    const starts = await ask(bench, ids, AT_ONCE);
    const seconds = (performance.now() - began) / 1000;
    const after = { free: freemem(), rss: await rssOf(bench) };
    const again = await ask(bench, ids, AT_ONCE);
    const sandboxes = await sandboxesOf(bench);
    // kill -9: the sandboxes live on, and the next server finds every one of them.
    await bench.platform.end('SIGKILL');
    const restarted = performance.now();
    bench = await reopenBenchPlatform(bench, ARGS);
    const restart = (performance.now() - restarted) / 1000;
    await ask(bench, ids, AT_ONCE);
    const found = await sandboxesOf(bench);
    const lost = ids.filter((id) => sandboxes.get(id) === undefined || found.get(id) !== sandboxes.get(id));
    if (lost.length > 0) throw new Error(`${lost.length} of ${count} sessions have another sandbox after the restart`);
    const ending = performance.now();
    await bench.platform.end();
    const ended = (performance.now() - ending) / 1000;
    process.stdout.write(
      [
        '| measure | value |',
        '|---|---|',
        `| sessions live at once | ${count}, started in ${rounded(seconds, 1)} s |`,
        `| start to first byte, ${AT_ONCE} at once | p50 ${Math.round(median(starts))} ms, p95 ${Math.round(percentile(starts, 0.95))} ms |`,
        `| request to one of them | p50 ${rounded(median(again), 2)} ms, p95 ${rounded(percentile(again, 0.95), 2)} ms |`,
        `| memory of the machine for each | ${rounded((before.free - after.free) / count / MIB, 1)} MiB |`,
        `| memory of the server for each | ${rounded((after.rss - before.rss) / count / 1024, 1)} KiB |`,
        `| kill -9 and start again, all found | ${rounded(restart, 1)} s |`,
        `| orderly end of all | ${rounded(ended, 1)} s |`,
        '',
      ].join('\n'),
    );
  } finally {
    await bench.close();
    await rm(dir, { recursive: true, force: true });
  }
}

/** Milliseconds to the first byte of each session's answer. Rejects unless every one answers. */
async function ask(bench: BenchPlatform, ids: readonly string[], atOnce: number): Promise<number[]> {
  const taken: number[] = [];
  const queue = [...ids];
  const lane = async (): Promise<void> => {
    const connection = await Connection.open(bench.endpoint.hostname, Number(bench.endpoint.port));
    try {
      for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
        const { wire } = await bench.invocation(id, 'x');
        const begin = performance.now();
        const { firstByteAt } = await connection.send(wire);
        taken.push(firstByteAt - begin);
      }
    } finally {
      connection.close();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return taken;
}

/** Which sandbox each live session has. */
async function sandboxesOf(bench: BenchPlatform): Promise<Map<string, string>> {
  return new Map((await bench.sessions()).map(({ sessionId, sandboxId }) => [sessionId, sandboxId]));
}

async function rssOf(bench: BenchPlatform): Promise<number> {
  const status = await readFile(`/proc/${bench.platform.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
}
