import type {
  BedrockAgentCoreControlClient,
  GatewayRateLimitDetail,
  LimitEntry,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';

/** One entry of a rate limit that is to be. */
export interface RateLimitWish {
  gatewayIdentifier: string;
  rateLimitId: string;
  dimensionKeys: string[];
  entry: LimitEntry;
  description: string | undefined;
}

/** All rate limits of a gateway, in the order of their making. */
export async function listRateLimits(
  client: BedrockAgentCoreControlClient,
  gatewayIdentifier: string,
): Promise<GatewayRateLimitDetail[]> {
  const { paginateListGatewayRateLimits } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const found: GatewayRateLimitDetail[] = [];
  for await (const { rateLimits = [] } of paginateListGatewayRateLimits({ client }, { gatewayIdentifier }))
    found.push(...rateLimits);
  return found;
}

/** Makes a rate limit with that entry; where there is one of that name, the entry joins it, or takes the place of that for the same values. */
export async function addRateLimit(
  client: BedrockAgentCoreControlClient,
  { gatewayIdentifier, rateLimitId, dimensionKeys, entry, description }: RateLimitWish,
): Promise<GatewayRateLimitDetail> {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const before = (await listRateLimits(client, gatewayIdentifier)).find((limit) => limit.rateLimitId === rateLimitId);
  const named = { gatewayIdentifier, rateLimitId, ...(description !== undefined && { description }) };
  if (!before) {
    const made = await client.send(
      new sdk.CreateGatewayRateLimitCommand({ ...named, dimensionKeys, entries: [entry] }),
    );
    return withoutMetadata(made);
  }
  if (before.dimensionKeys?.join() !== dimensionKeys.join())
    throw new CliError(
      'usage',
      `The limit ${rateLimitId} counts by ${before.dimensionKeys?.join(', ')}.`,
      'Give the new one another name.',
    );
  const key = ({ dimensions }: LimitEntry): string => JSON.stringify(dimensionKeys.map((name) => dimensions?.[name]));
  const others = (before.entries ?? []).filter((one) => key(one) !== key(entry));
  return withoutMetadata(
    await client.send(new sdk.UpdateGatewayRateLimitCommand({ ...named, entries: [...others, entry] })),
  );
}

/** Rejects with ResourceNotFoundException. */
export async function removeRateLimit(
  client: BedrockAgentCoreControlClient,
  gatewayIdentifier: string,
  rateLimitId: string,
): Promise<void> {
  const { DeleteGatewayRateLimitCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  await client.send(new DeleteGatewayRateLimitCommand({ gatewayIdentifier, rateLimitId }));
}

function withoutMetadata<Answer extends { $metadata: unknown }>({ $metadata: _, ...answer }: Answer) {
  return answer;
}
