import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { CodeInterpreter } from '../../packages/sdk/src/code-interpreter/index.ts';
import { startTestPlatform, type TestPlatform } from '../../tests/support/platform-process.ts';
import { thisMachine } from '../support/machine.ts';
import { median } from '../support/statistics.ts';
import { startBareKernel } from './bare-kernel.ts';
import { type CodeInterpreterResults, keepResults, table } from './results.ts';

const MIB = 2 ** 20;
const PART = 4 * MIB;
const TURN = 25;

/**
 * `npm run bench -- code-interpreter [--quick] [--keep] [--sessions N]`: a warm `1+1` end to end and a bare ipykernel, taking turns;
 * the first result of a pooled session beside a cold kernel start; 100 MB in and out in pieces; many sessions live at once. Prints a
 * table; `--keep` writes bench/results/code-interpreter.json and docs/benchmarks.md.
 */
export async function run(args: string[]): Promise<void> {
  const quick = args.includes('--quick');
  const asked = Number(args[args.indexOf('--sessions') + 1]) || (quick ? 5 : 50);
  const machine = thisMachine({});
  const platform = await startTestPlatform({ env: { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim' } });
  const open = (): CodeInterpreter =>
    new CodeInterpreter(platform.ready.region, {
      endpoint: platform.ready.endpoint,
      credentials: platform.credentials,
    });
  try {
    await using session = open();
    await once(session);
    const bare = await startBareKernel();
    const warm = await inTurns(session, bare.warm, quick ? 4 : 20).finally(() => bare.end());
    const results: CodeInterpreterResults = {
      at: new Date().toISOString(),
      machine,
      warm,
      pooledFirst: { platform: await pooledFirst(open, quick ? 3 : 15), coldKernel: bare.coldStart },
      files: await transfer(session, platform, 100 * MIB),
      live: { asked, answered: await liveAtOnce(open, asked) },
    };
    process.stdout.write(`${table(results)}\n`);
    if (args.includes('--keep')) await keepResults(results);
  } finally {
    await platform.dispose();
  }
}

/** Milliseconds of one `1+1`. */
async function once(session: CodeInterpreter): Promise<number> {
  const began = performance.now();
  const { content } = await session.invoke('executeCode', { language: 'python', code: '1+1' });
  if (content?.[0]?.text !== '2') throw new Error(`1+1 gave ${JSON.stringify(content)}`);
  return performance.now() - began;
}

async function inTurns(
  session: CodeInterpreter,
  bare: (times: number) => Promise<number[]>,
  turns: number,
): Promise<{ platform: number; bare: number }> {
  const ours: number[] = [];
  const theirs: number[] = [];
  // The first turn warms both.
  for (let turn = 0; turn <= turns; turn++) {
    const times: number[] = [];
    for (let i = 0; i < TURN; i++) times.push(await once(session));
    const other = await bare(TURN);
    if (turn === 0) continue;
    ours.push(...times);
    theirs.push(...other);
  }
  return { platform: median(ours), bare: median(theirs) };
}

async function pooledFirst(open: () => CodeInterpreter, times: number): Promise<number> {
  const firsts: number[] = [];
  await using connected = open();
  await once(connected);
  for (let i = 0; i < times; i++) {
    // Until the next one is kept ready.
    await sleep(times > 3 ? 8000 : 4000);
    await connected.stop();
    const began = performance.now();
    await once(connected);
    firsts.push(performance.now() - began);
  }
  return median(firsts);
}

/** Three times over the same files; the last counts, and memory must not have grown since it began. */
async function transfer(
  session: CodeInterpreter,
  platform: TestPlatform,
  bytes: number,
): Promise<CodeInterpreterResults['files']> {
  const blob = randomBytes(PART);
  const paths = Array.from({ length: bytes / PART }, (_, i) => `part-${i}.bin`);
  let seen: CodeInterpreterResults['files'] | undefined;
  for (let round = 0; round < 3; round++) {
    const before = await residentMiB(platform);
    let highest = before;
    const looking = setInterval(async () => {
      highest = Math.max(highest, await residentMiB(platform).catch(() => 0));
    }, 100);
    const speed = async (call: (path: string) => Promise<unknown>): Promise<number> => {
      const began = performance.now();
      for (const path of paths) await call(path);
      return bytes / MIB / ((performance.now() - began) / 1000);
    };
    const write = await speed((path) => session.invoke('writeFiles', { content: [{ path, blob }] }));
    const read = await speed((path) => session.invoke('readFiles', { paths: [path] }));
    clearInterval(looking);
    seen = { write, read, rssMiB: { before, highest } };
  }
  if (seen === undefined) throw new Error('no round was run');
  return seen;
}

async function residentMiB(platform: TestPlatform): Promise<number> {
  const kib = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${platform.pid}/status`, 'utf8'))?.[1];
  return Math.round(Number(kib) / 1024);
}

/** How many of so many sessions, all live at the same time, answer. */
async function liveAtOnce(open: () => CodeInterpreter, asked: number): Promise<number> {
  const sessions = Array.from({ length: asked }, open);
  try {
    await Promise.all(sessions.map((session) => session.start()));
    const answers = await Promise.allSettled(sessions.map(once));
    return answers.filter(({ status }) => status === 'fulfilled').length;
  } finally {
    await Promise.allSettled(sessions.map((session) => session[Symbol.asyncDispose]()));
  }
}
