import type { ContextLookup } from './iam-policy-condition.ts';
import type { Policy, Statement } from './iam-policy-document.ts';
import type { PrincipalIdentity, PrincipalMatch } from './iam-policy-principal.ts';
import type { Variables } from './iam-policy-text.ts';

/** What is asked of policies. */
export interface AccessRequest {
  principal: PrincipalIdentity;
  /** `bedrock-agentcore:InvokeAgentRuntime` */
  action: string;
  /** ARN, or an ARN pattern or `*` for actions on no single resource; wildcards in it are themselves. */
  resource: string;
  context: ContextLookup;
}

export type Verdict =
  | { effect: 'Deny'; statement: Statement }
  | { effect: 'Allow'; statement: Statement; match: Exclude<PrincipalMatch, 'none'> }
  | { effect: 'None' };

const NONE: Verdict = { effect: 'None' };

/** What these policies say together: an explicit Deny, else an Allow (a direct one before one through the account), else nothing. */
export function evaluate(policies: readonly Policy[], request: AccessRequest): Verdict {
  const variables: Variables = (name) => {
    const values = request.context(name.toLowerCase());
    return values?.length === 1 ? values[0] : undefined;
  };
  let allow: Verdict = NONE;
  for (const policy of policies) {
    for (const statement of policy.statements) {
      const settled = allow.effect === 'Allow' && allow.match === 'direct';
      if (statement.effect === 'Allow' && settled) continue;
      const match = matchStatement(statement, request, variables);
      if (match === 'none') continue;
      if (statement.effect === 'Deny') return { effect: 'Deny', statement };
      if (allow.effect === 'None' || match === 'direct') allow = { effect: 'Allow', statement, match };
    }
  }
  return allow;
}

function matchStatement(statement: Statement, request: AccessRequest, variables: Variables): PrincipalMatch {
  if (!statement.matchesAction(request.action)) return 'none';
  const match = statement.matchesPrincipal(request.principal);
  if (match === 'none' || !statement.matchesResource(request.resource, variables)) return 'none';
  return statement.conditions.every((condition) => condition(request.context, variables)) ? match : 'none';
}
