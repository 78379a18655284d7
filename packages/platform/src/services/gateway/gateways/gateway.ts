import type { control } from '@agentplatform/contract';

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
>;

/** What is kept of a gateway beside its names. */
export interface GatewayData {
  definition: GatewayDefinition;
  /** PEM of the authority of the identity provider's certificates, as it was when it was named; absent without one. */
  certificateAuthority?: string | undefined;
}

/** One MCP server made of targets (spec: Gateway). */
export interface Gateway extends GatewayData {
  arn: string;
  accountId: string;
  /** Unique everywhere; part of its address. */
  id: string;
  name: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

/** The versions of MCP that are spoken, newest first. */
export const MCP_VERSIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'] as const;

/** Below it the gateways have their addresses. */
export const GATEWAYS_PATH = '/gateways';

/** Path of the MCP endpoint of a gateway. */
export function mcpPath(gatewayId: string): string {
  return `${GATEWAYS_PATH}/${gatewayId}/mcp`;
}

/** The versions of MCP that a gateway speaks. */
export function versionsOf({ definition: { protocolConfiguration } }: Pick<Gateway, 'definition'>): readonly string[] {
  return protocolConfiguration?.mcp.supportedVersions ?? MCP_VERSIONS;
}

/** Whether a gateway has the tool that finds tools. */
export function searches({ definition: { protocolConfiguration } }: Pick<Gateway, 'definition'>): boolean {
  return protocolConfiguration?.mcp.searchType === 'SEMANTIC';
}
