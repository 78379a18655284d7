import type { control } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import type { Target } from '../targets/target.ts';
import { checkRule } from './check-rule.ts';

/** As far as it is looked at. */
const target = (name: string, targetConfiguration: object): Target =>
  ({ name, live: { targetConfiguration } }) as unknown as Target;
const targets = [
  ...[target('tools', { mcp: {} }), target('api', { http: {} })],
  ...[target('one', { inference: {} }), target('two', { inference: {} })],
];
const check = (staticRoute: control.StaticRoute): void =>
  checkRule({ priority: 1, conditions: [], actions: [{ routeToTarget: { staticRoute } }] }, targets);
const to = (...names: string[]) => ({ targetFallback: names.map((targetName) => ({ targetName })) });

it.each<[control.StaticRoute, string]>([
  [{ targetName: 'none' }, 'there is no none'],
  [{ targetName: 'tools' }, 'one of MCP'],
  [{ targetName: 'api', model: 'm' }, 'inference alone'],
  [{ targetName: 'api', fallback: to('one') }, 'inference alone'],
  [{ targetName: 'one', fallback: to('api') }, 'inference alone'],
  [{ targetName: 'one', fallback: to('none') }, 'there is no none'],
  [{ targetName: 'one', fallback: to('two', 'two') }, 'once at most'],
  [{ targetName: 'one', fallback: to('one') }, 'once at most'],
])('%j is refused', (route, why) => {
  expect(() => check(route)).toThrow(why);
});

it.each<control.StaticRoute>([{ targetName: 'api' }, { targetName: 'one', model: 'm', fallback: to('one', 'two') }])(
  '%j is taken',
  (route) => {
    expect(() => check(route)).not.toThrow();
  },
);
