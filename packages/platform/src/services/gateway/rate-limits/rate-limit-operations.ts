import type { control, Paginator } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { Gateways } from '../gateways/gateways.ts';
import type { RateLimit } from './rate-limit.ts';
import type { RateLimits } from './rate-limits.ts';

/** What this file serves. */
export const RATE_LIMIT_OPERATIONS = [
  'BatchPutGatewayRateLimits',
  'CreateGatewayRateLimit',
  'GetGatewayRateLimit',
  'UpdateGatewayRateLimit',
  'ListGatewayRateLimits',
  'DeleteGatewayRateLimit',
] as const;
export type RateLimitOperation = (typeof RATE_LIMIT_OPERATIONS)[number];

export interface RateLimitOperationsDeps {
  gateways: Gateways;
  limits: RateLimits;
  paginator: Paginator;
}

const PAGE_SIZE = 50;

/** The operations on rate limits; policies see the gateway. */
export function rateLimitOperations({
  gateways,
  limits,
  paginator,
}: RateLimitOperationsDeps): HandlersOf<RateLimitOperation> {
  type Named = { gatewayIdentifier: string };
  const resource = ({ gatewayIdentifier: id }: Named, { accountId }: RequestContext) => gateways.arnOf(accountId, id);
  const gatewayOf = ({ gatewayIdentifier: id }: Named, { accountId }: RequestContext) => gateways.get(accountId, id);
  return {
    BatchPutGatewayRateLimits: {
      resource,
      handle: async (input, ctx) => ({
        rateLimits: (await limits.put(await gatewayOf(input, ctx), input)).map((limit) => view(limit, input)),
      }),
    },
    CreateGatewayRateLimit: {
      resource,
      handle: async (input, ctx) => view(await limits.create(await gatewayOf(input, ctx), input), input),
    },
    GetGatewayRateLimit: {
      resource,
      handle: async (input, ctx) => view(await limits.get(await gatewayOf(input, ctx), input.rateLimitId), input),
    },
    UpdateGatewayRateLimit: {
      resource,
      handle: async (input, ctx) => view(await limits.update(await gatewayOf(input, ctx), input), input),
    },
    ListGatewayRateLimits: {
      resource,
      async handle(input, ctx) {
        const gateway = await gatewayOf(input, ctx);
        const scope = { operation: 'ListGatewayRateLimits', accountId: ctx.accountId, filter: gateway.id };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          limits.list(gateway, page),
        );
        return { rateLimits: items.map((limit) => view(limit, input)), nextToken };
      },
    },
    DeleteGatewayRateLimit: {
      resource,
      async handle(input, ctx) {
        const { rateLimitId } = input;
        await limits.delete(await gatewayOf(input, ctx), rateLimitId);
        return { rateLimitId, gatewayIdentifier: input.gatewayIdentifier, status: 'DELETING' };
      },
    },
  };
}

function view(
  { id: rateLimitId, description, dimensionKeys, entries, createdAt, updatedAt }: RateLimit,
  { gatewayIdentifier }: { gatewayIdentifier: string },
): control.GatewayRateLimitDetail {
  return {
    ...{ rateLimitId, gatewayIdentifier, dimensionKeys: [...dimensionKeys], entries: [...entries], status: 'ACTIVE' },
    ...(description !== undefined && { description }),
    ...{ createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) },
  };
}
