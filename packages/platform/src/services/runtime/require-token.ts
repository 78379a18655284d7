import { errors } from '@agentplatform/contract';
import type { Principal } from '../../kernel/auth/index.ts';
import type { InvocationTarget } from './catalogue.ts';

/** A runtime with a JWT authorizer takes tokens alone. Throws AccessDeniedException for a signed request to one. */
export function requireToken(
  { principal }: { principal: Principal },
  { version }: { version: Pick<InvocationTarget['version'], 'definition'> },
): void {
  if (principal.kind === 'oauth' || !version.definition.authorizerConfiguration?.customJWTAuthorizer) return;
  throw errors.accessDenied(
    'Authorization method mismatch: this agent runtime accepts OAuth bearer tokens, but the request was signed.',
    { remedy: 'Send a token of the configured OpenID provider in Authorization: Bearer.' },
  );
}
