import { createHash } from 'node:crypto';
import type { control } from '@agentplatform/contract';
import type { OpenGateway } from '../gateway-tools.ts';
import { meets, type RoutedRequest } from './meets.ts';
import type { Rule } from './rule.ts';
import { sessionOf } from './stickiness.ts';

/** Where a request goes. */
export type Route = Pick<control.StaticRoute, 'targetName' | 'model' | 'fallback'>;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Sessions that are known without a target that says where they are. */
const USUAL_SESSIONS = ['x-amzn-bedrock-agentcore-runtime-session-id', 'mcp-session-id'];

/**
 * Where the first rule sends a request whose conditions it meets; undefined where none does. A weighted rule sends each session to one target, by
 * the hash of rule and session: every server finds the same without asking, for as long as the rule stays as it is. `random`: from 0 to 1.
 */
export function routeOf(
  { rules, targets }: Pick<OpenGateway, 'rules' | 'targets'>,
  request: RoutedRequest & { headers: Headers },
  random: () => number,
): Route | undefined {
  const rule = rules.find((one) => meets(request, one));
  const route = rule?.actions.find(({ routeToTarget }) => routeToTarget)?.routeToTarget;
  if (!rule || !route) return undefined;
  if (route.staticRoute) return route.staticRoute;
  const split = route.weightedRoute?.trafficSplit ?? [];
  const session = sessionIn(split, targets, request.headers);
  const drawn = 100 * (session === undefined ? random() : shareOf(rule, session));
  const [first, second] = split;
  return first && drawn < first.weight ? first : second;
}

function sessionIn(
  split: readonly control.TargetTrafficSplitEntry[],
  targets: OpenGateway['targets'],
  headers: Headers,
): string | undefined {
  const named = targets.filter(({ name }) => split.some(({ targetName }) => targetName === name));
  for (const { live } of named) {
    const { stickinessConfiguration } = live.targetConfiguration.http?.passthrough ?? {};
    const session = stickinessConfiguration && sessionOf(stickinessConfiguration, headers);
    if (session !== undefined) return session;
  }
  return USUAL_SESSIONS.map((name) => headers[name])
    .find((value) => typeof value === 'string')
    ?.toString();
}

/** From 0 to 1, the same for the same session. */
function shareOf({ gatewayArn, id }: Rule, session: string): number {
  const digest = createHash('sha256')
    .update(JSON.stringify([gatewayArn, id, session]))
    .digest();
  return digest.readUInt32BE(0) / 2 ** 32;
}
