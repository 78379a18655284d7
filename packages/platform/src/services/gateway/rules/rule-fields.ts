import type { control } from '@agentplatform/contract';
import type { FieldTable } from '../../../kernel/served-fields.ts';

/** Every field of the operations that write rules: served, or why it is refused. */
export const RULE_FIELDS: FieldTable<keyof control.CreateGatewayRuleRequest | keyof control.UpdateGatewayRuleRequest> =
  {
    gatewayIdentifier: 'served',
    clientToken: 'served',
    ruleId: 'served',
    priority: 'served',
    description: 'served',
    conditions: 'served',
    'conditions.matchPrincipals.anyOf.iamPrincipal.arn': 'served',
    'conditions.matchPrincipals.anyOf.iamPrincipal.operator': 'served',
    'conditions.matchPaths.anyOf': 'served',
    'conditions.matchModels.anyOf.value': 'served',
    'conditions.matchModels.anyOf.operator': 'served',
    actions: 'served',
    'actions.configurationBundle': 'needs configuration bundles, which are not built yet',
    'actions.routeToTarget.staticRoute.targetName': 'served',
    'actions.routeToTarget.staticRoute.model': 'served',
    ...fallbackOf('actions.routeToTarget.staticRoute'),
    'actions.routeToTarget.weightedRoute.trafficSplit.name': 'served',
    'actions.routeToTarget.weightedRoute.trafficSplit.weight': 'served',
    'actions.routeToTarget.weightedRoute.trafficSplit.description': 'served',
    'actions.routeToTarget.weightedRoute.trafficSplit.metadata': 'served',
    'actions.routeToTarget.weightedRoute.trafficSplit.targetName': 'served',
    'actions.routeToTarget.weightedRoute.trafficSplit.model': 'served',
    ...fallbackOf('actions.routeToTarget.weightedRoute.trafficSplit'),
  };

function fallbackOf(route: string): Record<string, string> {
  const fields = [
    ...['triggerOn.statusCodes', 'triggerOn.errors', 'firstByteTimeoutMilliseconds', 'circuitBreaker.mode'],
    ...['targetFallback.targetName', 'targetFallback.model', 'targetFallback.firstByteTimeoutMilliseconds'],
    ...['targetFallback.triggerOn.statusCodes', 'targetFallback.triggerOn.errors'],
  ];
  return Object.fromEntries(fields.map((field) => [`${route}.fallback.${field}`, 'served']));
}
