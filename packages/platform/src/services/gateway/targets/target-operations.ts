import type { control, Paginator } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { Gateways } from '../gateways/gateways.ts';
import { awaitsConsent, definitionOf, type Target } from './target.ts';
import { kindOf, type TargetKinds } from './target-kinds.ts';
import type { Targets } from './targets.ts';

/** What this file serves. */
export const TARGET_OPERATIONS = [
  'CreateGatewayTarget',
  'GetGatewayTarget',
  'UpdateGatewayTarget',
  'ListGatewayTargets',
  'DeleteGatewayTarget',
  'SynchronizeGatewayTargets',
] as const;
export type TargetOperation = (typeof TARGET_OPERATIONS)[number];

export interface TargetOperationsDeps {
  gateways: Gateways;
  targets: Targets;
  kinds: TargetKinds;
  paginator: Paginator;
}

const PAGE_SIZE = 100;

/** The operations on targets; policies see the gateway. */
export function targetOperations({
  gateways,
  targets,
  kinds,
  paginator,
}: TargetOperationsDeps): HandlersOf<TargetOperation> {
  const resource = ({ gatewayIdentifier: id }: { gatewayIdentifier: string }, { accountId }: RequestContext) =>
    gateways.arnOf(accountId, id);
  return {
    CreateGatewayTarget: {
      resource,
      handle: async (input, ctx) =>
        view(await targets.create(await gateways.get(ctx.accountId, input.gatewayIdentifier), input, ctx)),
    },
    GetGatewayTarget: {
      resource,
      handle: async ({ gatewayIdentifier, targetId }, { accountId }) =>
        view(await targets.get(await gateways.get(accountId, gatewayIdentifier), targetId)),
    },
    UpdateGatewayTarget: {
      resource,
      handle: async (input, ctx) =>
        view(await targets.update(await gateways.get(ctx.accountId, input.gatewayIdentifier), input, ctx)),
    },
    ListGatewayTargets: {
      resource,
      async handle(input, { accountId }) {
        const gateway = await gateways.get(accountId, input.gatewayIdentifier);
        const scope = { operation: 'ListGatewayTargets', accountId, filter: gateway.id };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          targets.list(gateway, page),
        );
        return { items: items.map((target) => summary(target, kinds)), nextToken };
      },
    },
    DeleteGatewayTarget: {
      resource,
      async handle({ gatewayIdentifier, targetId }, { accountId }) {
        const { gatewayArn } = await targets.delete(await gateways.get(accountId, gatewayIdentifier), targetId);
        return { gatewayArn, targetId, status: 'DELETING' };
      },
    },
    SynchronizeGatewayTargets: {
      resource,
      async handle({ gatewayIdentifier, targetIdList }, { accountId, signal }) {
        const gateway = await gateways.get(accountId, gatewayIdentifier);
        const changed: Target[] = [];
        for (const id of targetIdList) changed.push(await targets.synchronize(gateway, id, signal));
        return { targets: changed.map(view) };
      },
    },
  };
}

function view(target: Target): control.GetGatewayTargetResponse {
  const { gatewayArn, id: targetId, name, status, statusReasons, synchronizedAt, createdAt, updatedAt } = target;
  const { credentialProviderConfigurations, certificateAuthority: _, given: __, ...definition } = definitionOf(target);
  return {
    ...{ gatewayArn, targetId, name, status, ...definition, credentialProviderConfigurations },
    protocolType: definition.targetConfiguration.mcp ? 'MCP' : 'HTTP',
    ...(statusReasons.length > 0 && { statusReasons }),
    ...authorizationOf(target),
    ...(synchronizedAt !== undefined && { lastSynchronizedAt: new Date(synchronizedAt) }),
    ...{ createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) },
  };
}

/** The address at which a person consents, while the consent is awaited. */
function authorizationOf(target: Target): Pick<control.GetGatewayTargetResponse, 'authorizationData'> {
  const { consent } = target;
  if (!awaitsConsent(target) || consent?.url === undefined) return {};
  return { authorizationData: { oauth2: { authorizationUrl: consent.url, userId: consent.userId } } };
}

function summary(target: Target, kinds: TargetKinds): control.TargetSummary {
  const { id: targetId, name, status, synchronizedAt, createdAt, updatedAt } = target;
  const definition = definitionOf(target);
  const { listingMode } = definition.targetConfiguration.mcp?.mcpServer ?? {};
  return {
    ...{ targetId, name, status, description: definition.description, targetType: kindOf(definition, kinds).type },
    ...(listingMode !== undefined && { listingMode }),
    ...(synchronizedAt !== undefined && { lastSynchronizedAt: new Date(synchronizedAt) }),
    ...{ createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) },
  };
}
