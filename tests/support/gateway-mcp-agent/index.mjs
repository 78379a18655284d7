// A stateless MCP server without packages: one tool, which tells with which headers it was reached.
import { createServer } from 'node:http';

const tools = [{ name: 'greet', description: 'Greets', inputSchema: { type: 'object', properties: {} } }];

function resultOf({ method, params }, headers) {
  if (method === 'initialize') {
    const serverInfo = { name: 'greeter', version: '1' };
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  if (method === 'tools/list') return { tools };
  if (method === 'tools/call') return { content: [{ type: 'text', text: JSON.stringify(Object.keys(headers)) }] };
  return undefined;
}

createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  if (request.method !== 'POST') return response.writeHead(405).end();
  const message = JSON.parse(Buffer.concat(parts).toString());
  if (message.id === undefined) return response.writeHead(202).end();
  const result = resultOf(message, request.headers);
  const error = { code: -32601, message: 'Method not found' };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...(result ? { result } : { error }) }));
}).listen(8000, '0.0.0.0');
