import { errors } from '@agentplatform/contract';
import type { JwtAuthenticator } from '../../kernel/auth/index.ts';
import type { IdentityPort } from '../identity/index.ts';
import type { RuntimeServiceDeps } from './index.ts';

/** Judges bearer tokens by the authorizer of the runtime that they are sent to, and the workload that brings one where only some may. */
export function runtimeTokens(
  jwt: JwtAuthenticator,
  identity: Pick<IdentityPort, 'requireWorkload'>,
): RuntimeServiceDeps['verifyToken'] {
  return async ({ runtime: { accountId, arn: resource }, version }, token, headers) => {
    const configuration = version.definition.authorizerConfiguration?.customJWTAuthorizer;
    const certificateAuthority = version.certificateAuthority;
    if (!configuration)
      throw errors.accessDenied(
        'Authorization method mismatch: this agent runtime accepts signed requests, but the request has a bearer token.',
        { remedy: 'Sign the request, or give the runtime a customJWTAuthorizer.' },
      );
    const principal = await jwt.authenticate(token, { accountId, resource, configuration, certificateAuthority });
    const allowed = configuration.allowedWorkloadConfiguration;
    if (allowed) await identity.requireWorkload(allowed, headers, accountId);
    return principal;
  };
}
