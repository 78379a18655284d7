import { setTimeout as sleep } from 'node:timers/promises';
import { CodeInterpreter } from '../../packages/sdk/src/code-interpreter/index.ts';
import { clientsOf } from '../../tests/support/clients.ts';
import { startCodeSession } from '../../tests/support/code-session.ts';
import { startTestPlatform } from '../../tests/support/platform-process.ts';
import { thisMachine } from '../support/machine.ts';
import { median } from '../support/statistics.ts';
import { startBareKernel } from './bare-kernel.ts';
import { transfer } from './file-transfer.ts';
import { liveSessions } from './live-sessions.ts';
import { type CodeInterpreterResults, keepResults, liveTable, table } from './results.ts';

const MIB = 2 ** 20;
const TURN = 25;

/**
 * `npm run bench -- code-interpreter [--quick] [--keep] [--sessions N] [--live]`: a warm `1+1` end to end and a bare ipykernel, taking turns;
 * the first result of a pooled session beside a cold kernel start; 100 MB in and out in pieces; many sessions live at once (`--live`: that alone). Prints
 * a table; `--keep` writes bench/results/code-interpreter.json and docs/benchmarks.md.
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
    // Makes the image, which is no part of what is measured.
    const clients = clientsOf(platform);
    await startCodeSession(clients).then((first) => first.stop());
    clients.close();
    await using session = open();
    await once(session);
    if (args.includes('--live')) {
      process.stdout.write(`${liveTable(await liveSessions(platform, open, asked))}\n`);
      return;
    }
    const bare = await startBareKernel();
    const warm = await inTurns(session, bare.warm, quick ? 4 : 20).finally(() => bare.end());
    const results: CodeInterpreterResults = {
      at: new Date().toISOString(),
      machine,
      warm,
      pooledFirst: { platform: await pooledFirst(open, quick ? 3 : 15), coldKernel: bare.coldStart },
      files: await transfer(session, platform, 100 * MIB),
      live: await liveSessions(platform, open, asked),
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
