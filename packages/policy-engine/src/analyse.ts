import type { PolicyEngine } from './engine.ts';
import { findSolver, type Solver, solve, solverInstall } from './solver.ts';

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
}

interface Outline {
  environments: { principal: string; action: string; resource: string }[];
  policies: { id: string; effect: 'permit' | 'forbid'; free: boolean }[];
}

type Question =
  | { kind: 'always' | 'never'; policy: string }
  | { kind: 'covered'; policy: string; other: string }
  | { kind: 'implies'; other: string };

type Answer = { holds: boolean; counterexample?: Counterexample } | { unclear: string };

export interface AnalysisOptions {
  /** All questions together. */
  timeoutMs?: number;
  /** Found by itself if left out; `null` is none. */
  solver?: Solver | null;
}

/** What holds of every request that the schema knows: the policies of a loaded set, one by one and by pairs. */
export async function analyse(engine: PolicyEngine, set: string, options: AnalysisOptions = {}): Promise<Analysis> {
  const asker = await Asker.begin(engine, options);
  const outline = (await engine.ask('outline', { set })) as Outline;
  const all = outline.environments.map((_, at) => at);
  const findings: Finding[] = [];
  const idle = new Set<string>();
  for (const { id, effect } of outline.policies) {
    const named = effect === 'permit' ? (['ALLOW_NONE', 'ALLOW_ALL'] as const) : (['DENY_NONE', 'DENY_ALL'] as const);
    if (await asker.everywhere(set, all, { kind: 'never', policy: id })) {
      idle.add(id);
      findings.push({ type: named[0], policyId: id, message: `policy ${id} matches no request at all` });
    } else if (await asker.everywhere(set, all, { kind: 'always', policy: id })) {
      findings.push({ type: named[1], policyId: id, message: `policy ${id} ${effect}s every request of every tool` });
    }
  }
  for (const { id, effect } of outline.policies) {
    if (idle.has(id)) continue;
    for (const other of outline.policies) {
      // Of two permits each of which covers the other, the first is the one that stays.
      const covers = other.effect === 'forbid' ? effect === 'permit' : effect === 'permit';
      if (other.id === id || idle.has(other.id) || !covers) continue;
      if (!(await asker.everywhere(set, all, { kind: 'covered', policy: id, other: other.id }))) continue;
      idle.add(id);
      const why =
        other.effect === 'forbid'
          ? `policy ${other.id} forbids all that it permits`
          : `policy ${other.id} permits all of it`;
      findings.push({
        type: 'SHADOWED',
        policyId: id,
        by: other.id,
        message: `policy ${id} changes no decision: ${why}`,
      });
      break;
    }
  }
  return asker.result(
    findings,
    outline.policies.some(({ free }) => free),
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
  const outline = (await engine.ask('outline', { set: before })) as Outline;
  const findings: Finding[] = [];
  for (const [environment, { principal, action }] of outline.environments.entries()) {
    for (const [type, set, other, words] of [
      ['LESS_ALLOWED', before, after, 'no longer allowed'],
      ['MORE_ALLOWED', after, before, 'newly allowed'],
    ] as const) {
      const answer = await asker.ask(set, environment, { kind: 'implies', other });
      if ('unclear' in answer || answer.holds) continue;
      findings.push({ type, message: `${principal} calls ${action}: ${words}`, counterexample: answer.counterexample });
    }
  }
  return asker.result(
    findings,
    outline.policies.some(({ free }) => free),
  );
}

class Asker {
  readonly #engine: PolicyEngine;
  readonly #solver: Solver | undefined;
  readonly #deadline: number;
  readonly #unclear = new Set<string>();
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
    const body = { set, environment, question };
    const first = (await this.#engine.ask('check', body)) as Answer | { script: string };
    if (!('script' in first)) return first;
    if (!this.#solver) return { unclear: `no solver is installed: ${solverInstall}` };
    const left = this.#deadline - performance.now();
    if (left <= 0) return { unclear: 'the time given for the analysis was over' };
    const reply = await solve(this.#solver, first.script, left);
    if (reply === 'unknown') return { unclear: 'the solver did not decide in time' };
    const told = reply === 'unsat' ? 'unsat' : { model: reply.model };
    return (await this.#engine.ask('check', { ...body, reply: told })) as Answer;
  }

  result(findings: Finding[], free: boolean): Analysis {
    if (free) {
      this.#unclear.add('conditions on the history or on guardrails were taken as true or false at will');
    }
    for (const message of this.#unclear)
      findings.push({ type: 'NOT_ANALYSED', message: `not analysed in full: ${message}` });
    return { complete: this.#unclear.size === 0, findings, questions: this.#questions };
  }
}
