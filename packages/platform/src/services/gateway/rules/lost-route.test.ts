import type { control } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import type { TargetDefinition } from '../targets/target.ts';
import { lostRoute } from './lost-route.ts';

type Route = control.StaticRoute;
const lost = (routeToTarget: control.RouteToTargetAction, configuration: object): string | undefined =>
  lostRoute({ actions: [{ routeToTarget }] }, 'a', {
    targetConfiguration: configuration as TargetDefinition['targetConfiguration'],
  });
const [mcp, http, inference] = [{ mcp: {} }, { http: {} }, { inference: {} }];
const halves = (...names: string[]) => ({
  weightedRoute: { trafficSplit: names.map((targetName) => ({ targetName, name: targetName, weight: 50 })) },
});
const fallback = { targetFallback: [{ targetName: 'b' }] };

it.each<[Route, object]>([
  [{ targetName: 'a' }, mcp],
  [{ targetName: 'a', model: 'm' }, http],
  [{ targetName: 'a', fallback }, http],
  [{ targetName: 'b', fallback: { targetFallback: [{ targetName: 'a' }] } }, http],
])('%j needs more of the target than %j', (staticRoute, configuration) => {
  expect(lost({ staticRoute }, configuration)).toContain('inference');
});

it.each<[Route, object]>([
  [{ targetName: 'a' }, http],
  [{ targetName: 'a' }, inference],
  [{ targetName: 'b' }, mcp],
  [{ targetName: 'a', model: 'm', fallback }, inference],
])('%j goes on with %j', (staticRoute, configuration) => {
  expect(lost({ staticRoute }, configuration)).toBeUndefined();
});

it('a split counts for each of its targets', () => {
  expect(lost(halves('b', 'a'), mcp)).toContain('HTTP');
  expect(lost(halves('b', 'c'), mcp)).toBeUndefined();
  expect(lost(halves('b', 'a'), http)).toBeUndefined();
});
