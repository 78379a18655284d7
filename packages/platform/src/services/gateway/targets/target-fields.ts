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
  'targetConfiguration.mcp.openApiSchema': 'served',
  'targetConfiguration.mcp.smithyModel': 'served',
  'targetConfiguration.mcp.mcpServer.endpoint': 'served',
  'targetConfiguration.mcp.mcpServer.mcpToolSchema': 'served',
  'targetConfiguration.mcp.mcpServer.listingMode': 'served',
  'targetConfiguration.mcp.mcpServer.resourcePriority': 'served',
  'targetConfiguration.mcp.lambda': 'needs functions, which are not built yet',
  'targetConfiguration.mcp.apiGateway': 'is not built yet; give its exported document as openApiSchema',
  'targetConfiguration.mcp.connector': 'is not built yet',
  'targetConfiguration.http': TRAFFIC,
  'targetConfiguration.inference': TRAFFIC,
  credentialProviderConfigurations: 'served',
  metadataConfiguration: 'served',
  'metadataConfiguration.allowedRequestHeaders': 'served',
  'metadataConfiguration.allowedQueryParameters': 'served',
  'metadataConfiguration.allowedResponseHeaders': 'served',
  privateEndpoint: PRIVATE,
  certificateConfigurations: 'is not built yet',
};
