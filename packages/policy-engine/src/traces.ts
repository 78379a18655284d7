import { randomUUID } from 'node:crypto';
import type { PolicyEngine } from './engine.ts';
import { type Constants, constantsOf, type ShapeOutline, valuesOf } from './made-inputs.ts';
import type { DecisionRequest, HistoryEvent, PolicySource, Principal } from './types.ts';

/** A tool as a schema has it. */
export interface ToolOutline {
  action: string;
  input: ShapeOutline;
  output: ShapeOutline;
}

/** A call and what was before it, as a person reads it. */
export interface TraceExample {
  action: string;
  principal: string;
  input: unknown;
  history: { kind: HistoryEvent['kind']; action: string; input: unknown; output?: unknown; secondsAgo: number }[];
}

/** What short traces show of a policy with a condition on the history. */
export interface TraceSearch {
  policyId: string;
  /** A call that the policy is about, and one that it is not; none where no trace showed it, which says nothing of longer ones. */
  matched: TraceExample | undefined;
  unmatched: TraceExample | undefined;
  /** Traces that were decided. */
  tried: number;
  /** Events of one that were tried in every order; more only as one event again and again. */
  depth: number;
  /** Every such trace was tried. */
  complete: boolean;
}

export interface TraceOptions {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  tools: ToolOutline[];
  gatewayArn: string;
  effect: 'permit' | 'forbid';
  /** Those that the schema knows. */
  principals: Principal['type'][];
  schema: string;
}

/** Events that are put together in every order. */
const DEPTH = 2;
const MOST_INPUTS = 8;
const MOST_EVENTS = 24;
const MOST_TRACES = 4_000;
const MOST_REPEATS = 40;
const NOW = new Date('2026-01-01T12:00:00Z');

type Past = TraceExample['history'][number];

/** Looks through short traces for calls that a policy is about and for others. What it does not find is unknown. */
export async function searchTraces(
  engine: PolicyEngine,
  policy: PolicySource,
  options: TraceOptions,
): Promise<TraceSearch> {
  const { gatewayArn, schema, tools } = options;
  const deadline = performance.now() + options.timeoutMs;
  // Others may search with the same engine.
  const set = `traces ${randomUUID()}`;
  const search: TraceSearch = {
    ...{ policyId: policy.id, matched: undefined, unmatched: undefined, tried: 0, depth: DEPTH, complete: false },
  };
  const permits = options.effect === 'permit';
  const rest: PolicySource[] = permits
    ? []
    : [{ id: 'all', text: 'permit(principal, action, resource);', language: 'cedar', mode: 'ACTIVE' }];
  const { loaded, broken } = await engine.load({
    ...{ id: set, schema },
    policies: [{ ...policy, mode: 'ACTIVE' }, ...rest],
  });
  try {
    if (!loaded || broken.length > 0) return search;
    const constants = constantsOf(policy.text);
    const calls = callsOf(policy.text, tools, constants, options.principals);
    for (const history of historiesOf(policy.text, tools, constants)) {
      for (const call of calls) {
        if (search.tried >= MOST_TRACES || performance.now() > deadline || options.signal?.aborted) return search;
        search.tried += 1;
        const { decision, errors } = await engine.decide(set, requestOf(call, history, gatewayArn));
        // What fails while it is decided shows nothing of the policy.
        if (errors.length > 0) continue;
        const matched = permits === (decision === 'ALLOW');
        const { id, type } = call.principal;
        const example = { action: call.action, principal: `${type}::"${id}"`, input: call.input, history };
        if (matched) search.matched ??= example;
        else search.unmatched ??= example;
        if (search.matched && search.unmatched) return { ...search, complete: true };
      }
    }
    return { ...search, complete: true };
  } finally {
    await engine.unload(set);
  }
}

interface Call {
  principal: Principal;
  action: string;
  input: unknown;
}

