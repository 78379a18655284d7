import { type Analysis, type AnalysisOptions, analyse, compare } from './analyse.ts';
import type { PolicyEngine } from './engine.ts';
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
  const { problems, loaded, broken } = await engine.load({
    id: 'check',
    schema: toolSchema(document),
    policies: document.policies,
  });
  const sound = loaded && broken.length === 0;
  try {
    const tests: TestResult[] = [];
    for (const example of document.tests ?? []) tests.push(await run(engine, document.gatewayArn, example));
    const analysis = sound ? await analyse(engine, 'check', options) : null;
    const found = analysis?.findings.some(({ type }) => type !== 'NOT_ANALYSED' && type !== 'OPEN_TOOLS') ?? false;
    return { ok: sound && !found && tests.every(({ ok }) => ok), problems, analysis, tests, notes: [uncovered] };
  } finally {
    await engine.unload('check');
  }
}

async function run(engine: PolicyEngine, resource: string, example: ExampleCall): Promise<TestResult> {
  const { principal, action, input, expect, determining } = example;
  const now = new Date(example.now ?? '2026-01-01T00:00:00Z');
  const history = (example.history ?? []).map(({ secondsAgo, ...event }): HistoryEvent => {
    return { ...event, principal, resource, time: new Date(now.getTime() - secondsAgo * 1_000) };
  });
  const found = await engine.decide('check', { principal, action, resource, input, now, history });
  const alike = !determining || JSON.stringify([...determining].sort()) === JSON.stringify(found.determining);
  return { name: example.name, ok: found.decision === expect && alike, expected: { expect, determining }, found };
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
