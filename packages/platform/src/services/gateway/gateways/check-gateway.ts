import { errors } from '@agentplatform/contract';
import { checkConfiguration } from '../../../kernel/auth/index.ts';
import { type GatewayDefinition, MCP_VERSIONS } from './gateway.ts';

/** What the model's constraints do not say of a gateway. Throws ValidationException. */
export function checkGateway({
  authorizerType,
  authorizerConfiguration,
  protocolConfiguration,
  interceptorConfigurations = [],
  policyEngineConfiguration,
  customTransformConfiguration: transform,
}: GatewayDefinition): void {
  if (policyEngineConfiguration && authorizerType === 'NONE')
    throw errors.invalidField(
      'policyEngineConfiguration',
      'must not be given where authorizerType is NONE: policies are about callers who are known',
    );
  const rules = authorizerConfiguration?.customJWTAuthorizer;
  const judged = authorizerType === 'CUSTOM_JWT' || authorizerType === 'AUTHENTICATE_ONLY';
  if (judged && !rules)
    throw errors.invalidField(
      'authorizerConfiguration',
      `must have a customJWTAuthorizer where authorizerType is ${authorizerType}`,
    );
  if (!judged && rules)
    throw errors.invalidField('authorizerConfiguration', `must not be given where authorizerType is ${authorizerType}`);
  // Who only authenticates lets any token of the issuer in: what it may do is decided behind the gateway.
  const ruled = rules?.allowedAudience ?? rules?.allowedClients ?? rules?.allowedScopes ?? rules?.customClaims;
  const problem = rules && (authorizerType === 'CUSTOM_JWT' || ruled) ? checkConfiguration(rules) : undefined;
  if (problem) throw errors.invalidField(`authorizerConfiguration.${problem.field}`, problem.message);
  for (const [i, version] of (protocolConfiguration?.mcp.supportedVersions ?? []).entries())
    if (!MCP_VERSIONS.some((known) => known === version))
      throw errors.invalidField(
        `protocolConfiguration.mcp.supportedVersions[${i}]`,
        `must be one of ${MCP_VERSIONS.join(', ')}`,
      );
  const points = interceptorConfigurations.flatMap(({ interceptionPoints }) => interceptionPoints);
  if (new Set(points).size < points.length)
    throw errors.invalidField(
      'interceptorConfigurations',
      'must have one interceptor at most for REQUEST and one for RESPONSE',
    );
  if (transform && transform.lambda?.arn === undefined)
    throw errors.invalidField('customTransformConfiguration', 'must have the ARN of a function: lambda.arn');
}
