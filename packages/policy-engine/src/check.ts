import { type Analysis, type AnalysisOptions, analyse, compare } from './analyse.ts';
import { ENGINE_FAILED, type PolicyEngine } from './engine.ts';
import { type ToolTargets, toolSchema } from './tool-schema.ts';
import type { Decision, Diagnostic, HistoryEvent, PolicySource, Principal } from './types.ts';

/** Tools, policies and examples of what is to be decided, as they stand in files: no platform is asked. */
export interface CheckDocument extends ToolTargets {
  policies: PolicySource[];
  tests?: ExampleCall[];
}

/** A call and what is to be decided of it; with `history`, a trace. */
export interface ExampleCall {
  name: string;
  principal: Principal;
  action: string;
  input?: unknown;
  /** ISO 8601; the start of 2026 if left out. */
  now?: string;
  history?: (Pick<HistoryEvent, 'kind' | 'action' | 'input' | 'output'> & { secondsAgo: number })[];
  expect: Decision['decision'];
  /** The policies that are to have decided it. */
  determining?: string[];
}

export interface TestResult {
  name: string;
  ok: boolean;
  expected: Pick<ExampleCall, 'expect' | 'determining'>;
  found: Decision;
  /** Why it says nothing of the policies: they were not asked, so that its DENY is none of theirs. */
  undecidable?: string;
}

export interface CheckReport {
  /** Every policy type-checks, every test decides as expected, and the analysis has no finding of its own. */
  ok: boolean;
  problems: Diagnostic[];
  /** None where a policy does not type-check. */
  analysis: Analysis | null;
  tests: TestResult[];
  /** What policies have no say in, here as in the original. */
  notes: string[];
}

export const uncovered =
  'Policies decide calls of tools, on MCP, HTTP and model routes. Prompts and resources of MCP targets pass without a decision, unless the gateway closes them.';

/** Parses, type-checks, analyses, and runs the examples. */
export async function check(
  engine: PolicyEngine,
  document: CheckDocument,
  options: AnalysisOptions = {},
): Promise<CheckReport> {
  const { problems, loaded, broken, actions } = await engine.load({
    id: 'check',
    schema: toolSchema(document),
    policies: document.policies,
  });
  const sound = loaded && broken.length === 0;
  try {
    const tests: TestResult[] = [];
    const { principals = PRINCIPALS } = document;
    for (const example of document.tests ?? []) {
      const undecidable = loaded ? whyUndecidable(example, actions, principals) : 'the policies cannot be loaded';
      tests.push(undecidable ? unasked(example, undecidable) : await run(engine, document.gatewayArn, example));
    }
    const analysis = sound ? await analyse(engine, 'check', options) : null;
    const found = analysis?.findings.some(({ type }) => type !== 'NOT_ANALYSED' && type !== 'OPEN_TOOLS') ?? false;
    return { ok: sound && !found && tests.every(({ ok }) => ok), problems, analysis, tests, notes: [uncovered] };
  } finally {
    await engine.unload('check');
  }
}

const START = '2026-01-01T00:00:00Z';
/** As the schema has them where a document names none. */
const PRINCIPALS: Principal['type'][] = ['OAuthUser', 'IamEntity'];

/** What of an example is such that no policy is asked; undefined where all are. An input that does not fit its tool is denied as it would be at a gateway, and that can be expected. */
function whyUndecidable(
  { action, principal, now, history = [] }: ExampleCall,
  actions: readonly string[],
  principals: readonly string[],
): string | undefined {
  const unknown = [action, ...history.map((event) => event.action)].find((one) => !actions.includes(one));
  if (unknown !== undefined) return `there is no tool ${unknown}; known are ${actions.join(', ')}`;
  if (!principals.includes(principal.type))
    return `a principal of the type ${principal.type} cannot call; known are ${principals.join(', ')}`;
  if (now !== undefined && Number.isNaN(Date.parse(now))) return `now is no time of ISO 8601: ${now}`;
  const before = history.find(({ secondsAgo }) =>
    Number.isNaN(timeBefore(new Date(now ?? START), secondsAgo).getTime()),
  );
  return before && `an event is ${before.secondsAgo} seconds ago, which no clock has`;
}

function timeBefore(now: Date, seconds: number): Date {
  return new Date(now.getTime() - seconds * 1_000);
}

function unasked({ name, expect, determining }: ExampleCall, undecidable: string): TestResult {
  const found: Decision = { decision: 'DENY', determining: [], errors: [undecidable] };
  return { name, ok: false, expected: { expect, determining }, found, undecidable };
}

async function run(engine: PolicyEngine, resource: string, example: ExampleCall): Promise<TestResult> {
  const { principal, action, input, expect, determining } = example;
  const now = new Date(example.now ?? START);
  const history = (example.history ?? []).map(({ secondsAgo, ...event }): HistoryEvent => {
    return { ...event, principal, resource, time: timeBefore(now, secondsAgo) };
  });
  const found = await engine.decide('check', { principal, action, resource, input, now, history });
  const alike = !determining || JSON.stringify([...determining].sort()) === JSON.stringify(found.determining);
  const failed = found.errors.find((error) => error.startsWith(ENGINE_FAILED));
  return {
    ...{
      name: example.name,
      ok: found.decision === expect && alike && !failed,
      expected: { expect, determining },
      found,
    },
    ...(failed !== undefined && { undecidable: failed }),
  };
}

/** What the policies of `after` allow more and less than those of `before`, over the tools of `after`. */
export async function diff(
  engine: PolicyEngine,
  before: CheckDocument,
  after: CheckDocument,
  options: AnalysisOptions = {},
): Promise<{ problems: Diagnostic[]; analysis: Analysis | null }> {
  const schema = toolSchema(after);
  const loads = [
    await engine.load({ id: 'before', schema, policies: before.policies }),
    await engine.load({ id: 'after', schema, policies: after.policies }),
  ];
  try {
    const sound = loads.every(({ loaded, broken }) => loaded && broken.length === 0);
    const problems = loads.flatMap((load) => load.problems);
    return { problems, analysis: sound ? await compare(engine, 'before', 'after', options) : null };
  } finally {
    await engine.unload('before');
    await engine.unload('after');
  }
}
