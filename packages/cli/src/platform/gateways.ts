import { setTimeout as sleep } from 'node:timers/promises';
import type {
  BedrockAgentCoreControlClient,
  CreateGatewayRequest,
  CreateGatewayTargetRequest,
  GatewaySummary,
  GetGatewayResponse,
  GetGatewayTargetRequest,
  GetGatewayTargetResponse,
  UpdateGatewayRequest,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';

const ASK_EVERY_MS = 300;
/** While the platform makes tools of a document or asks a server for them. */
const UNDER_WAY = new Set(['CREATING', 'UPDATING', 'SYNCHRONIZING', 'CREATE_PENDING_AUTH', 'UPDATE_PENDING_AUTH']);

/** All gateways, in the order of their making. */
export async function listGateways(client: BedrockAgentCoreControlClient): Promise<GatewaySummary[]> {
  const { paginateListGateways } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const found: GatewaySummary[] = [];
  for await (const { items = [] } of paginateListGateways({ client }, {})) found.push(...items);
  return found;
}

/** The gateway of that name or id; the only one when none is named. Rejects with a `CliError`: not there, or several. */
export async function findGateway(
  client: BedrockAgentCoreControlClient,
  wanted: string | undefined,
): Promise<GetGatewayResponse> {
  const { GetGatewayCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const all = await listGateways(client);
  const fitting = all.filter(({ name, gatewayId }) => wanted === undefined || name === wanted || gatewayId === wanted);
  const [only, other] = fitting;
  if (!only)
    throw new CliError(
      'notFound',
      wanted === undefined ? 'There is no gateway yet.' : `There is no gateway ${wanted}.`,
      wanted === undefined ? 'Make one: agentcore add gateway NAME' : 'List them: agentcore gateway list',
    );
  if (other) throw new CliError('usage', 'There are several gateways.', 'Name one: --gateway NAME');
  return client.send(new GetGatewayCommand({ gatewayIdentifier: only.gatewayId }));
}

export async function addGateway(
  client: BedrockAgentCoreControlClient,
  wish: CreateGatewayRequest,
): Promise<GetGatewayResponse> {
  const { CreateGatewayCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const { $metadata: _, ...made } = await client.send(new CreateGatewayCommand(wish));
  return made;
}

/** Replaces what a gateway is. */
export async function updateGateway(
  client: BedrockAgentCoreControlClient,
  wish: UpdateGatewayRequest,
): Promise<GetGatewayResponse> {
  const { UpdateGatewayCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const { $metadata: _, ...updated } = await client.send(new UpdateGatewayCommand(wish));
  return updated;
}

/** Adds a target and waits until its tools are made, or could not be: its status says which. `onLink` is told where a person has to consent first. */
export async function addTarget(
  client: BedrockAgentCoreControlClient,
  wish: CreateGatewayTargetRequest,
  { signal, onLink }: { signal: AbortSignal; onLink?: (url: string) => void },
): Promise<GetGatewayTargetResponse> {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const { gatewayIdentifier } = wish;
  const made = await client.send(new sdk.CreateGatewayTargetCommand(wish), { abortSignal: signal });
  const { targetId, authorizationData } = made;
  const link = authorizationData?.oauth2?.authorizationUrl;
  if (link !== undefined) onLink?.(link);
  return settledTarget(client, { gatewayIdentifier, targetId }, signal);
}

/** The target once its tools are made, or could not be: its status says which. */
async function settledTarget(
  client: BedrockAgentCoreControlClient,
  which: GetGatewayTargetRequest,
  signal: AbortSignal,
): Promise<GetGatewayTargetResponse> {
  const { GetGatewayTargetCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  for (;;) {
    const { $metadata: _, ...target } = await client.send(new GetGatewayTargetCommand(which), { abortSignal: signal });
    if (!UNDER_WAY.has(target.status ?? '')) return target;
    await sleep(ASK_EVERY_MS, undefined, { signal });
  }
}

/** Has MCP servers asked anew for what they offer, and waits until that is stored. Rejects with a `CliError` where there is none to ask. */
export async function synchronizeTargets(
  client: BedrockAgentCoreControlClient,
  { gatewayIdentifier, target }: { gatewayIdentifier: string; target: string | undefined },
  signal: AbortSignal,
): Promise<GetGatewayTargetResponse[]> {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const servers = (await listTargets(client, gatewayIdentifier)).filter(
    ({ name, targetId, targetType, listingMode }) =>
      target === undefined
        ? targetType === 'MCP_SERVER' && listingMode !== 'DYNAMIC'
        : name === target || targetId === target,
  );
  if (servers.length === 0)
    throw new CliError(
      'notFound',
      target === undefined ? 'The gateway has no MCP server to ask.' : `The gateway has no target ${target}.`,
      'List them: agentcore gateway show',
    );
  const settled: GetGatewayTargetResponse[] = [];
  for (const { targetId = '' } of servers) {
    await client.send(new sdk.SynchronizeGatewayTargetsCommand({ gatewayIdentifier, targetIdList: [targetId] }));
    settled.push(await settledTarget(client, { gatewayIdentifier, targetId }, signal));
  }
  return settled;
}

/** The targets of a gateway, each with all that is to be said of it. */
export async function showTargets(
  client: BedrockAgentCoreControlClient,
  gatewayIdentifier: string,
): Promise<GetGatewayTargetResponse[]> {
  const { GetGatewayTargetCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const shown: GetGatewayTargetResponse[] = [];
  for (const { targetId } of await listTargets(client, gatewayIdentifier)) {
    const { $metadata: _, ...target } = await client.send(new GetGatewayTargetCommand({ gatewayIdentifier, targetId }));
    shown.push(target);
  }
  return shown;
}

/** The targets of a gateway. */
export async function listTargets(client: BedrockAgentCoreControlClient, gatewayIdentifier: string) {
  const { paginateListGatewayTargets } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const found = [];
  for await (const { items = [] } of paginateListGatewayTargets({ client }, { gatewayIdentifier }))
    found.push(...items);
  return found;
}

/** Removes a target, or the whole gateway with its targets. Rejects with a `CliError` where there is no such target. */
export async function removeFromGateway(
  client: BedrockAgentCoreControlClient,
  gatewayIdentifier: string,
  target: string | undefined,
): Promise<void> {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const all = await listTargets(client, gatewayIdentifier);
  const fitting = all.filter(({ name, targetId }) => target === undefined || name === target || targetId === target);
  if (target !== undefined && fitting.length === 0)
    throw new CliError('notFound', `The gateway has no target ${target}.`, 'List them: agentcore gateway show');
  for (const { targetId } of fitting)
    await client.send(new sdk.DeleteGatewayTargetCommand({ gatewayIdentifier, targetId }));
  if (target === undefined) await client.send(new sdk.DeleteGatewayCommand({ gatewayIdentifier }));
}
