import type { control } from '@agentplatform/contract';
import type { Principal } from '../../../kernel/auth/index.ts';
import { isLike } from '../../../kernel/is-like.ts';
import type { Rule } from './rule.ts';

/** What rules look at. */
export interface RoutedRequest {
  /** The first word of its path. */
  word: string;
  principal: Principal;
  /** Which model is asked for; absent where the request is for none. */
  model?: string | undefined;
}

/** Whether a request meets all conditions of a rule. */
export function meets(request: RoutedRequest, { conditions }: Pick<Rule, 'conditions'>): boolean {
  return conditions.every(({ matchPaths, matchPrincipals, matchModels }) => {
    if (matchPaths) return matchPaths.anyOf.includes(`/${request.word}/*`);
    if (matchPrincipals) return matchPrincipals.anyOf.some((entry) => isOf(request.principal, entry));
    return matchModels?.anyOf.some((entry) => isModel(request.model, entry)) ?? false;
  });
}

/** A session of a role is that role, too. */
function isOf(principal: Principal, { iamPrincipal }: control.MatchPrincipalEntry): boolean {
  if (principal.kind !== 'iam' || !iamPrincipal) return false;
  const role = principal.arn.replace(/^arn:([^:]*):sts::(\d+):assumed-role\/([^/]+)\/.*$/, 'arn:$1:iam::$2:role/$3');
  const { arn, operator = 'StringEquals' } = iamPrincipal;
  return [principal.arn, role].some((one) => (operator === 'StringLike' ? isLike(arn, one) : arn === one));
}

function isModel(model: string | undefined, { value, operator = 'StringLike' }: control.MatchModelEntry): boolean {
  return model !== undefined && (operator === 'StringLike' ? isLike(value, model) : value === model);
}
