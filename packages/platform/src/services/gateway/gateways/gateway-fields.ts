import type { control } from '@agentplatform/contract';
import type { FieldTable } from '../fields.ts';

const WITHOUT_POLICY = 'needs Policy, which is not built yet';
const PRIVATE = 'is not offered here; open the private range with --allow-private-egress instead';

/** Every field of CreateGateway and UpdateGateway: served, or why it is refused. */
export const GATEWAY_FIELDS: FieldTable<keyof control.CreateGatewayRequest | keyof control.UpdateGatewayRequest> = {
  gatewayIdentifier: 'served',
  name: 'served',
  description: 'served',
  clientToken: 'served',
  roleArn: 'served',
  protocolType: 'served',
  protocolConfiguration: 'served',
  'protocolConfiguration.mcp.supportedVersions': 'served',
  'protocolConfiguration.mcp.instructions': 'served',
  'protocolConfiguration.mcp.searchType': 'served',
  'protocolConfiguration.mcp.sessionConfiguration.sessionTimeoutInSeconds': 'served',
  'protocolConfiguration.mcp.streamingConfiguration.enableResponseStreaming': 'served',
  'protocolConfiguration.mcp.disableMcpListToolsPagination': 'served',
  authorizerType: 'served',
  authorizerConfiguration: 'served',
  'authorizerConfiguration.customJWTAuthorizer.discoveryUrl': 'served',
  'authorizerConfiguration.customJWTAuthorizer.allowedAudience': 'served',
  'authorizerConfiguration.customJWTAuthorizer.allowedClients': 'served',
  'authorizerConfiguration.customJWTAuthorizer.allowedScopes': 'served',
  'authorizerConfiguration.customJWTAuthorizer.advertisedScopeMapping': 'served',
  'authorizerConfiguration.customJWTAuthorizer.customClaims.inboundTokenClaimName': 'served',
  'authorizerConfiguration.customJWTAuthorizer.customClaims.inboundTokenClaimValueType': 'served',
  'authorizerConfiguration.customJWTAuthorizer.customClaims.authorizingClaimMatchValue.claimMatchValue.matchValueString':
    'served',
  'authorizerConfiguration.customJWTAuthorizer.customClaims.authorizingClaimMatchValue.claimMatchValue.matchValueStringList':
    'served',
  'authorizerConfiguration.customJWTAuthorizer.customClaims.authorizingClaimMatchValue.claimMatchOperator': 'served',
  'authorizerConfiguration.customJWTAuthorizer.certificateConfigurations.s3.uri': 'served',
  'authorizerConfiguration.customJWTAuthorizer.certificateConfigurations.s3.bucketOwnerAccountId': 'served',
  'authorizerConfiguration.customJWTAuthorizer.certificateConfigurations.secretsManager.secretArn': 'served',
  'authorizerConfiguration.customJWTAuthorizer.privateEndpoint': PRIVATE,
  'authorizerConfiguration.customJWTAuthorizer.privateEndpointOverrides': PRIVATE,
  'authorizerConfiguration.customJWTAuthorizer.allowedWorkloadConfiguration.hostingEnvironments.arn': 'served',
  'authorizerConfiguration.customJWTAuthorizer.allowedWorkloadConfiguration.workloadIdentities': 'served',
  kmsKeyArn: 'is not offered: what a gateway keeps has no secrets, and those of its providers are in the token vault',
  interceptorConfigurations: 'served',
  'interceptorConfigurations.interceptor.lambda.arn': 'served',
  'interceptorConfigurations.interceptionPoints': 'served',
  'interceptorConfigurations.inputConfiguration.passRequestHeaders': 'served',
  'interceptorConfigurations.inputConfiguration.payloadFilter.exclude.field': 'served',
  policyEngineConfiguration: WITHOUT_POLICY,
  exceptionLevel: 'served',
  tags: 'served',
  domainOverride: 'served',
  'domainOverride.defaultDomain': 'served',
  'domainOverride.alternateDomains': 'served',
  customTransformConfiguration: 'served',
  'customTransformConfiguration.lambda.arn': 'served',
  wafConfiguration: 'is not offered here: put a web application firewall before the platform',
};
