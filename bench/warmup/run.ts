import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { defaultPythonRuntime } from '../../packages/cli/src/package/python.ts';
import { lacksGvisor, RUNSC } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { gvisorForTests } from '../../scripts/test/gvisor.ts';
import { type Clients, clientsOf } from '../../tests/support/clients.ts';
import { deployAgent } from '../../tests/support/deploy.ts';
import { invokeJson } from '../../tests/support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../../tests/support/platform-process.ts';
import { busyNote, takenOn, thisMachine } from '../support/machine.ts';
import { percentile } from '../support/statistics.ts';

const AGENT = join(import.meta.dirname, 'agent');
const HOOK = { build: { warmup: { action: { httpPost: { path: '/warm' } } } } };
/** What a cold session may take (issue of the house). */
const MOST_MS = 400;

/**
 * `npm run bench -- warmup [--quick]`: on gVisor, how long the first answer of a new session takes whose agent needs four seconds to start and holds
 * 200 MB: from a snapshot of a warm one, and made anew, with nothing standing ready in either. Fails where the median from a snapshot is above 400 ms.
 */
export async function run(args: string[]): Promise<void> {
  const quick = args.includes('--quick');
  const runsc = (await gvisorForTests([])) ?? RUNSC;
  if (runsc === RUNSC && lacksGvisor()) throw new Error(`This benchmark ${lacksGvisor()}.`);
  const machine = thisMachine({ runsc: [runsc, '--version'] });
  const sandbox = ['--sandbox', 'oci', '--sandbox-oci-runtime', runsc, '--pool-max-per-version', '0'];
  const platform = await startTestPlatform({ args: [...sandbox, '--log-level', 'warn'] });
  const clients = clientsOf(platform);
  try {
    const anew = await starts(platform, clients, { newer: {} }, quick ? 2 : 5);
    const copied = await starts(platform, clients, { newer: { hooksConfiguration: HOOK } }, quick ? 5 : 30);
    process.stdout.write(
      `${takenOn(new Date().toISOString(), machine)}, ${loadavg()[0]?.toFixed(1)} at the end.${busyNote(machine)}\n` +
        `| first answer of a new session | sessions | p50 | p95 | longest |\n|---|---|---|---|---|\n` +
        `${row('from a snapshot', copied)}\n${row('made anew', anew)}\n`,
    );
    if (percentile(copied, 0.5) > MOST_MS) process.exitCode = 1;
  } finally {
    clients.close();
    await platform.dispose();
  }
}

function row(name: string, taken: number[]): string {
  const of = (share: number): string => `${Math.round(percentile(taken, share))} ms`;
  return `| ${name} | ${taken.length} | ${of(0.5)} | ${of(0.95)} | ${of(1)} |`;
}

/** Milliseconds to the first answer of so many new sessions of an agent that is deployed for this, one after the other. */
async function starts(
  platform: TestPlatform,
  clients: Clients,
  more: { newer: object },
  count: number,
): Promise<number[]> {
  const runtime = (await defaultPythonRuntime(AGENT)) as 'PYTHON_3_11';
  const { arn } = await deployAgent(platform, clients, { folder: AGENT, runtime, entryPoint: ['main.py'], ...more });
  const copies = 'hooksConfiguration' in more.newer;
  if (copies) await untilKept(platform.dataDir);
  const taken: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const session = randomUUID();
    const began = performance.now();
    const said = await invokeJson(clients, arn, session, {});
    taken.push(performance.now() - began);
    if (said.warm !== Number(copies)) throw new Error(`the session has warmed up ${said.warm} times`);
    await clients.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: session }));
  }
  return taken;
}

/** The snapshot is there, and was restored once to see whether it can be. */
async function untilKept(dataDir: string): Promise<void> {
  const kept = (): Promise<string[]> => readdir(join(dataDir, 'snapshots')).catch(() => []);
  await until(async () => (await kept()).some((name) => !name.startsWith('.')), 120_000);
  await until(async () => (await readdir(join(dataDir, 'sandboxes'))).length === 0, 120_000);
}
