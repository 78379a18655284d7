import type { BedrockAgentCoreControlClient, Condition } from '@aws-sdk/client-bedrock-agentcore-control';
import { adminJson, segment } from './admin.ts';
import type { Connection } from './connection.ts';

/** Where requests go, and who is asked when that fails. The SDK lacks models and fallbacks as yet. */
export interface RouteStep {
  targetName: string;
  /** What the target is asked for instead of what the client names. */
  model?: string;
  fallback?: {
    triggerOn?: { statusCodes?: string[]; errors?: string[] };
    firstByteTimeoutMilliseconds?: number;
    targetFallback: Pick<RouteStep, 'targetName' | 'model'>[];
  };
}

export type RouteCondition =
  | (Pick<Condition, 'matchPaths' | 'matchPrincipals'> & { matchModels?: undefined })
  | { matchModels: { anyOf: { value: string }[] }; matchPaths?: undefined; matchPrincipals?: undefined };

/** A rule, as the wire calls it. */
export interface RouteWish {
  priority: number;
  conditions: RouteCondition[];
  actions: {
    routeToTarget:
      | { staticRoute: RouteStep; weightedRoute?: undefined }
      | { weightedRoute: { trafficSplit: (RouteStep & { name: string; weight: number })[] }; staticRoute?: undefined };
  }[];
  description?: string;
}

export type Route = Partial<RouteWish> & { ruleId: string };

/** All routes of a gateway, in the order in which they are looked at. */
export async function listRoutes(connection: Connection, gatewayId: string, signal: AbortSignal): Promise<Route[]> {
  const found: Route[] = [];
  let nextToken: string | undefined;
  do {
    const query: Record<string, string> = nextToken === undefined ? {} : { nextToken };
    const page = await adminJson(connection, { wire: true, path: pathOf(gatewayId), query, signal });
    const { gatewayRules = [], ...next } = page as { gatewayRules?: Route[]; nextToken?: string };
    found.push(...gatewayRules);
    nextToken = next.nextToken;
  } while (nextToken !== undefined);
  return found.sort((a, b) => (a.priority ?? 0) - (b.priority ?? 0));
}

/** Rejects with a `CliError` where the platform refuses it. */
export async function addRoute(
  connection: Connection,
  gatewayId: string,
  body: RouteWish,
  signal: AbortSignal,
): Promise<Route> {
  const request = { wire: true, method: 'POST' as const, path: pathOf(gatewayId), body, signal };
  return (await adminJson(connection, request)) as Route;
}

/** Rejects with ResourceNotFoundException. */
export async function removeRoute(
  client: BedrockAgentCoreControlClient,
  gatewayIdentifier: string,
  ruleId: string,
): Promise<void> {
  const { DeleteGatewayRuleCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  await client.send(new DeleteGatewayRuleCommand({ gatewayIdentifier, ruleId }));
}

function pathOf(gatewayId: string): string {
  return `/gateways/${segment(gatewayId)}/rules`;
}
