import { errors } from '@agentplatform/contract';
import type { createJwtAuthenticator } from '../../kernel/auth/index.ts';
import type { RuntimeServiceDeps } from './index.ts';

/** Judges bearer tokens by the authorizer of the runtime that they are sent to. */
export function runtimeTokens(jwt: ReturnType<typeof createJwtAuthenticator>): RuntimeServiceDeps['verifyToken'] {
  return ({ runtime: { accountId, arn: resource }, version }, token) => {
    const configuration = version.definition.authorizerConfiguration?.customJWTAuthorizer;
    const certificateAuthority = version.certificateAuthority;
    if (configuration) return jwt.authenticate(token, { accountId, resource, configuration, certificateAuthority });
    throw errors.accessDenied(
      'Authorization method mismatch: this agent runtime takes signed requests, the request has a bearer token.',
      { remedy: 'Sign the request, or give the runtime a customJWTAuthorizer.' },
    );
  };
}
