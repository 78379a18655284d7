import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { ALLOCATION } from '../../../scripts/supervise.mjs';
import { type Clients, clientsOf } from '../clients.ts';
import { deployAgent } from '../deploy.ts';
import { invokeText, sessionId } from '../invoke.ts';
import { startTestPlatform, type TestPlatform } from '../platform-process.ts';
import { openAttacked } from './attacked.ts';
import { openStores } from './attacked-stores.ts';
import { routesTold } from './declared-routes.ts';
import { Messages, routes } from './messages.ts';
import { Random } from './random.ts';
import { type RoundsAccount, type RoundsOptions, rudeRounds } from './rude-rounds.ts';
import { listeningPorts, type ServerState, stateOf } from './server-state.ts';
import { SpanCount } from './span-count.ts';

export interface RudeOptions extends Omit<RoundsOptions, 'random' | 'messages' | 'routes' | 'renew'> {
  seed: number;
  /** Arguments that choose the provider of sandboxes; `process` without them. */
  sandbox?: readonly string[];
}

export interface RudeAccount extends RoundsAccount {
  seed: number;
  /** Names of what was attacked beside the operations of the contract. */
  sets: ReadonlySet<string>;
  /** Spans that came to a receiver, of the platform whose `telemetry` leads there. */
  spans: number;
  /** Calls of a tool that came through the gateways. */
  calls: number;
  /** Lines of the log that call a request's failure the platform's own. */
  defects: number;
  start: ServerState;
  end: ServerState;
}

/**
 * A platform with an agent, gateways, a function, a consent that waits, a memory, a bucket and a receiver of its spans, and rude clients on each of its listeners: its
 * own, that of sandboxes, and TLS. After each round the platform must answer, and at the end hold no more files and connections than before.
 */
export async function beRude({
  seed,
  sandbox = ['--sandbox', 'process'],
  ...options
}: RudeOptions): Promise<RudeAccount> {
  const told = await routesTold();
  const spans = await SpanCount.start();
  const platform = await startTestPlatform({
    ...told.options,
    args: [
      ...sandbox,
      ...['--quotas-invocations-per-second', '0', '--tls', '--tls-port', '0'],
      ...['--telemetry-otlp-endpoint', spans.url, '--allow-private-egress', '127.0.0.0/8'],
    ],
    // Its memory is to be that of a server as it is run.
    env: { ...ALLOCATION, ...told.options.env, AGENTPLATFORM_LOG_LEVEL: 'error' },
  });
  const clients = clientsOf(platform);
  try {
    const arn = await deployEcho(platform, clients);
    const sessions = [sessionId('rude-a'), sessionId('rude-b')];
    const answers = (): Promise<unknown> =>
      Promise.all(sessions.map((session) => invokeText(clients, arn, session, 'hello')));
    // With them end the shells that wait for clients to come back.
    const stopAll = async (): Promise<void> => {
      for (const runtimeSessionId of sessions)
        await clients.data
          .send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId }))
          .catch(() => undefined);
    };
    await answers();
    await stopAll();
    const start = await stateOf(platform.pid);
    await answers();
    const attacked = await openAttacked(platform, clients);
    const stores = await openStores(clients, arn);
    const random = new Random(seed);
    const messages = new Messages(platform, random, sessions);
    const agents = [arn, 'zz', 'arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/none-0123456789'];
    const declared = await told.read();
    const { ready, pid } = platform;
    const victim = { endpoint: ready.endpoint, pid, ports: await listeningPorts(pid), tlsPort: ready.tls?.port };
    const rounds = await rudeRounds(victim, {
      ...{ random, messages, renew: attacked.renew },
      ...{ routes: [...routes(agents, declared), ...attacked.routes, ...stores], ...options },
    });
    if (rounds.exits > 0) process.stderr.write(platform.log().slice(-4000));
    else await answers();
    await stopAll();
    if (rounds.exits === 0) await attacked.close();
    const end = rounds.exits > 0 ? start : await settled(platform, clients, start);
    const defects = platform
      .log()
      .split('\n')
      .filter((line) => line.includes('for a reason inside the platform'));
    process.stderr.write(
      defects
        .slice(0, 20)
        .map((line) => `${line}\n`)
        .join(''),
    );
    const sets = new Set(declared.map(({ set }) => set));
    return { ...rounds, seed, sets, calls: attacked.calls(), spans: spans.count, defects: defects.length, start, end };
  } finally {
    clients.close();
    await platform.dispose();
    await spans.close();
  }
}

/** An agent that echoes bodies and messages. */
async function deployEcho(platform: TestPlatform, clients: Clients): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rude-agent-'));
  try {
    await cp(join(import.meta.dirname, '../stream-agent'), folder, { recursive: true });
    const ws = join(import.meta.dirname, '../../../node_modules/ws');
    await cp(ws, join(folder, 'node_modules/ws'), { recursive: true });
    return (await deployAgent(platform, clients, { folder })).arn;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Waits, at most two minutes, until the server holds no more than at the start: it lingers, and sends probes, for a bounded time. */
async function settled(platform: TestPlatform, clients: Clients, start: ServerState): Promise<ServerState> {
  clients.close();
  let state = await stateOf(platform.pid);
  for (const deadline = Date.now() + 120_000; Date.now() < deadline; ) {
    if (state.connections <= start.connections && state.files <= start.files) return state;
    await new Promise((resolve) => setTimeout(resolve, 500));
    state = await stateOf(platform.pid);
  }
  return state;
}
