import { errors } from '@agentplatform/contract';
import { type CallToolResult, Client, StreamableHTTPClientTransport, type Tool } from '@modelcontextprotocol/client';
import type { Json, JsonSchema } from '../../../kernel/models/index.ts';
import type { ResultContent } from '../conversations/message.ts';
import type { Given, ServedTool, ToolServer } from './tool-server.ts';

/** Where an MCP server is, and how it is asked. */
export interface McpPlace {
  /** What the harness calls it. */
  name: string;
  url: string;
  /** Guarded, and with the credential of each request. */
  fetch: typeof fetch;
}

const HANDSHAKE_MS = 20_000;
const LIST_MS = 30_000;
/** As long as a turn may take: its own time ends a call. */
const CALL_MS = 3_600_000;
const MOST_PAGES = 100;
const MOST_TOOLS = 1_000;

/** The tools of an MCP server, on a connection for one turn. Rejects with RuntimeClientError where they cannot be had. */
export async function mcpServer({ name, url, fetch }: McpPlace, signal: AbortSignal): Promise<ToolServer> {
  const client = new Client(
    { name: 'agentplatform-harness', version: '0.1.0' },
    { versionNegotiation: { mode: 'auto' } },
  );
  // What fails, fails the request that it belongs to.
  client.onerror = () => undefined;
  const transport = new StreamableHTTPClientTransport(new URL(url), { fetch });
  const close = async (): Promise<void> => {
    await transport.terminateSession().catch(() => undefined);
    await client.close().catch(() => undefined);
  };
  try {
    await client.connect(transport, { timeout: HANDSHAKE_MS, signal });
    const listed = await listTools(client, signal);
    return { name, type: 'mcp_tool_use', tools: listed.map((tool) => servedTool(client, tool)), close };
  } catch (error) {
    void close();
    signal.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    throw errors.runtimeClient(`The tools of ${name} cannot be had: ${why.slice(0, 500)}.`, {
      remedy: 'See that the MCP server answers, or leave it out of tools.',
      cause: error,
    });
  }
}

async function listTools(client: Client, signal: AbortSignal): Promise<Tool[]> {
  const tools: Tool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES && tools.length < MOST_TOOLS; page++) {
    const listed = await client.listTools(cursor === undefined ? {} : { cursor }, { timeout: LIST_MS, signal });
    tools.push(...listed.tools);
    cursor = listed.nextCursor;
    if (cursor === undefined) break;
  }
  return tools.slice(0, MOST_TOOLS);
}

function servedTool(client: Client, { name, title, description = title ?? name, inputSchema }: Tool): ServedTool {
  return {
    ...{ name, description },
    // A server's schema is JSON; the provider of the model judges the rest.
    inputSchema: inputSchema as JsonSchema,
    async run(input, signal) {
      const args = typeof input === 'object' && input !== null && !Array.isArray(input) ? { ...input } : {};
      const result = await client.callTool({ name, arguments: args }, { timeout: CALL_MS, signal });
      return givenBy(result);
    },
  };
}

/** What a tool of MCP gave, as a conversation has it: texts, and what is said of the rest. */
export function givenBy({ content = [], structuredContent, isError }: Partial<CallToolResult>): Given {
  const blocks = content.map((block): ResultContent => {
    if (block.type === 'text') return { text: block.text };
    if (block.type === 'resource' && 'text' in block.resource) return { text: String(block.resource.text) };
    if (block.type === 'resource_link') return { text: `${block.name}: ${block.uri}` };
    return { text: `[${block.type}, which is not shown]` };
  });
  const said = blocks.length > 0 || structuredContent === undefined ? blocks : [{ json: structuredContent as Json }];
  return { status: isError ? 'error' : 'success', content: said };
}
