import type { control } from '@agentplatform/contract';
import { object, stored, text, wire } from '../../../kernel/stored-shape.ts';

/** In the table `resources`. */
export const GATEWAY_KIND = 'gateway';

/** The members of a create or update call that are kept, and given back as they came. */
export type GatewayDefinition = Pick<
  control.CreateGatewayRequest,
  | 'description'
  | 'roleArn'
  | 'protocolType'
  | 'protocolConfiguration'
  | 'authorizerType'
  | 'authorizerConfiguration'
  | 'exceptionLevel'
  | 'interceptorConfigurations'
  | 'domainOverride'
  | 'policyEngineConfiguration'
> &
  Pick<control.UpdateGatewayRequest, 'customTransformConfiguration'>;

/** What is kept of a gateway beside its names. */
export interface GatewayData {
  definition: GatewayDefinition;
  /** PEM of the authority of the identity provider's certificates, as it was when it was named; absent without one. */
  certificateAuthority?: string | undefined;
}

export const storedGateway = stored<GatewayData>(
  object({ definition: wire<GatewayDefinition>() }, { certificateAuthority: text }),
);

/** One MCP server made of targets (spec: Gateway). */
export interface Gateway extends GatewayData {
  arn: string;
  accountId: string;
  /** Unique everywhere; part of its address. */
  id: string;
  name: string;
  /** Whether its owner closes what no policy is about, by a tag. */
  closed?: boolean | undefined;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

/** The versions of MCP that are spoken, newest first. */
export const MCP_VERSIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'] as const;

/** Below it the gateways have their addresses. */
export const GATEWAYS_PATH = '/gateways';

/** Path of a gateway: below it are its MCP endpoint and its targets of HTTP. */
export function gatewayPath(gatewayId: string): string {
  return `${GATEWAYS_PATH}/${gatewayId}`;
}

/** Path of the MCP endpoint of a gateway. */
export function mcpPath(gatewayId: string): string {
  return `${gatewayPath(gatewayId)}/mcp`;
}

/** The domains of a gateway besides the platform's own address, in lower case. The default domain is first. */
export function domainsOf({ definition: { domainOverride } }: Pick<Gateway, 'definition'>): string[] {
  if (!domainOverride) return [];
  const { defaultDomain, alternateDomains = [] } = domainOverride;
  return [defaultDomain, ...alternateDomains].map((domain) => domain.toLowerCase());
}

/** Where a gateway is for who reaches it by that `Host`: at a domain of its own, which has TLS before it, else at the platform's address. */
export function originAt(gateway: Pick<Gateway, 'definition'>, host = '', platform: string): string {
  const name = host.toLowerCase().replace(/:443$/, '');
  return domainsOf(gateway).includes(name) ? `https://${name}` : platform;
}

/** The versions of MCP that a gateway speaks. */
export function versionsOf({ definition: { protocolConfiguration } }: Pick<Gateway, 'definition'>): readonly string[] {
  return protocolConfiguration?.mcp.supportedVersions ?? MCP_VERSIONS;
}

/** By this tag an owner closes prompts and resources where policies are enforced: no policy is about them. */
export const CLOSED_TAG = 'agentplatform:prompts-and-resources';

/** Whether policies are enforced, and prompts and resources, which no policy is about, are closed. */
export function closesUnruled({ definition, closed }: Pick<Gateway, 'definition' | 'closed'>): boolean {
  return closed === true && definition.policyEngineConfiguration?.mode === 'ENFORCE';
}

/** Whether a gateway has the tool that finds tools. */
export function searches({ definition: { protocolConfiguration } }: Pick<Gateway, 'definition'>): boolean {
  return protocolConfiguration?.mcp.searchType === 'SEMANTIC';
}

/** Whether answers may be streams, on which progress is told before the result. What an interceptor is to see first is whole. */
export function streams(gateway: Pick<Gateway, 'definition'>): boolean {
  const { streamingConfiguration } = gateway.definition.protocolConfiguration?.mcp ?? {};
  return (streamingConfiguration?.enableResponseStreaming ?? true) && interceptorsAt(gateway, 'RESPONSE').length === 0;
}

/**
 * What messages of a gateway go through at that point, in this order: its interceptor, of which it has one at most, and next to the targets the function
 * of its custom transformation, which is asked as an interceptor of both points.
 */
export function interceptorsAt(
  { definition }: Pick<Gateway, 'definition'>,
  point: control.GatewayInterceptionPoint,
): control.GatewayInterceptorConfiguration[] {
  const { interceptorConfigurations = [], customTransformConfiguration: transform } = definition;
  const found = interceptorConfigurations.filter(({ interceptionPoints }) => interceptionPoints.includes(point));
  if (transform?.lambda)
    found.push({ interceptor: { lambda: { arn: transform.lambda.arn ?? '' } }, interceptionPoints: [point] });
  return point === 'REQUEST' ? found : found.reverse();
}

/** By which field a gateway has functions that see its messages; undefined where it has none. */
export function interceptedBy({
  interceptorConfigurations = [],
  customTransformConfiguration,
}: GatewayDefinition): 'interceptorConfigurations' | 'customTransformConfiguration' | undefined {
  if (interceptorConfigurations.length > 0) return 'interceptorConfigurations';
  return customTransformConfiguration?.lambda && 'customTransformConfiguration';
}

/** Whether clients of the older versions have sessions: where the owner has asked for them, as with the original. */
export function hasSessions({ definition: { protocolConfiguration } }: Pick<Gateway, 'definition'>): boolean {
  return protocolConfiguration?.mcp.sessionConfiguration !== undefined;
}

/** As the original has it where the owner does not say. */
const SESSION_TIMEOUT_SECONDS = 3_600;

/** How long a session lasts, from its beginning, whatever is done in it. */
export function sessionTimeoutMs({ definition: { protocolConfiguration } }: Pick<Gateway, 'definition'>): number {
  const { sessionTimeoutInSeconds = SESSION_TIMEOUT_SECONDS } = protocolConfiguration?.mcp.sessionConfiguration ?? {};
  return sessionTimeoutInSeconds * 1000;
}
