import type { PolicyEngine } from './engine.ts';
import { toolsOf } from './schema-text.ts';
import { findSolver, type Solver, solve, solverInstall } from './solver.ts';
import { namedActions, searchTraces, type TraceOptions, type TraceSearch } from './traces.ts';
import type { PolicySetSource } from './types.ts';

/** A request that shows what is said: a person reads it, and the engine has decided it so. */
export interface Counterexample {
  principal: string;
  action: string;
  resource: string;
  context: unknown;
  entities: unknown;
}

export type FindingType =
  | 'ALLOW_ALL'
  | 'ALLOW_NONE'
  | 'DENY_ALL'
  | 'DENY_NONE'
  | 'SHADOWED'
  /** Every call of some tools is permitted: a common wish, and told all the same. */
  | 'OPEN_TOOLS'
  | 'MORE_ALLOWED'
  | 'LESS_ALLOWED'
  | 'NOT_ANALYSED';

export interface Finding {
  type: FindingType;
  policyId?: string;
  /** The policy that makes this one idle. */
  by?: string;
  message: string;
  counterexample?: Counterexample;
}

export interface Analysis {
  /** True: every question was answered. False: what is not found here is unknown, never fine. */
  complete: boolean;
  findings: Finding[];
  /** Of the questions asked. */
  questions: number;
  /** Of policies that look at the history: what short traces show. */
  traces: TraceSearch[];
}

interface Outline {
  environments: { principal: string; action: string; resource: string }[];
  policies: { id: string; effect: TraceOptions['effect']; free: boolean }[];
}

type Question =
  | { kind: 'always' | 'never'; policy: string }
  | { kind: 'covered'; policy: string; other: string }
  | { kind: 'implies'; other: string };

type Answer = { holds: boolean; counterexample?: Counterexample } | { unclear: string };

export interface AnalysisOptions {
  /** Only what concerns this policy; all of the set if left out. */
  policy?: string;
  /** All questions together. */
  timeoutMs?: number;
  /** Found by itself if left out; `null` is none. */
  solver?: Solver | null;
}

/** What holds of every request that the schema knows: the policies of a loaded set, one by one and by pairs. */
export async function analyse(engine: PolicyEngine, set: string, options: AnalysisOptions = {}): Promise<Analysis> {
  const asker = await Asker.begin(engine, options);
  const outline = (await engine.ask('outline', { set })) as Outline;
  const source = engine.source(set);
  const asked = outline.policies.filter(({ id }) => options.policy === undefined || id === options.policy);
  const all = outline.environments.map((_, at) => at);
  const findings: Finding[] = [];
  const idle = new Set<string>();
  for (const { id, effect } of asked) {
    const named = effect === 'permit' ? (['ALLOW_NONE', 'ALLOW_ALL'] as const) : (['DENY_NONE', 'DENY_ALL'] as const);
    if (await asker.everywhere(set, all, { kind: 'never', policy: id })) {
      idle.add(id);
      findings.push({ type: named[0], policyId: id, message: `policy ${id} matches no request at all` });
    } else if (await asker.everywhere(set, all, { kind: 'always', policy: id })) {
      findings.push({ type: named[1], policyId: id, message: `policy ${id} ${effect}s every request of every tool` });
    } else if (effect === 'permit') {
      const open = await asker.openTools(set, id, source, outline);
      if (open.length > 0)
        findings.push({
          type: 'OPEN_TOOLS',
          policyId: id,
          message: `policy ${id} permits every call of ${open.join(', ')}`,
        });
    }
  }
  for (const { id, effect } of asked) {
    if (idle.has(id)) continue;
    for (const other of outline.policies) {
      // Of two alike the second is the one that stays; what only a permit covers a forbid still forbids.
      const covers = effect === 'permit' || other.effect === 'forbid';
      if (other.id === id || idle.has(other.id) || !covers) continue;
      if (!(await asker.everywhere(set, all, { kind: 'covered', policy: id, other: other.id }))) continue;
      idle.add(id);
      const why =
        other.effect === effect
          ? `policy ${other.id} ${effect}s all of it`
          : `policy ${other.id} forbids all that it permits`;
      findings.push({
        type: 'SHADOWED',
        policyId: id,
        by: other.id,
        message: `policy ${id} changes no decision: ${why}`,
      });
      break;
    }
  }
  for (const { id, effect, free } of asked)
    if (free && !idle.has(id)) await asker.searchTraces(id, effect, source, outline);
  return asker.result(
    findings,
    asked.some(({ free }) => free),
  );
}

/** What another version of a set allows more and less than this one, with an example of each. */
export async function compare(
  engine: PolicyEngine,
  before: string,
  after: string,
  options: AnalysisOptions = {},
): Promise<Analysis> {
  const asker = await Asker.begin(engine, options);
  const findings: Finding[] = [];
  let free = false;
  for (const [type, set, other, words] of [
    ['LESS_ALLOWED', before, after, 'no longer allowed'],
    ['MORE_ALLOWED', after, before, 'newly allowed'],
  ] as const) {
    // Each set numbers its environments by itself.
    const outline = (await engine.ask('outline', { set })) as Outline;
    free ||= outline.policies.some((policy) => policy.free);
    for (const [environment, { principal, action }] of outline.environments.entries()) {
      const answer = await asker.ask(set, environment, { kind: 'implies', other });
      if ('unclear' in answer || answer.holds) continue;
      findings.push({ type, message: `${principal} calls ${action}: ${words}`, counterexample: answer.counterexample });
    }
  }
  return asker.result(findings, free);
}

