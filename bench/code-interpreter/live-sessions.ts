import { readFile } from 'node:fs/promises';
import { freemem } from 'node:os';
import type { CodeInterpreter } from '../../packages/sdk/src/code-interpreter/index.ts';
import type { TestPlatform } from '../../tests/support/platform-process.ts';
import { median, percentile, rounded } from '../support/statistics.ts';

/** Times in milliseconds, memory in MiB. */
export interface LiveResults {
  asked: number;
  answered: number;
  start: { p50: number; p95: number };
  /** A warm `1+1` in one of them, while all of them live. */
  warm: { p50: number; p95: number };
  /**
   * For each session: what its processes take (p50 of their proportional set size), what the machine has less, which holds what else
   * happened on it meanwhile, and what the platform's own process grew.
   */
  memory: { processes: number; machine: number; platform: number };
}

/** Starts at once; more would wait in the platform's own queue. */
const AT_ONCE = 4;
const MIB = 2 ** 20;

/** So many sessions, all live at the same time; code runs in each, state is kept in each, and all are ended. */
export async function liveSessions(
  platform: TestPlatform,
  open: () => CodeInterpreter,
  asked: number,
): Promise<LiveResults> {
  const sessions = Array.from({ length: asked }, open);
  try {
    const before = { free: freemem(), rss: await residentMiB(platform) };
    const starts = await inLanes(sessions, AT_ONCE, async (session) => {
      await session.start({ timeoutSeconds: 1800 });
    });
    // Which session it is, is kept in it: an answer shows that it is alive and nobody else.
    const numbered = [...sessions.entries()];
    await inLanes(numbered, AT_ONCE, ([i, session]) =>
      python(session, `x = list(range(10_000)); mine = ${i}; mine`, i),
    );
    const after = { free: freemem(), rss: await residentMiB(platform) };
    const processes: number[] = [];
    for (const session of sessions) processes.push(await proportionalMiB(session));
    const kept = await Promise.allSettled(numbered.map(([i, session]) => python(session, 'mine', i)));
    const warm = await inLanes(sessions, 1, (session) => python(session, '1+1', 2));
    return {
      asked,
      answered: kept.filter(({ status }) => status === 'fulfilled').length,
      start: spread(starts),
      warm: spread(warm),
      memory: {
        processes: rounded(median(processes), 1),
        machine: rounded((before.free - after.free) / asked / MIB, 1),
        platform: rounded((after.rss - before.rss) / asked, 2),
      },
    };
  } finally {
    await inLanes(sessions, AT_ONCE, (session) => session[Symbol.asyncDispose]().catch(() => undefined));
  }
}

export async function residentMiB(platform: TestPlatform): Promise<number> {
  const kib = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${platform.pid}/status`, 'utf8'))?.[1];
  return Math.round(Number(kib) / 1024);
}

/** Read from within: pages that sessions share, such as those of libraries, are counted in parts. */
async function proportionalMiB(session: CodeInterpreter): Promise<number> {
  const code = [
    'import glob',
    'sum(int(line.split()[1]) for name in glob.glob("/proc/[0-9]*/smaps_rollup") for line in open(name) if line.startswith("Pss:"))',
  ].join('\n');
  const { content } = await session.invoke('executeCode', { language: 'python', code });
  return Number(content?.[0]?.text) / 1024;
}

async function python(session: CodeInterpreter, code: string, expected: number): Promise<void> {
  const { content } = await session.invoke('executeCode', { language: 'python', code });
  if (content?.[0]?.text !== String(expected)) throw new Error(`${code} gave ${JSON.stringify(content)}`);
}

/** Milliseconds that each took, so many at a time. Rejects when one does. */
async function inLanes<T>(items: readonly T[], lanes: number, run: (item: T) => Promise<unknown>): Promise<number[]> {
  const queue = [...items];
  const taken: number[] = [];
  const lane = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      const began = performance.now();
      await run(item);
      taken.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return taken;
}

function spread(values: readonly number[]): { p50: number; p95: number } {
  return { p50: rounded(median(values), 1), p95: rounded(percentile(values, 0.95), 1) };
}
