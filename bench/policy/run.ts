import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { OAuthPrincipal } from '../../packages/platform/src/kernel/auth/index.ts';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { migrate, openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { Decisions, type DecisionsDeps } from '../../packages/platform/src/services/policy/decisions/decisions.ts';
import type { OpenSet } from '../../packages/platform/src/services/policy/decisions/policy-sets.ts';
import { type PolicyGateway, policyMigrations } from '../../packages/platform/src/services/policy/index.ts';
import { PolicySessions } from '../../packages/platform/src/services/policy/sessions/policy-sessions.ts';
import {
  type DecisionRequest,
  type HistoryEvent,
  PolicyEngine,
  type PolicySource,
  type Principal,
  toolSchema,
} from '../../packages/policy-engine/src/index.ts';
import { runCedar, runDogwood } from '../../packages/policy-engine/test/corpora/run.ts';
import { thisMachine } from '../support/machine.ts';
import { percentile } from '../support/statistics.ts';
import { type Figure, keepResults, table } from './results.ts';

const gatewayArn = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/bench-1a2b3c4d5e';
const principal: Principal = { type: 'OAuthUser', id: 'bench', tags: { team: 'finance', role: 'clerk' } };
const inputSchema = {
  type: 'object',
  properties: { amount: { type: 'integer' }, reason: { type: 'string' } },
  required: ['amount'],
};

/**
 * `npm run bench -- policy [--quick] [--json] [--keep] [--corpora]`: decisions and lists of tools, asked of the engine's own worker. Beside them a decision with history as a
 * server makes it, its event durable in an embedded database. `--corpora` replays all of both corpora first.
 */
export async function run(args: string[]): Promise<void> {
  const turns = args.includes('--quick') ? 200 : 2_000;
  const machine = thisMachine({});
  const engine = new PolicyEngine({ callMs: 120_000 });
  const tell = (line: string) => process.stderr.write(`${line} …\n`);
  try {
    if (args.includes('--corpora')) await replayed(engine, tell);
    const figures: Figure[] = [];
    for (const [what, measure] of [
      ['100 policies', () => decisions(engine, turns)],
      ['10,000 policies', () => many(engine, turns)],
      ['history', () => remembered(engine, turns)],
      ['history in a database', () => durable(engine, Math.min(turns, 400))],
      ['lists', () => lists(engine, turns)],
    ] as const) {
      tell(what);
      figures.push(...(await measure()));
    }
    const results = { at: new Date().toISOString(), machine, figures };
    process.stdout.write(
      args.includes('--json') ? `${JSON.stringify(results, undefined, 2)}\n` : `${table(results)}\n`,
    );
    if (args.includes('--keep')) await keepResults(results);
  } finally {
    await engine.close();
  }
}

async function replayed(engine: PolicyEngine, tell: (line: string) => void): Promise<void> {
  tell("Cedar's corpus");
  const cedar = await runCedar(engine, 1);
  tell("Dogwood's corpus");
  const dogwood = await runDogwood(engine, 1, true);
  const wrong = [...cedar.wrong, ...dogwood.wrong];
  process.stdout.write(
    `corpora: ${cedar.cases} cases of Cedar with ${cedar.requests} requests, ${dogwood.traces} traces of Dogwood, ${dogwood.partitioned} by partition, ${dogwood.rejected} refused; ${wrong.length} otherwise\n`,
  );
  if (wrong.length > 0) throw new Error(wrong.slice(0, 20).join('\n'));
}

function schemaOf(tools: number): string {
  const named = Array.from({ length: tools }, (_, at) => ({ name: `tool${at}`, inputSchema }));
  return toolSchema({ gatewayArn, principals: ['OAuthUser'], targets: [{ name: 'T', tools: named }] });
}

function rules(count: number, tools: number): PolicySource[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `p${at}`,
    text: `permit(principal, action == AgentCore::Action::"T___tool${at % tools}", resource == AgentCore::Gateway::"${gatewayArn}") when { principal.hasTag("team") && principal.getTag("team") == "t${at}" && context.input.amount < ${at} };`,
    language: 'cedar',
    mode: 'ACTIVE',
  }));
}

function call(rest: Partial<DecisionRequest> = {}): DecisionRequest {
  return {
    principal,
    action: 'T___tool0',
    resource: gatewayArn,
    input: { amount: 5, reason: 'bench' },
    now: new Date(),
    ...rest,
  };
}

async function load(engine: PolicyEngine, id: string, schema: string, policies: PolicySource[]): Promise<void> {
  const { loaded, problems } = await engine.load({ id, schema, policies });
  if (!loaded || problems.length > 0) throw new Error(JSON.stringify(problems[0]));
}

const HUNDRED = 'one of 100 policies';

async function decisions(engine: PolicyEngine, turns: number): Promise<Figure[]> {
  await load(engine, 'bench', schemaOf(1), rules(100, 1));
  const times = await timed(turns, () => engine.decide('bench', call()));
  return [{ what: `A decision by ${HUNDRED}, in the worker`, ...times, aim: 'at most 0.1 and 0.5' }];
}

async function many(engine: PolicyEngine, turns: number): Promise<Figure[]> {
  await load(engine, 'bench', schemaOf(1_000), rules(10_000, 1_000));
  const times = await timed(turns, () => engine.decide('bench', call()));
  return [{ what: 'A decision by 10,000 policies of 1,000 tools', ...times, aim: 'less than 2' }];
}