/** Those of the actions that the head of a policy names. */
export function namedActions(text: string, actions: readonly string[]): string[] {
  const [head = ''] = text.split(/\b(?:when|unless)\b/);
  return actions.filter((action) => head.includes(JSON.stringify(action)));
}

/** Calls of the tools that the head of the policy names, or of the first one, with inputs that its text speaks of, by a principal of the type that it names. */
function callsOf(
  text: string,
  tools: ToolOutline[],
  constants: Constants,
  [first = 'OAuthUser', ...others]: Principal['type'][],
): Call[] {
  const type =
    others.find((other) => new RegExp(`\\bprincipal\\s+(?:is|==)\\s+AgentCore::${other}\\b`).test(text)) ?? first;
  const actions = namedActions(
    text,
    tools.map(({ action }) => action),
  );
  const named = tools.filter(({ action }) => actions.includes(action));
  const about = named.length > 0 ? named : tools.slice(0, 1);
  const tags = Object.fromEntries(
    [...text.matchAll(/getTag\("([^"]+)"\)\s*(?:==|like)\s*"([^"]*)"/g)].map(([, name = '', value = '']) => [
      name,
      value.replaceAll('*', ''),
    ]),
  );
  const [, id = 'someone'] =
    /AgentCore::(?:OAuthUser|IamEntity)::"([^"]+)"|principal\.id\s*==\s*"([^"]+)"/.exec(text) ?? [];
  return about.flatMap(({ action, input }) =>
    valuesOf(input, constants, MOST_INPUTS).map((given) => ({ principal: { type, id, tags }, action, input: given })),
  );
}

/** Nothing, single events, one event again and again, and all orders of few. */
function* historiesOf(text: string, tools: ToolOutline[], constants: Constants): Generator<Past[]> {
  const events = eventsOf(text, tools, constants);
  yield [];
  for (const one of events) yield [one];
  const repeats = [...new Set(constants.integers)].filter((count) => count > 1 && count <= MOST_REPEATS);
  for (const count of repeats) for (const one of events) yield Array.from({ length: count }, () => one);
  for (const first of events)
    for (const second of events) if (first.secondsAgo >= second.secondsAgo) yield [first, second];
  for (const count of repeats)
    for (const first of events)
      for (const second of events)
        if (first !== second && first.secondsAgo >= second.secondsAgo)
          yield [first, ...Array.from({ length: count }, () => second)];
}

/** The events that the text speaks of, within each of its windows and beyond. */
function eventsOf(text: string, tools: ToolOutline[], constants: Constants): Past[] {
  const spoken = [...text.matchAll(/AgentCore::Action::"((?:[^"\\]|\\.)+)"::(request|response|error)\b/g)];
  const kinds = new Map(spoken.map(([whole, action = '', kind]) => [whole, { action, kind: kind as Past['kind'] }]));
  const times = [...new Set([1, ...constants.windows.flatMap((window) => [window, window + 1])])].sort((a, b) => a - b);
  const events: Past[] = [];
  for (const { action, kind } of kinds.values()) {
    const tool = tools.find((one) => one.action === action);
    if (!tool) continue;
    const inputs = valuesOf(tool.input, constants, MOST_INPUTS);
    const outputs = kind === 'response' ? valuesOf(tool.output, constants, MOST_INPUTS) : [];
    const [plain] = inputs;
    const sides = [
      ...inputs.map((input) => ({ input, ...(outputs.length > 0 && { output: outputs[0] }) })),
      ...outputs.slice(1).map((output) => ({ input: plain, output })),
    ];
    for (const secondsAgo of times) for (const side of sides) events.push({ kind, action, ...side, secondsAgo });
  }
  return events.slice(0, MOST_EVENTS);
}

function requestOf(call: Call, history: Past[], resource: string): DecisionRequest {
  const { type, id } = call.principal;
  return {
    ...{ ...call, resource, now: NOW },
    history: history.map(({ secondsAgo, ...event }) => ({
      ...{ ...event, principal: { type, id }, resource },
      time: new Date(NOW.getTime() - secondsAgo * 1_000),
    })),
  };
}
