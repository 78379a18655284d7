import { loadavg } from 'node:os';
import { InvokeHarnessCommand, RetrieveMemoryRecordsCommand } from '@aws-sdk/client-bedrock-agentcore';
import { type Clients, clientsOf } from '../../tests/support/clients.ts';
import { newHarness, newSession, user } from '../../tests/support/harness.ts';
import { startTestPlatform } from '../../tests/support/platform-process.ts';
import { ScriptedModel } from '../../tests/support/scripted-model.ts';
import { busyNote, takenOn, thisMachine } from '../support/machine.ts';
import { percentile } from '../support/statistics.ts';
import { bareLoop } from './bare-loop.ts';

/** What the issue of the house allows, in milliseconds. */
const MOST = { live: 15, pooled: 200 };
const STREAMS = 100;
/** Pieces of text of each of the streams. */
const PIECES = 20;

/**
 * `npm run bench -- harness [--quick]`: milliseconds to the first piece of text of a turn, against a scripted model server, beside the same Strands
 * loop bare in one process; then a hundred streams at once. Fails where an event is lost.
 */
export async function run(args: string[]): Promise<void> {
  const turns = args.includes('--quick') ? 20 : 200;
  const machine = thisMachine({});
  const model = await ScriptedModel.start();
  const models = ['--models-url', model.url, '--models-name', 'scripted', '--log-level', 'error'];
  const platform = await startTestPlatform({ args: [...models, '--pool-max-per-version', '4'] });
  const clients = clientsOf(platform);
  try {
    const bare = await bareLoop(model.url);
    const plain = await newHarness(platform, clients);
    const remembering = await newHarness(platform, clients, { memory: undefined });
    const memoryArn = remembering.memory?.managedMemoryConfiguration?.arn ?? '';
    const [plainSession, rememberingSession] = [newSession(), newSession()];
    const live = (arn: string, session: string) => () => firstText(clients, arn, session);
    const rows: [name: string, taken: number[]][] = [
      ['the bare loop', await times(turns, () => bare('Hello.'))],
      ['a live session, memory disabled', await times(turns, live(plain.arn ?? '', plainSession))],
      ['one RetrieveMemoryRecords', await times(turns, () => retrieve(clients, memoryArn))],
      ['a live session, default memory', await times(turns, live(remembering.arn ?? '', rememberingSession))],
      ['a new session', await times(Math.ceil(turns / 4), () => firstText(clients, plain.arn ?? '', newSession()))],
    ];
    const lost = await streamsAtOnce(clients, plain.arn ?? '', model);
    const p50 = (index: number): number => percentile(rows[index]?.[1] ?? [], 0.5);
    process.stdout.write(
      `${takenOn(new Date().toISOString(), machine)}, ${loadavg()[0]?.toFixed(1)} at the end.${busyNote(machine)}\n` +
        `| first text after | turns | p50 | p95 |\n|---|---|---|---|\n${rows.map(row).join('\n')}\n\n` +
        `A live session takes ${(p50(1) - p50(0)).toFixed(1)} ms more than the bare loop (aim ${MOST.live}), with default memory ${(p50(3) - p50(0)).toFixed(1)} ms (aim ${(MOST.live + 1.2 * p50(2)).toFixed(1)}); ` +
        `a new session ${p50(4).toFixed(0)} ms (aim ${MOST.pooled}). ${STREAMS} streams at once lost ${lost} events.\n`,
    );
    if (lost > 0) process.exitCode = 1;
  } finally {
    clients.close();
    await platform.dispose();
    model.close();
  }
}

function row([name, taken]: [string, number[]]): string {
  const of = (share: number): string => `${percentile(taken, share).toFixed(1)} ms`;
  return `| ${name} | ${taken.length} | ${of(0.5)} | ${of(0.95)} |`;
}

/** One after the other, the first two not counted. */
async function times(count: number, once: () => Promise<number>): Promise<number[]> {
  const taken: number[] = [];
  for (let n = -2; n < count; n += 1) {
    const one = await once();
    if (n >= 0) taken.push(one);
  }
  return taken;
}

/** Milliseconds to the first piece of text of a turn, which is read to its end. */
async function firstText(clients: Clients, harnessArn: string, runtimeSessionId: string): Promise<number> {
  const began = performance.now();
  const { stream } = await clients.data.send(
    new InvokeHarnessCommand({ harnessArn, runtimeSessionId, messages: [user('Hello.')] }),
  );
  let first = Number.NaN;
  for await (const { contentBlockDelta } of stream ?? [])
    if (contentBlockDelta && Number.isNaN(first)) first = performance.now() - began;
  return first;
}

async function retrieve(clients: Clients, memoryArn: string): Promise<number> {
  const memoryId = memoryArn.slice(memoryArn.lastIndexOf('/') + 1);
  const began = performance.now();
  const searchCriteria = { searchQuery: 'Hello.' };
  await clients.data.send(
    new RetrieveMemoryRecordsCommand({ memoryId, namespacePath: '/actors/default/', searchCriteria }),
  );
  return performance.now() - began;
}

/** How many pieces of text did not arrive of streams of as many sessions, all open before any of them ends. */
async function streamsAtOnce(clients: Clients, harnessArn: string, model: ScriptedModel): Promise<number> {
  const text = Array.from({ length: PIECES }, (_, n) => `${n} `);
  const all = Promise.withResolvers<void>();
  let open = 0;
  const pause = (): Promise<void> => {
    open += 1;
    if (open === STREAMS) all.resolve();
    return all.promise;
  };
  model.script = () => ({ text, pause });
  const counts = await Promise.all(
    Array.from({ length: STREAMS }, async () => {
      const input = { harnessArn, runtimeSessionId: newSession(), messages: [user('Count.')] };
      const { stream } = await clients.data.send(new InvokeHarnessCommand(input));
      let pieces = 0;
      for await (const { contentBlockDelta } of stream ?? []) if (contentBlockDelta) pieces += 1;
      return pieces;
    }),
  );
  return counts.reduce((lost, pieces) => lost + PIECES - pieces, 0);
}
