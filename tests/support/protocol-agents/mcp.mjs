// An MCP server on the official SDK: a session of its own for each client, and a tool that counts within it. With STATELESS it keeps no
// sessions, and counts for all.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const transports = new Map();
const stateless = process.env.STATELESS !== undefined;
const ofAll = { count: 0 };

async function open() {
  const kept = stateless ? ofAll : { count: 0 };
  const server = new McpServer({ name: 'counter', version: '1.0.0' }, { capabilities: { logging: {} } });
  server.registerTool('count', { description: 'Counts the calls of this MCP session' }, () => {
    kept.count += 1;
    return { content: [{ type: 'text', text: String(kept.count) }] };
  });
  server.registerTool('announce', { description: 'Says something by itself' }, async () => {
    // Belongs to no request: it goes to the stream that the client has opened by GET.
    await server.server.notification({ method: 'notifications/message', params: { level: 'info', data: 'by itself' } });
    return { content: [] };
  });
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: stateless ? undefined : randomUUID,
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
