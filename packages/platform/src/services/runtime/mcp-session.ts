/** What stands between the two is no character of a runtime session id. */
const KEPT = /^([a-zA-Z0-9][a-zA-Z0-9-_]{32,255})(?:~(.+))?$/;

/** Which session an `Mcp-Session-Id` means, and what the agent is to see of it. */
export interface McpSession {
  runtimeSessionId: string | undefined;
  /** The agent's own id, which it gave before. */
  own: string | undefined;
}

/**
 * A client of MCP knows nothing of runtime sessions; what it keeps is the `Mcp-Session-Id` that it was answered (Streamable HTTP, "Session
 * Management"). So the runtime session is named there, with the agent's own id behind it where it gave one. Who names the session in the
 * header for it gets and sends the agent's own id as it is.
 */
export function readMcpSession(given: string | undefined): McpSession {
  const [, runtimeSessionId, own] = KEPT.exec(given ?? '') ?? [];
  return runtimeSessionId === undefined ? { runtimeSessionId, own: given } : { runtimeSessionId, own };
}

/** The id under which a client finds that session again. */
export function writeMcpSession(runtimeSessionId: string, own: string | undefined): string {
  return own === undefined ? runtimeSessionId : `${runtimeSessionId}~${own}`;
}
