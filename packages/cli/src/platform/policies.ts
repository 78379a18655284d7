import { setTimeout as sleep } from 'node:timers/promises';
import type {
  BedrockAgentCoreControlClient,
  CreatePolicyRequest,
  GetGatewayResponse,
  GetPolicyResponse,
  PolicyEngine,
  PolicyGenerationAsset,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';
import { updateGateway } from './gateways.ts';

const ASK_EVERY_MS = 200;

/** The policy engine of that name or id; the only one when none is named. Rejects with a `CliError`: not there, or several. */
export async function findPolicyEngine(
  client: BedrockAgentCoreControlClient,
  wanted: string | undefined,
): Promise<PolicyEngine> {
  const { paginateListPolicyEngines } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const fitting: PolicyEngine[] = [];
  for await (const { policyEngines = [] } of paginateListPolicyEngines({ client }, {}))
    fitting.push(
      ...policyEngines.filter(
        ({ name, policyEngineId }) => wanted === undefined || name === wanted || policyEngineId === wanted,
      ),
    );
  const [only, other] = fitting;
  if (!only)
    throw new CliError(
      'notFound',
      wanted === undefined ? 'There is no policy engine yet.' : `There is no policy engine ${wanted}.`,
      'Make one: agentcore add policy-engine --name NAME',
    );
  if (other) throw new CliError('usage', 'There are several policy engines.', 'Name one: --engine NAME');
  return only;
}

/** Makes a policy engine. */
export async function addPolicyEngine(
  client: BedrockAgentCoreControlClient,
  wish: { name: string; description?: string | undefined },
): Promise<PolicyEngine> {
  const { CreatePolicyEngineCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const { $metadata: _, ...made } = await client.send(new CreatePolicyEngineCommand(wish));
  return made;
}

/** Attaches a gateway to a policy engine; all else of it stays as it is. */
export async function attachGateway(
  client: BedrockAgentCoreControlClient,
  gateway: GetGatewayResponse,
  policyEngineConfiguration: { arn: string; mode: 'LOG_ONLY' | 'ENFORCE' },
): Promise<void> {
  await updateGateway(client, { ...keptOf(gateway), policyEngineConfiguration });
}

/** What a gateway is, as a call that changes it says it: what it does not name would be gone. */
export function keptOf(gateway: GetGatewayResponse) {
  const { gatewayId: gatewayIdentifier, name, roleArn, protocolType, authorizerType, ...more } = gateway;
  const { description, protocolConfiguration, authorizerConfiguration, interceptorConfigurations } = more;
  const { exceptionLevel, policyEngineConfiguration } = more;
  // Newer than the SDK's types, which pass it on.
  const domainOverride: unknown = Reflect.get(gateway, 'domainOverride');
  return {
    ...{ gatewayIdentifier, name, roleArn, protocolType, authorizerType, description, protocolConfiguration },
    ...{ authorizerConfiguration, interceptorConfigurations, exceptionLevel, policyEngineConfiguration },
    ...(domainOverride !== undefined && { domainOverride }),
  };
}

/** Makes a policy and waits until it is checked. */
export async function addPolicy(
  client: BedrockAgentCoreControlClient,
  wish: CreatePolicyRequest,
  signal: AbortSignal,
): Promise<GetPolicyResponse> {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const { policyEngineId } = wish;
  const { policyId } = await client.send(new sdk.CreatePolicyCommand(wish), { abortSignal: signal });
  for (;;) {
    const command = new sdk.GetPolicyCommand({ policyEngineId, policyId });
    const { $metadata: _, ...policy } = await client.send(command, { abortSignal: signal });
    if (policy.status !== 'CREATING' && policy.status !== 'UPDATING') return policy;
    await sleep(ASK_EVERY_MS, undefined, { signal });
  }
}

/** Has policies made of a sentence and waits for them. Rejects with a `CliError` where none could be made. */
export async function generatePolicies(
  client: BedrockAgentCoreControlClient,
  wish: { policyEngineId: string; name: string; gatewayArn: string; sentence: string },
  signal: AbortSignal,
): Promise<{ policyGenerationId: string; assets: PolicyGenerationAsset[] }> {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const { policyEngineId, name, gatewayArn: arn, sentence: rawText } = wish;
  const started = await client.send(
    new sdk.StartPolicyGenerationCommand({ policyEngineId, name, resource: { arn }, content: { rawText } }),
    { abortSignal: signal },
  );
  const named = { policyEngineId, policyGenerationId: started.policyGenerationId };
  for (;;) {
    const found = await client.send(new sdk.GetPolicyGenerationCommand(named), { abortSignal: signal });
    if (found.status === 'GENERATED') break;
    if (found.status !== 'GENERATING')
      throw new CliError('failure', `No policies were made: ${found.statusReasons?.join('; ')}`);
    await sleep(ASK_EVERY_MS, undefined, { signal });
  }
  const assets: PolicyGenerationAsset[] = [];
  for await (const page of sdk.paginateListPolicyGenerationAssets({ client }, named))
    assets.push(...(page.policyGenerationAssets ?? []));
  return { policyGenerationId: named.policyGenerationId ?? '', assets };
}
