import type { control, Paginator } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { Gateways } from '../gateways/gateways.ts';
import type { Rule } from './rule.ts';
import type { Rules } from './rules.ts';

/** What this file serves. */
export const RULE_OPERATIONS = [
  'CreateGatewayRule',
  'GetGatewayRule',
  'UpdateGatewayRule',
  'ListGatewayRules',
  'DeleteGatewayRule',
] as const;
export type RuleOperation = (typeof RULE_OPERATIONS)[number];

export interface RuleOperationsDeps {
  gateways: Gateways;
  rules: Rules;
  paginator: Paginator;
}

const PAGE_SIZE = 100;

/** The operations on rules; policies see the gateway. */
export function ruleOperations({ gateways, rules, paginator }: RuleOperationsDeps): HandlersOf<RuleOperation> {
  type Named = { gatewayIdentifier: string };
  const resource = ({ gatewayIdentifier: id }: Named, { accountId }: RequestContext) => gateways.arnOf(accountId, id);
  const gatewayOf = ({ gatewayIdentifier: id }: Named, { accountId }: RequestContext) => gateways.get(accountId, id);
  return {
    CreateGatewayRule: {
      resource,
      handle: async (input, ctx) => view(await rules.create(await gatewayOf(input, ctx), input)),
    },
    GetGatewayRule: {
      resource,
      handle: async (input, ctx) => view(await rules.get(await gatewayOf(input, ctx), input.ruleId)),
    },
    UpdateGatewayRule: {
      resource,
      handle: async (input, ctx) => view(await rules.update(await gatewayOf(input, ctx), input)),
    },
    ListGatewayRules: {
      resource,
      async handle(input, ctx) {
        const gateway = await gatewayOf(input, ctx);
        const scope = { operation: 'ListGatewayRules', accountId: ctx.accountId, filter: gateway.id };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          rules.list(gateway, page),
        );
        return { gatewayRules: items.map(view), nextToken };
      },
    },
    DeleteGatewayRule: {
      resource,
      async handle(input, ctx) {
        const { ruleId } = input;
        await rules.delete(await gatewayOf(input, ctx), ruleId);
        return { ruleId, status: 'DELETING' };
      },
    },
  };
}

function view({ id: ruleId, gatewayArn, ...rule }: Rule): control.GatewayRuleDetail {
  const { priority, description, conditions, actions, createdAt, updatedAt } = rule;
  return {
    ...{ ruleId, gatewayArn, priority, conditions: [...conditions], actions: [...actions], status: 'ACTIVE' },
    ...(description !== undefined && { description }),
    ...{ createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) },
  };
}
