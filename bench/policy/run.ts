import {
  type DecisionRequest,
  type HistoryEvent,
  PolicyEngine,
  type PolicySource,
  type Principal,
  toolSchema,
} from '../../packages/policy-engine/src/index.ts';

const gatewayArn = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/bench-1a2b3c4d5e';
const principal: Principal = { type: 'OAuthUser', id: 'bench', tags: { team: 'finance', role: 'clerk' } };
const inputSchema = {
  type: 'object',
  properties: { amount: { type: 'integer' }, reason: { type: 'string' } },
  required: ['amount'],
};

interface Figure {
  what: string;
  p50: number;
  p99: number;
}

/** `npm run bench -- policy [--quick] [--json]`: decisions and lists of tools in the engine's own worker, in milliseconds. */
export async function run(args: string[]): Promise<void> {
  const turns = args.includes('--quick') ? 200 : 2_000;
  const engine = new PolicyEngine({ callMs: 120_000 });
  try {
    const figures = [
      await decisions(engine, '100 policies', schemaOf(1), rules(100, 1), turns),
      await decisions(engine, '10,000 policies of 1,000 tools', schemaOf(1_000), rules(10_000, 1_000), turns),
      await remembered(engine, turns),
      ...(await lists(engine, turns)),
    ];
    if (args.includes('--json')) process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`);
    else
      for (const { what, p50, p99 } of figures)
        process.stdout.write(`${what.padEnd(60)} p50 ${p50.toFixed(3)} ms  p99 ${p99.toFixed(3)} ms\n`);
  } finally {
    await engine.close();
  }
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

async function decisions(
  engine: PolicyEngine,
  what: string,
  schema: string,
  policies: PolicySource[],
  turns: number,
): Promise<Figure> {
  await load(engine, 'bench', schema, policies);
  return await timed(what, turns, () => engine.decide('bench', call()));
}

/** A thousand events of one session, kept in the engine; each decision adds its own. */
async function remembered(engine: PolicyEngine, turns: number): Promise<Figure> {
  const text = `permit(principal, action == AgentCore::Action::"T___tool0", resource) when temporal { count_within(1h, AgentCore::Action::"T___tool0"::request{ input.amount: 5 }) < 2000 };`;
  await load(engine, 'temporal', schemaOf(1), [{ id: 'count', text, language: 'dogwood', mode: 'ACTIVE' }]);
  const event: HistoryEvent = {
    kind: 'request',
    action: 'T___tool0',
    time: new Date(),
    principal,
    resource: gatewayArn,
    input: { amount: 5 },
  };
  const first = Array.from({ length: 1_000 }, () => event);
  let sequence = 1_000;
  let session = 0;
  return await timed('a temporal decision over 1,000 events', Math.min(turns, 500), () => {
    // A new session before the events have become many more than a thousand.
    if (sequence % 100 === 0) session += 1;
    sequence += 1;
    const events = (after: number) => (after === 0 ? first : []);
    return engine.decide('temporal', call({ session: { id: `s${session}`, sequence, events } }));
  });
}

async function lists(engine: PolicyEngine, turns: number): Promise<Figure[]> {
  await load(engine, 'tools', schemaOf(1_000), rules(1_000, 1_000));
  const tools = Array.from({ length: 1_000 }, (_, at) => `T___tool${at}`);
  return [
    await timed('a list of 1,000 tools', Math.min(turns, 50), () =>
      engine.permits('tools', principal, gatewayArn, tools),
    ),
  ];
}

async function timed(what: string, turns: number, turn: () => Promise<unknown>): Promise<Figure> {
  const times: number[] = [];
  for (let at = -Math.ceil(turns / 10); at < turns; at += 1) {
    const began = performance.now();
    await turn();
    if (at >= 0) times.push(performance.now() - began);
  }
  times.sort((a, b) => a - b);
  return { what, p50: times[Math.floor(turns / 2)] ?? 0, p99: times[Math.floor(turns * 0.99)] ?? 0 };
}
