import { randomUUID } from 'node:crypto';
import { callOf } from './counterexample-call.ts';
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

/** As a person reads it: as the call of a gateway, where it is one. */
export function written(example: Counterexample): string {
  const call = callOf(example);
  if (!call) {
    const { principal, action, context, entities } = example;
    return `such as ${principal} calls ${action} with ${JSON.stringify(context)}, where ${JSON.stringify(entities)}`;
  }
  const { principal, action, input, now } = call;
  const tags = principal.tags ? ` with the tags ${JSON.stringify(principal.tags)}` : '';
  const who = `${principal.type} ${JSON.stringify(principal.id)}${tags}`;
  return `such as ${who} calls ${action} with ${JSON.stringify(input)} at ${now.toISOString()}`;
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
  /** Once it aborts, what was not answered yet is not analysed. */
  signal?: AbortSignal | undefined;
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
  /** Of each policy that is not idle, a request that it matches. */
  const matched = new Map<string, Counterexample | undefined>();
  for (const { id, effect } of asked) {
    const named = effect === 'permit' ? (['ALLOW_NONE', 'ALLOW_ALL'] as const) : (['DENY_NONE', 'DENY_ALL'] as const);
    const never = await asker.everywhere(set, all, { kind: 'never', policy: id });
    const always = await asker.everywhere(set, all, { kind: 'always', policy: id });
    if (never.holds) {
      idle.add(id);
      const message = `policy ${id} matches no request at all`;
      findings.push({ type: named[0], policyId: id, message, ...shown(always.counterexample) });
      continue;
    }
    matched.set(id, never.counterexample);
    if (always.holds) {
      const message = `policy ${id} ${effect}s every request of every tool`;
      findings.push({ type: named[1], policyId: id, message, ...shown(never.counterexample) });
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
  for (const { id, effect, free } of asked) {
    if (idle.has(id)) continue;
    for (const other of outline.policies) {
      // Of two alike the second is the one that stays; what only a permit covers a forbid still forbids.
      const covers = effect === 'permit' || other.effect === 'forbid';
      if (other.id === id || idle.has(other.id) || !covers) continue;
      if (!(await asker.everywhere(set, all, { kind: 'covered', policy: id, other: other.id })).holds) continue;
      const example = free || other.free ? undefined : matched.get(id);
      const replayed = example && (await asker.replayed(example, source, [id, other.id], other.effect));
      // The two read a policy differently: what was proven of one says nothing of the other.
      if (replayed === false) continue;
      idle.add(id);
      const why =
        other.effect === effect
          ? `policy ${other.id} ${effect}s all of it`
          : `policy ${other.id} forbids all that it permits`;
      const message = `policy ${id} changes no decision: ${why}`;
      findings.push({ type: 'SHADOWED', policyId: id, by: other.id, message, ...(replayed && shown(example)) });
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

function shown(counterexample: Counterexample | undefined): Pick<Finding, 'counterexample'> {
  return counterexample ? { counterexample } : {};
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
  readonly #signal: AbortSignal | undefined;
  readonly #unclear = new Set<string>();
  readonly #traces: TraceSearch[] = [];
  #questions = 0;

  private constructor(
    engine: PolicyEngine,
    solver: Solver | undefined,
    { timeoutMs = 30_000, signal }: AnalysisOptions,
  ) {
    this.#engine = engine;
    this.#solver = solver;
    this.#deadline = performance.now() + timeoutMs;
    this.#signal = signal;
  }

  static async begin(engine: PolicyEngine, options: AnalysisOptions): Promise<Asker> {
    const { solver } = options;
    return new Asker(engine, solver === undefined ? await findSolver() : (solver ?? undefined), options);
  }

  /** Whether it holds in each environment, and else a request that shows it; one that is unclear is not a yes. */
  async everywhere(
    set: string,
    environments: number[],
    question: Question,
  ): Promise<{ holds: boolean; counterexample?: Counterexample | undefined }> {
    for (const environment of environments) {
      const answer = await this.ask(set, environment, question);
      if ('unclear' in answer) return { holds: false };
      if (!answer.holds) return answer;
    }
    return { holds: environments.length > 0 };
  }

  /** Whether the engine, asked as by a gateway, decides an example by the second of these policies, which has that effect. Undefined for one that is no call of a gateway. */
  async replayed(
    example: Counterexample,
    source: PolicySetSource | undefined,
    ids: [string, string],
    effect: TraceOptions['effect'],
  ): Promise<boolean | undefined> {
    const call = callOf(example);
    if (!call || !source) return undefined;
    const id = `replay ${randomUUID()}`;
    const policies = source.policies.filter((one) => ids.includes(one.id));
    try {
      await this.#engine.load({ id, schema: source.schema, policies });
      const { decision, determining, errors } = await this.#engine.decide(id, call);
      // An example that no client could send shows nothing.
      if (errors.length > 0) return undefined;
      const alike = decision === (effect === 'permit' ? 'ALLOW' : 'DENY') && determining.includes(ids[1]);
      if (!alike) this.#unclear.add("the solver's example decides otherwise in the engine");
      return alike;
    } finally {
      await this.#engine.unload(id);
    }
  }

  async ask(set: string, environment: number, question: Question): Promise<Answer> {
    this.#questions += 1;
    const answer = await this.#answer(set, environment, question).catch((error: Error) => ({ unclear: error.message }));
    if ('unclear' in answer) this.#unclear.add(answer.unclear);
    return answer;
  }

  async #answer(set: string, environment: number, question: Question): Promise<Answer> {
    if (this.#signal?.aborted) return { unclear: 'the analysis was called off' };
    if (performance.now() >= this.#deadline) return { unclear: 'the time given for the analysis was over' };
    const body = { set, environment, question };
    const first = (await this.#engine.ask('check', body)) as Answer | { script: string };
    if (!('script' in first)) return first;
    if (!this.#solver) return { unclear: `no solver is installed: ${solverInstall}` };
    const reply = await solve(this.#solver, first.script, this.#deadline - performance.now(), this.#signal);
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
      if ((await this.everywhere(set, own, { kind: 'always', policy: id })).holds) open.push(action);
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
    const options = { timeoutMs, tools, gatewayArn, effect, principals, schema: source.schema, signal: this.#signal };
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
