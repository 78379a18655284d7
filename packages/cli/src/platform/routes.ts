import type { BedrockAgentCoreControlClient, GatewayRuleDetail } from '@aws-sdk/client-bedrock-agentcore-control';

/** All routes of a gateway, in the order in which they are looked at: its rules, as the wire calls them. */
export async function listRoutes(
  client: BedrockAgentCoreControlClient,
  gatewayIdentifier: string,
): Promise<GatewayRuleDetail[]> {
  const { paginateListGatewayRules } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const found: GatewayRuleDetail[] = [];
  for await (const { gatewayRules = [] } of paginateListGatewayRules({ client }, { gatewayIdentifier }))
    found.push(...gatewayRules);
  return found.sort((a, b) => (a.priority ?? 0) - (b.priority ?? 0));
}

/** Rejects with ResourceNotFoundException. */
export async function removeRoute(
  client: BedrockAgentCoreControlClient,
  gatewayIdentifier: string,
  ruleId: string,
): Promise<void> {
  const { DeleteGatewayRuleCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  await client.send(new DeleteGatewayRuleCommand({ gatewayIdentifier, ruleId }));
}
