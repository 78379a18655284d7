import { type HealthCheck, optionalPingHealth, pingHealth } from '../../kernel/sessions/health.ts';
import type { Protocol } from './runtime.ts';

export interface ProtocolRoute {
  /** Port that the container listens on. */
  port: number;
  /** Path that an invocation is posted to. */
  path: string;
  /** How it says that it lives: MCP and A2A know no `/ping`. */
  health: HealthCheck;
}

/** Where a container of each protocol listens (COMPATIBILITY 1, "Container ports"). */
export const protocolRoutes: Readonly<Record<Protocol, ProtocolRoute>> = {
  HTTP: { port: 8080, path: '/invocations', health: pingHealth },
  AGUI: { port: 8080, path: '/invocations', health: pingHealth },
  MCP: { port: 8000, path: '/mcp', health: optionalPingHealth },
  A2A: { port: 9000, path: '/', health: optionalPingHealth },
};
