import { type HealthCheck, optionalPingHealth, pingHealth } from '../../kernel/sessions/index.ts';
import type { Protocol, RuntimeVersion } from './runtime.ts';

export interface ProtocolRoute {
  /** Port that the container listens on. */
  port: number;
  /** Path that an invocation is posted to. */
  path: string;
  /** How it says that it lives: MCP and A2A know no `/ping`. */
  health: HealthCheck;
}

/** Where a container of each protocol listens unless its runtime says otherwise (COMPATIBILITY 1, "Container ports"). */
const protocolRoutes: Readonly<Record<Protocol, ProtocolRoute>> = {
  HTTP: { port: 8080, path: '/invocations', health: pingHealth },
  AGUI: { port: 8080, path: '/invocations', health: pingHealth },
  MCP: { port: 8000, path: '/mcp', health: optionalPingHealth },
  A2A: { port: 9000, path: '/', health: optionalPingHealth },
};

/** Where the containers of a version listen: where its protocolConfiguration says, and for the rest where its protocol has it. */
export function routeOf({ protocol, definition }: Pick<RuntimeVersion, 'protocol' | 'definition'>): ProtocolRoute {
  const usual = protocolRoutes[protocol];
  const { port = usual.port, path = usual.path } = definition.protocolConfiguration ?? {};
  return { ...usual, port, path };
}
