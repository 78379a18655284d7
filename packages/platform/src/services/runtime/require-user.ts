import { errors } from '@agentplatform/contract';
import type { RequestContext } from '../../kernel/service.ts';
import type { InvocationTarget } from './catalogue.ts';
import { USER_HEADER } from './container-headers.ts';

/**
 * Agents believe the user header, so not everybody may set it: a signed call needs a right of its own, and the bearer of a token
 * is whom the token says. Rejects with AccessDeniedException.
 */
export async function requireUser(
  ctx: Pick<RequestContext, 'headers' | 'principal' | 'require'>,
  { runtime, endpoint }: { [Part in 'runtime' | 'endpoint']: Pick<InvocationTarget[Part], 'arn'> },
): Promise<void> {
  const { principal } = ctx;
  const user = ctx.headers[USER_HEADER];
  if (user === undefined) return;
  if (principal.kind === 'iam') {
    for (const { arn } of [runtime, endpoint]) await ctx.require('bedrock-agentcore:InvokeAgentRuntimeForUser', arn);
    return;
  }
  if (principal.kind === 'anonymous' || user !== principal.subject) {
    throw errors.accessDenied('The user id of the call is not the subject of its token.', {
      remedy: `Leave out ${USER_HEADER}: the agent may be given the token itself by requestHeaderAllowlist.`,
    });
  }
}
