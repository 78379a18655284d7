import type { control, Paginator } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { ToolVectors } from '../search/index.ts';
import { type Gateway, searches } from './gateway.ts';
import type { Gateways } from './gateways.ts';

/** What this file serves. */
export const GATEWAY_OPERATIONS = [
  'CreateGateway',
  'GetGateway',
  'UpdateGateway',
  'ListGateways',
  'DeleteGateway',
] as const;
export type GatewayOperation = (typeof GATEWAY_OPERATIONS)[number];

export interface GatewayOperationsDeps {
  gateways: Gateways;
  vectors: Pick<ToolVectors, 'shortcoming' | 'wake'>;
  paginator: Paginator;
  /** Where MCP clients reach a gateway. */
  gatewayUrl(gateway: Gateway, ctx: RequestContext): string;
  /** ARN of the workload identity of that name. */
  workloadArn(accountId: string, name: string): string;
}

const PAGE_SIZE = 100;

/** The operations on gateways. */
export function gatewayOperations({
  gateways,
  vectors,
  paginator,
  gatewayUrl,
  workloadArn,
}: GatewayOperationsDeps): HandlersOf<GatewayOperation> {
  const every = (_: unknown, { accountId }: RequestContext): string => gateways.arnOf(accountId, '*');
  const one = ({ gatewayIdentifier: id }: { gatewayIdentifier: string }, { accountId }: RequestContext) =>
    gateways.arnOf(accountId, id);
  const view = (gateway: Gateway, ctx: RequestContext): control.GetGatewayResponse => ({
    ...{ gatewayArn: gateway.arn, gatewayId: gateway.id, gatewayUrl: gatewayUrl(gateway, ctx) },
    ...{ name: gateway.name, status: 'READY', ...gateway.definition },
    workloadIdentityDetails: { workloadIdentityArn: workloadArn(gateway.accountId, gateway.id) },
    ...{ createdAt: new Date(gateway.createdAt), updatedAt: new Date(gateway.updatedAt) },
  });
  return {
    CreateGateway: { resource: every, handle: async (input, ctx) => view(await gateways.create(input, ctx), ctx) },
    GetGateway: {
      resource: one,
      async handle({ gatewayIdentifier: id }, ctx) {
        const gateway = await gateways.get(ctx.accountId, id);
        const shortcoming = searches(gateway) ? await vectors.shortcoming(gateway) : undefined;
        return {
          ...view(gateway, ctx),
          ...(shortcoming !== undefined && {
            statusReasons: [`Search goes by words, not by meaning: ${shortcoming}.`],
          }),
        };
      },
    },
    UpdateGateway: {
      resource: one,
      async handle(input, ctx) {
        const updated = await gateways.update(input, ctx);
        // It may have search now.
        vectors.wake();
        return view(updated, ctx);
      },
    },
    ListGateways: {
      resource: every,
      async handle(input, { accountId }) {
        const scope = { operation: 'ListGateways', accountId };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          gateways.list(accountId, page),
        );
        return { items: items.map(summary), nextToken };
      },
    },
    DeleteGateway: {
      resource: one,
      async handle({ gatewayIdentifier: id }, { accountId }) {
        await gateways.delete(accountId, id);
        return { gatewayId: id, status: 'DELETING' };
      },
    },
  };
}

function summary({ id, name, definition, createdAt, updatedAt }: Gateway): control.GatewaySummary {
  const { description, authorizerType, protocolType } = definition;
  return {
    ...{ gatewayId: id, name, status: 'READY', description, authorizerType, protocolType },
    ...{ createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) },
  };
}
