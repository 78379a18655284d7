import type { control } from '@agentplatform/contract';
import type { FieldTable } from '../fields.ts';

const TRAFFIC = 'is not built yet: targets of MCP are served';
const PRIVATE = 'is not offered here; open the private range with --allow-private-egress instead';

/** Every field of CreateGatewayTarget and UpdateGatewayTarget: served, or why it is refused. */
export const TARGET_FIELDS: FieldTable<
  keyof control.CreateGatewayTargetRequest | keyof control.UpdateGatewayTargetRequest
> = {
  gatewayIdentifier: 'served',
  targetId: 'served',
  name: 'served',
  description: 'served',
  clientToken: 'served',
  targetConfiguration: 'served',
  'targetConfiguration.mcp.openApiSchema.s3.uri': 'served',
  'targetConfiguration.mcp.openApiSchema.s3.bucketOwnerAccountId': 'served',
  'targetConfiguration.mcp.openApiSchema.inlinePayload': 'served',
  'targetConfiguration.mcp.smithyModel.s3.uri': 'served',
  'targetConfiguration.mcp.smithyModel.s3.bucketOwnerAccountId': 'served',
  'targetConfiguration.mcp.smithyModel.inlinePayload': 'served',
  'targetConfiguration.mcp.mcpServer.endpoint': 'served',
  'targetConfiguration.mcp.mcpServer.mcpToolSchema.s3.uri': 'served',
  'targetConfiguration.mcp.mcpServer.mcpToolSchema.s3.bucketOwnerAccountId': 'served',
  'targetConfiguration.mcp.mcpServer.mcpToolSchema.inlinePayload': 'served',
  'targetConfiguration.mcp.mcpServer.listingMode': 'served',
  'targetConfiguration.mcp.mcpServer.resourcePriority': 'served',
  'targetConfiguration.mcp.lambda': 'served',
  'targetConfiguration.mcp.apiGateway': 'is not built yet; give its exported document as openApiSchema',
  'targetConfiguration.mcp.connector': 'is not built yet',
  'targetConfiguration.http': TRAFFIC,
  'targetConfiguration.inference': TRAFFIC,
  credentialProviderConfigurations: 'served',
  'credentialProviderConfigurations.credentialProviderType': 'served',
  'credentialProviderConfigurations.credentialProvider.oauthCredentialProvider.providerArn': 'served',
  'credentialProviderConfigurations.credentialProvider.oauthCredentialProvider.scopes': 'served',
  'credentialProviderConfigurations.credentialProvider.oauthCredentialProvider.customParameters': 'served',
  'credentialProviderConfigurations.credentialProvider.oauthCredentialProvider.grantType': 'served',
  'credentialProviderConfigurations.credentialProvider.oauthCredentialProvider.defaultReturnUrl': 'served',
  'credentialProviderConfigurations.credentialProvider.apiKeyCredentialProvider.providerArn': 'served',
  'credentialProviderConfigurations.credentialProvider.apiKeyCredentialProvider.credentialParameterName': 'served',
  'credentialProviderConfigurations.credentialProvider.apiKeyCredentialProvider.credentialPrefix': 'served',
  'credentialProviderConfigurations.credentialProvider.apiKeyCredentialProvider.credentialLocation': 'served',
  'credentialProviderConfigurations.credentialProvider.iamCredentialProvider': 'is not built yet',
  metadataConfiguration: 'served',
  'metadataConfiguration.allowedRequestHeaders': 'served',
  'metadataConfiguration.allowedQueryParameters': 'served',
  'metadataConfiguration.allowedResponseHeaders': 'served',
  privateEndpoint: PRIVATE,
  certificateConfigurations: 'is not built yet',
};
