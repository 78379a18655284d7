// An MCP server on the official SDK: a session of its own for each client, and a tool that counts within it.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const transports = new Map();

async function open() {
  let count = 0;
  const server = new McpServer({ name: 'counter', version: '1.0.0' });
  server.registerTool('count', { description: 'Counts the calls of this MCP session' }, () => {
    count += 1;
    return { content: [{ type: 'text', text: String(count) }] };
  });
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}

createServer(async (request, response) => {
  if (!request.url.startsWith('/mcp')) return response.writeHead(404).end();
  // What comes by the platform says who the agent is.
  if (!request.headers.workloadaccesstoken) return response.writeHead(401).end();
  const transport = transports.get(request.headers['mcp-session-id']) ?? (await open());
  await transport.handleRequest(request, response);
}).listen(8000, '0.0.0.0');
