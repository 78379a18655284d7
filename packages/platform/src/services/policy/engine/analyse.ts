import { type AnalysisOptions, analyse as analyseSet, PolicyEngine } from '@agentplatform/policy-engine';
import type { Analyse, AnalysisFinding } from '../policies/policy-checking.ts';

const SET = 'analysis';

/** Asks a solver about a policy among the others. It has an engine of its own, so that no decision waits for a question. */
export function analyse(options: Pick<AnalysisOptions, 'solver'> = {}): Analyse {
  return async (schema, policy, others, timeoutMs) => {
    const engine = new PolicyEngine();
    try {
      const policies = [policy, ...others].map((one) => ({ ...one, mode: 'ACTIVE' as const }));
      const { broken, loaded } = await engine.load({ id: SET, schema, policies });
      if (!loaded || broken.includes(policy.id))
        return { findings: [], notAnalysed: 'the analysis does not know this kind of statement' };
      const { findings } = await analyseSet(engine, SET, { ...options, policy: policy.id, timeoutMs });
      const said = findings.flatMap(({ type, message }): AnalysisFinding[] =>
        type === 'NOT_ANALYSED' || type === 'MORE_ALLOWED' || type === 'LESS_ALLOWED'
          ? []
          : [{ type, description: message }],
      );
      const unknown = findings.flatMap(({ type, message }) => (type === 'NOT_ANALYSED' ? [message] : []));
      if (unknown.length > 0) return { findings: said, notAnalysed: unknown.join('; ') };
      return { findings: said.length > 0 ? said : [{ type: 'VALID', description: 'The analysis found nothing.' }] };
    } catch (error) {
      return { findings: [], notAnalysed: error instanceof Error ? error.message : String(error) };
    } finally {
      await engine.close();
    }
  };
}
