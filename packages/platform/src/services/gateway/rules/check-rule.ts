import { type control, errors } from '@agentplatform/contract';
import type { Target } from '../targets/target.ts';
import { definitionOf } from '../targets/target.ts';
import type { RuleData } from './rule.ts';

/** What the model's constraints do not say of a rule. Throws ValidationException. `targets`: of its gateway. */
export function checkRule({ conditions, actions }: RuleData, targets: readonly Target[]): void {
  const kinds = conditions.map((condition) => Object.keys(condition)[0]);
  if (new Set(kinds).size < kinds.length)
    throw errors.invalidField('conditions', 'must have one of each kind at most; list what may match in its anyOf');
  if (actions.length > 1) throw errors.invalidField('actions', 'must have one action of each kind at most');
  const [route] = actions.map(({ routeToTarget }) => routeToTarget);
  const at = 'actions[0].routeToTarget';
  if (route?.staticRoute) checkRoute(route.staticRoute, `${at}.staticRoute`, targets);
  const { trafficSplit = [] } = route?.weightedRoute ?? {};
  for (const [i, entry] of trafficSplit.entries()) checkRoute(entry, `${at}.weightedRoute.trafficSplit[${i}]`, targets);
  if (trafficSplit.length === 0) return;
  if (trafficSplit.reduce((sum, { weight }) => sum + weight, 0) !== 100)
    throw errors.invalidField(`${at}.weightedRoute.trafficSplit`, 'must have weights of 100 together');
  if (new Set(trafficSplit.map(({ name }) => name)).size < trafficSplit.length)
    throw errors.invalidField(`${at}.weightedRoute.trafficSplit`, 'must have names that differ');
}

function checkRoute(
  { targetName, model, fallback }: Pick<control.StaticRoute, 'targetName' | 'model' | 'fallback'>,
  at: string,
  targets: readonly Target[],
): void {
  const inference = checkTarget(targetName, `${at}.targetName`, targets);
  if (!inference && model !== undefined) throw errors.invalidField(`${at}.model`, ONLY_MODELS);
  if (!fallback) return;
  if (!inference) throw errors.invalidField(`${at}.fallback`, ONLY_MODELS);
  const steps = [{ targetName, model }, ...fallback.targetFallback];
  for (const [i, step] of fallback.targetFallback.entries()) {
    const field = `${at}.fallback.targetFallback[${i}].targetName`;
    if (!checkTarget(step.targetName, field, targets)) throw errors.invalidField(field, ONLY_MODELS);
  }
  if (new Set(steps.map((step) => JSON.stringify([step.targetName, step.model]))).size < steps.length)
    throw errors.invalidField(`${at}.fallback.targetFallback`, 'must have each target with each model once at most');
}

const ONLY_MODELS = 'is for targets of inference alone';

/** Whether it is one of inference. Throws ValidationException where no such target can be routed to. */
function checkTarget(name: string, field: string, targets: readonly Target[]): boolean {
  const target = targets.find((one) => one.name === name);
  if (!target) throw errors.invalidField(field, `must name a target of this gateway; there is no ${name}`);
  const { mcp, inference } = definitionOf(target).targetConfiguration;
  if (mcp) throw errors.invalidField(field, `must name a target of HTTP or of inference; ${name} is one of MCP`);
  return inference !== undefined;
}
