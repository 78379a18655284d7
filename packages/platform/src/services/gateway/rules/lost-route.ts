import type { TargetDefinition } from '../targets/target.ts';
import type { RuleData } from './rule.ts';

/** What a rule needs of a target that it routes to, to follow "must"; undefined where a target of that name and definition has it, or the rule does not name it. */
export function lostRoute(
  { actions }: Pick<RuleData, 'actions'>,
  name: string,
  { targetConfiguration: { mcp, inference } }: Pick<TargetDefinition, 'targetConfiguration'>,
): string | undefined {
  const routes = actions.flatMap(({ routeToTarget: route }) => [
    ...(route?.staticRoute ? [route.staticRoute] : []),
    ...(route?.weightedRoute?.trafficSplit ?? []),
  ]);
  const steps = routes.flatMap(({ targetName, model, fallback }) => [
    { targetName, models: model !== undefined || fallback !== undefined },
    ...(fallback?.targetFallback ?? []).map((step) => ({ targetName: step.targetName, models: true })),
  ]);
  const named = steps.filter(({ targetName }) => targetName === name);
  if (named.some(({ models }) => models)) return inference ? undefined : 'stay one of inference';
  return named.length > 0 && mcp ? 'stay one of HTTP or of inference' : undefined;
}
