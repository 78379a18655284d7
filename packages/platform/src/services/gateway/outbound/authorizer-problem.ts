import type { GatewayDefinition } from '../gateways/gateway.ts';
import type { TargetDefinition } from '../targets/target.ts';

/** Why a target's credentials cannot be had on a gateway with that authorizer, to follow their field's name; undefined when they can. */
export function authorizerProblem(
  { credentialProviderConfigurations: [configuration] }: Pick<TargetDefinition, 'credentialProviderConfigurations'>,
  { authorizerType, authorizerConfiguration }: GatewayDefinition,
): string | undefined {
  if (!configuration) return undefined;
  const { credentialProviderType: type, credentialProvider } = configuration;
  const withTokens = authorizerConfiguration !== undefined;
  if (type === 'CALLER_IAM_CREDENTIALS')
    return authorizerType === 'AWS_IAM'
      ? undefined
      : 'of type CALLER_IAM_CREDENTIALS need a gateway whose callers sign their requests (AWS_IAM)';
  if (type === 'JWT_PASSTHROUGH')
    return withTokens ? undefined : 'of type JWT_PASSTHROUGH need a gateway whose callers bring a JWT';
  if (authorizerType === 'AUTHENTICATE_ONLY')
    return 'must be of type JWT_PASSTHROUGH, or none, where the gateway only authenticates: every user of the identity provider could use any other';
  const { grantType = 'CLIENT_CREDENTIALS' } = credentialProvider?.oauthCredentialProvider ?? {};
  return grantType === 'CLIENT_CREDENTIALS' || withTokens
    ? undefined
    : `with grantType ${grantType} need a gateway whose callers bring a JWT: without one nobody is known to act for`;
}