/** Tools of one policy that are looked at for being open. */
const MOST_OPEN = 16;
/** Of one policy. */
const TRACES_MS = 10_000;

class Asker {
  readonly #engine: PolicyEngine;
  readonly #solver: Solver | undefined;
  readonly #deadline: number;
  readonly #unclear = new Set<string>();
  readonly #traces: TraceSearch[] = [];
  #questions = 0;

  private constructor(engine: PolicyEngine, solver: Solver | undefined, timeoutMs: number) {
    this.#engine = engine;
    this.#solver = solver;
    this.#deadline = performance.now() + timeoutMs;
  }

  static async begin(engine: PolicyEngine, { solver, timeoutMs = 30_000 }: AnalysisOptions): Promise<Asker> {
    return new Asker(engine, solver === undefined ? await findSolver() : (solver ?? undefined), timeoutMs);
  }

  /** Whether it holds in each environment; one that is unclear is not a yes. */
  async everywhere(set: string, environments: number[], question: Question): Promise<boolean> {
    for (const environment of environments) {
      const answer = await this.ask(set, environment, question);
      if ('unclear' in answer || !answer.holds) return false;
    }
    return environments.length > 0;
  }

  async ask(set: string, environment: number, question: Question): Promise<Answer> {
    this.#questions += 1;
    const answer = await this.#answer(set, environment, question).catch((error: Error) => ({ unclear: error.message }));
    if ('unclear' in answer) this.#unclear.add(answer.unclear);
    return answer;
  }

  async #answer(set: string, environment: number, question: Question): Promise<Answer> {
    if (performance.now() >= this.#deadline) return { unclear: 'the time given for the analysis was over' };
    const body = { set, environment, question };
    const first = (await this.#engine.ask('check', body)) as Answer | { script: string };
    if (!('script' in first)) return first;
    if (!this.#solver) return { unclear: `no solver is installed: ${solverInstall}` };
    const reply = await solve(this.#solver, first.script, this.#deadline - performance.now());
    if (reply === 'unknown') return { unclear: 'the solver did not decide in time' };
    const told = reply === 'unsat' ? 'unsat' : { model: reply.model };
    return (await this.#engine.ask('check', { ...body, reply: told })) as Answer;
  }

  /** The tools that its head names of which a policy matches every request. */
  async openTools(
    set: string,
    id: string,
    source: PolicySetSource | undefined,
    { environments }: Outline,
  ): Promise<string[]> {
    const text = source?.policies.find((one) => one.id === id)?.text ?? '';
    const named = namedActions(text, [...new Set(environments.map(({ action }) => action))]);
    const open: string[] = [];
    for (const action of named.slice(0, MOST_OPEN)) {
      const own = environments.flatMap((one, at) => (one.action === action ? [at] : []));
      if (await this.everywhere(set, own, { kind: 'always', policy: id })) open.push(action);
    }
    return open;
  }

  /** Looks at short traces, where a condition looks at the history. */
  async searchTraces(
    id: string,
    effect: TraceOptions['effect'],
    source: PolicySetSource | undefined,
    { environments }: Outline,
  ): Promise<void> {
    const policy = source?.policies.find((one) => one.id === id);
    const gatewayArn = /entity Gateway enum \["([^"]+)"\]/.exec(source?.schema ?? '')?.[1];
    if (!source || !policy || !gatewayArn || environments.length === 0 || !/\btemporal\b/.test(policy.text)) return;
    const timeoutMs = Math.min(TRACES_MS, this.#deadline - performance.now());
    const typeOf = ({ principal }: { principal: string }) =>
      principal.endsWith('IamEntity') ? 'IamEntity' : 'OAuthUser';
    const principals = [...new Set(environments.map(typeOf))];
    const tools = toolsOf(source.schema);
    const options = { timeoutMs, tools, gatewayArn, effect, principals, schema: source.schema };
    const search = await searchTraces(this.#engine, policy, options);
    this.#traces.push(search);
    this.#unclear.add(
      `bounded search of ${search.tried} short traces: ${shownBy(search, effect)}; longer ones are unknown`,
    );
  }

  result(findings: Finding[], free: boolean): Analysis {
    if (free) {
      this.#unclear.add('conditions on the history or on guardrails were taken as true or false at will');
    }
    for (const message of this.#unclear)
      findings.push({ type: 'NOT_ANALYSED', message: `not analysed in full: ${message}` });
    return { complete: this.#unclear.size === 0, findings, questions: this.#questions, traces: this.#traces };
  }
}

/** What is said of it in words. */
function shownBy({ policyId, matched, unmatched }: TraceSearch, effect: string): string {
  if (matched && unmatched) return `policy ${policyId} ${effect}s some calls and not others`;
  if (matched) return `policy ${policyId} ${effect}s the call in every one`;
  if (unmatched) return `policy ${policyId} ${effect}s the call in none`;
  return `policy ${policyId} could be decided in none`;
}
