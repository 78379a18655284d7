import { randomUUID } from 'node:crypto';
import {
  type AnalysisOptions,
  analyse as analyseSet,
  type Finding,
  findSolver,
  PolicyEngine,
  type Solver,
  written,
} from '@agentplatform/policy-engine';
import type { Analyse, AnalysisFinding } from '../policies/policy-checking.ts';

/** Asks a solver about policies. It has an engine of its own, so that no decision waits for a question, which begins with the first one. */
export class PolicyAnalysis {
  readonly #given: Solver | null | undefined;
  readonly #find: typeof findSolver;
  #engine: PolicyEngine | undefined;
  #solver: Promise<Solver | undefined> | undefined;

  /** `solver`: found by itself if left out; `null` is none. */
  constructor({ solver, find = findSolver }: Pick<AnalysisOptions, 'solver'> & { find?: typeof findSolver } = {}) {
    this.#given = solver;
    this.#find = find;
  }

  /** Asks about a policy among the others. What was not answered once the signal aborts is not analysed. */
  readonly analyse: Analyse = async (schema, policy, others, { timeoutMs, signal }) => {
    this.#engine ??= new PolicyEngine();
    const engine = this.#engine;
    const set = `analysis ${randomUUID()}`;
    try {
      const policies = [policy, ...others].map((one) => ({ ...one, mode: 'ACTIVE' as const }));
      const { broken, loaded } = await engine.load({ id: set, schema, policies });
      if (!loaded || broken.includes(policy.id))
        return { findings: [], notAnalysed: 'the analysis does not know this kind of statement' };
      const solver = (await this.#known()) ?? null;
      const { findings } = await analyseSet(engine, set, { solver, policy: policy.id, timeoutMs, signal });
      return told(findings);
    } catch (error) {
      return { findings: [], notAnalysed: error instanceof Error ? error.message : String(error) };
    } finally {
      await engine.unload(set);
    }
  };

  async close(): Promise<void> {
    await this.#engine?.close();
  }

  /** The solver, looked for again only as long as there is none: it may be installed at any time. */
  async #known(): Promise<Solver | null | undefined> {
    if (this.#given !== undefined) return this.#given;
    this.#solver ??= this.#find();
    const found = await this.#solver;
    if (!found) this.#solver = undefined;
    return found;
  }
}

function told(findings: readonly Finding[]): Awaited<ReturnType<Analyse>> {
  const said = findings.flatMap(({ type, message, counterexample }): AnalysisFinding[] => {
    if (type === 'NOT_ANALYSED' || type === 'MORE_ALLOWED' || type === 'LESS_ALLOWED') return [];
    return [{ type, description: counterexample ? `${message}, ${written(counterexample)}` : message }];
  });
  const unknown = findings.flatMap(({ type, message }) => (type === 'NOT_ANALYSED' ? [message] : []));
  if (unknown.length > 0) return { findings: said, notAnalysed: unknown.join('; ') };
  return { findings: said.length > 0 ? said : [{ type: 'VALID', description: 'The analysis found nothing.' }] };
}
