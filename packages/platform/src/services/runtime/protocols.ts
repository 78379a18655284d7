import type { Protocol } from './runtime.ts';

export interface ProtocolRoute {
  /** Port that the container listens on. */
  port: number;
  /** Path that an invocation is posted to. */
  path: string;
}

/** Where a container of each protocol listens (COMPATIBILITY 1, "Container ports"). */
export const protocolRoutes: Readonly<Record<Protocol, ProtocolRoute>> = {
  HTTP: { port: 8080, path: '/invocations' },
  AGUI: { port: 8080, path: '/invocations' },
  MCP: { port: 8000, path: '/mcp' },
  A2A: { port: 9000, path: '/' },
};
