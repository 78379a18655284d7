/** What stands between the two is no character of a runtime session id. */
const KEPT = /^([a-zA-Z0-9][a-zA-Z0-9-_]{32,255})(?:~(.+))?$/;

/** Which session an `Mcp-Session-Id` means, and what the agent is to see of it. */
export interface McpSession {
  runtimeSessionId: string | undefined;
  /** The agent's own id, which it gave before. */
  own: string | undefined;
}

/**
 * MCP clients do not know runtime sessions. They send the `Mcp-Session-Id` of an earlier answer again (Streamable HTTP, "Session Management"). So the platform
 * writes the id of the runtime session into that header, followed by the agent's own id, if it gave one. If a client names the runtime session in the header of
 * the platform, the `Mcp-Session-Id` is the agent's own id, unchanged.
 */
export function readMcpSession(given: string | undefined): McpSession {
  const [, runtimeSessionId, own] = KEPT.exec(given ?? '') ?? [];
  return runtimeSessionId === undefined ? { runtimeSessionId, own: given } : { runtimeSessionId, own };
}

/** The id under which a client finds that session again. */
export function writeMcpSession(runtimeSessionId: string, own: string | undefined): string {
  return own === undefined ? runtimeSessionId : `${runtimeSessionId}~${own}`;
}