const COUNT = `permit(principal, action == AgentCore::Action::"T___tool0", resource) when temporal { count_within(1h, AgentCore::Action::"T___tool0"::request{ input.amount: 5 }) < 2000 };`;
const EVENTS = 1_000;

async function loadCount(engine: PolicyEngine): Promise<void> {
  await load(engine, 'temporal', schemaOf(1), [{ id: 'count', text: COUNT, language: 'dogwood', mode: 'ACTIVE' }]);
}

/** A thousand events of one session, kept in the engine; each decision adds its own. */
async function remembered(engine: PolicyEngine, turns: number): Promise<Figure[]> {
  await loadCount(engine);
  const event: HistoryEvent = {
    ...{ kind: 'request', action: 'T___tool0', time: new Date(), principal, resource: gatewayArn },
    input: { amount: 5 },
  };
  const first = Array.from({ length: EVENTS }, () => event);
  let [sequence, session] = [EVENTS, 0];
  const decide = () => {
    sequence += 1;
    const events = (after: number) => (after === 0 ? first : []);
    return engine.decide('temporal', call({ session: { id: `s${session}`, sequence, events } }));
  };
  const times: number[] = [];
  while (times.length < Math.min(turns, 500)) {
    session += 1;
    sequence = EVENTS;
    // The first one hands the events over.
    await decide();
    for (let at = 0; at < 50; at += 1) times.push(await taken(decide));
  }
  return [{ what: 'A decision with 1,000 events of history, in the engine', ...spread(times), aim: 'p50 at most 1.5' }];
}

/** The same as a server makes it: the session's row is held, and the request is in the database before the call goes on. */
async function durable(engine: PolicyEngine, turns: number): Promise<Figure[]> {
  await loadCount(engine);
  const dataDir = await mkdtemp(join(tmpdir(), 'bench-policy-'));
  const database = await openDatabase({ dataDir, log: pino({ level: 'silent' }) });
  try {
    await migrate(database, policyMigrations);
    const sessions = new PolicySessions({ database, clock: systemClock });
    const of = { engineArn: 'engine', epoch: 1, id: 'session', owner: 'bench', windowMs: 3_600_000 };
    const event = {
      kind: 'request' as const,
      action: 'T___tool0',
      principal,
      resource: gatewayArn,
      input: { amount: 5 },
    };
    const decide = () =>
      sessions.decide(
        of,
        event,
        async (session, now) => {
          const { decision, errors } = await engine.decide('temporal', call({ now, session }));
          if (decision !== 'ALLOW') throw new Error(errors.join('; '));
          return { refused: false };
        },
        async () => undefined,
      );
    for (let at = 0; at < EVENTS; at += 1) await sessions.add(of, event);
    const times = await timed(turns, decide);
    return [{ what: 'The same, durable in the embedded database', ...times, aim: 'p50 at most 3' }];
  } finally {
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** A list for callers who have not been seen yet, and for one who has. */
async function lists(engine: PolicyEngine, turns: number): Promise<Figure[]> {
  await load(engine, 'tools', schemaOf(1_000), rules(1_000, 1_000));
  const tools = Array.from({ length: 1_000 }, (_, at) => `T___tool${at}`);
  const first = await taken(() => engine.permits('tools', principal, gatewayArn, tools));
  let seen = 0;
  const stranger = () => {
    seen += 1;
    return { ...principal, id: `caller ${seen}` };
  };
  const cold = await timed(Math.min(turns, 50), () => engine.permits('tools', stranger(), gatewayArn, tools));
  const set = await engine.load({ id: 'tools', schema: schemaOf(1_000), policies: rules(1_000, 1_000) });
  const gateway = { arn: gatewayArn, mode: 'ENFORCE', principalType: 'OAuthUser' } as PolicyGateway;
  const open = { set: { loaded: set, broken: [], output: undefined } } as unknown as OpenSet;
  const decided = new Decisions({
    ...({ evaluator: engine, sets: { use: (_: unknown, work: (one: OpenSet) => unknown) => work(open) } } as object),
  } as DecisionsDeps);
  const caller = { kind: 'oauth', subject: 'bench', claims: {} } as unknown as OAuthPrincipal;
  await decided.permitted(gateway, { principal: caller }, tools);
  const known = await timed(turns, () => decided.permitted(gateway, { principal: caller }, tools));
  return [
    { what: 'A list of 1,000 tools, the first after a change', p50: first, p99: first, aim: '' },
    { what: 'A list of 1,000 tools for a caller not seen yet', ...cold, aim: 'p50 at most 50' },
    { what: 'A list of 1,000 tools for one who was', ...known, aim: 'p50 at most 2' },
  ];
}

async function taken(turn: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await turn();
  return performance.now() - began;
}

async function timed(turns: number, turn: () => Promise<unknown>): Promise<Pick<Figure, 'p50' | 'p99'>> {
  for (let at = 0; at < turns / 10; at += 1) await turn();
  const times: number[] = [];
  for (let at = 0; at < turns; at += 1) times.push(await taken(turn));
  return spread(times);
}

function spread(times: readonly number[]): Pick<Figure, 'p50' | 'p99'> {
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}
