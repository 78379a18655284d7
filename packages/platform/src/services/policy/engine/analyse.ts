import type { Analyse } from '../policies/policy-checking.ts';
import type { PolicyEvaluator } from './door.ts';

/** Type-checking alone: what automated reasoning would say is not known, and is never called VALID. */
export function analyse(_evaluator: PolicyEvaluator): Analyse {
  return async () => ({ findings: [], notAnalysed: 'this server has no solver.' });
}
