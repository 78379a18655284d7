import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { type Clients, clientsOf } from '../clients.ts';
import { deployAgent } from '../deploy.ts';
import { invokeText, sessionId } from '../invoke.ts';
import { startTestPlatform, type TestPlatform } from '../platform-process.ts';
import { routesTold } from './declared-routes.ts';
import { Messages, routes } from './messages.ts';
import { Random } from './random.ts';
import { type Address, type Attempt, RudeClient } from './rude-client.ts';
import { listeningPorts, type ServerState, stateOf } from './server-state.ts';

export interface RudeOptions {
  seed: number;
  /** Whether to go on, asked before each round of attempts. */
  goOn(attempts: number): boolean;
  onRound?(account: RudeAccount): void;
}

export interface RudeAccount {
  seed: number;
  /** Names of what was attacked beside the operations of the contract. */
  sets: ReadonlySet<string>;
  attempts: number;
  /** Where TLS was cut, as `describeCut` says it. */
  cuts: ReadonlySet<string>;
  /** After these the server answered as before. */
  held: number;
  /** How often the server ended. */
  exits: number;
  /** Errors that only the last line of defence met. */
  unhandled: number;
  start: ServerState;
  end: ServerState;
  /** What was under way when something went wrong. */
  suspects: Attempt[];
}

const ROUND = 64;

/**
 * A platform with an agent, and rude clients on each of its listeners: its own, that of sandboxes, and TLS. After each round the platform must
 * answer, and at the end hold no more files and connections than before.
 */
export async function beRude({ seed, goOn, onRound }: RudeOptions): Promise<RudeAccount> {
  const told = await routesTold();
  const platform = await startTestPlatform({
    ...told.options,
    args: ['--sandbox', 'process', '--quotas-invocations-per-second', '0', '--tls', '--tls-port', '0'],
    env: { ...told.options.env, AGENTPLATFORM_LOG_LEVEL: 'error' },
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
    const random = new Random(seed);
    const messages = new Messages(platform, random, sessions);
    const agents = [arn, 'zz', 'arn:aws:bedrock-agentcore:us-east-1:000000000000:runtime/none-0123456789'];
    const declared = await told.read();
    const every = routes(agents, declared);
    const ports = await listeningPorts(platform.pid);
    const tlsPort = platform.ready.tls?.port;
    const rude = new RudeClient(random);
    const account: RudeAccount = {
      seed,
      sets: new Set(declared.map(({ set }) => set)),
      cuts: rude.cuts,
      attempts: 0,
      held: 0,
      exits: 0,
      unhandled: 0,
      start,
      end: start,
      suspects: [],
    };
    while (account.exits === 0 && goOn(account.attempts)) {
      const round: Promise<Attempt>[] = [];
      for (let n = 0; n < ROUND; n += 1) {
        const message = await messages.make(every[(account.attempts + n) % every.length] ?? random.pick(every));
        const address: Address = {
          host: '127.0.0.1',
          port: random.below(4) === 0 ? random.pick(ports) : mainPort(platform),
        };
        const secure = address.port === tlsPort && random.below(4) > 0;
        round.push(secure ? rude.attemptSecurely(address, message) : rude.attempt(address, message));
      }
      const done = await Promise.allSettled(round);
      account.attempts += ROUND;
      const unhandled = await unhandledErrors(platform).catch(() => undefined);
      if (unhandled === undefined) account.exits += 1;
      else account.held += done.filter(({ status }) => status === 'fulfilled').length;
      if (unhandled === undefined || unhandled > account.unhandled)
        account.suspects.push(...done.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])));
      account.unhandled = unhandled ?? account.unhandled;
      onRound?.(account);
    }
    rude.close();
    if (account.exits > 0) process.stderr.write(platform.log().slice(-4000));
    else await answers();
    await stopAll();
    account.end = account.exits > 0 ? start : await settled(platform, clients, start);
    return account;
  } finally {
    clients.close();
    await platform.dispose();
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

function mainPort({ ready }: TestPlatform): number {
  return Number(new URL(ready.endpoint).port);
}

/** Asked on a connection of its own; rejects when nobody answers. */
async function unhandledErrors({ ready }: TestPlatform): Promise<number> {
  const answer = await fetch(`${ready.endpoint}/metrics`, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(60_000),
  });
  const [, count] = /^agentplatform_unhandled_errors (\d+)$/m.exec(await answer.text()) ?? [];
  if (count === undefined) throw new Error(`metrics were answered with ${answer.status}`);
  return Number(count);
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
