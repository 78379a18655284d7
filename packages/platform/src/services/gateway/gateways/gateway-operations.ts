import type { control, Paginator } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { Gateway } from './gateway.ts';
import type { Gateways } from './gateways.ts';

/** What this file serves. */
export type GatewayOperation = 'CreateGateway' | 'GetGateway' | 'UpdateGateway' | 'ListGateways' | 'DeleteGateway';

export interface GatewayOperationsDeps {
  gateways: Gateways;
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
      handle: async ({ gatewayIdentifier: id }, ctx) => view(await gateways.get(ctx.accountId, id), ctx),
    },
    UpdateGateway: { resource: one, handle: async (input, ctx) => view(await gateways.update(input, ctx), ctx) },
    ListGateways: {
      resource: every,
      async handle({ maxResults, nextToken }, { accountId }) {
        const scope = { operation: 'ListGateways', accountId } as const;
        const { items, next } = await gateways.list(accountId, {
          limit: maxResults ?? PAGE_SIZE,
          after: nextToken === undefined ? undefined : String(paginator.decode(scope, nextToken)),
        });
        return {
          items: items.map(summary),
          nextToken: next === undefined ? undefined : paginator.encode(scope, next),
        };
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
