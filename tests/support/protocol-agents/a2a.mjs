// An A2A agent without a framework: its card, and JSON-RPC at the root.
import { createServer } from 'node:http';

const card = {
  name: 'echo',
  description: 'Says again what it is told',
  version: '1.0.0',
  protocolVersion: '0.3.0',
  url: process.env.AGENTCORE_RUNTIME_URL,
  capabilities: { streaming: false },
  defaultInputModes: ['text'],
  defaultOutputModes: ['text'],
  skills: [{ id: 'echo', name: 'Echo', description: 'Echo', tags: [] }],
};
let messages = 0;

createServer(async (request, response) => {
  const answer = (body) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  const isCard = request.url === '/.well-known/agent-card.json';
  if (request.method !== 'POST' && !isCard) return response.writeHead(405).end();
  // What comes by the platform says who the agent is.
  if (!request.headers.workloadaccesstoken) return response.writeHead(401).end();
  if (isCard) return answer(card);
  let text = '';
  for await (const chunk of request) text += chunk;
  const { id, method, params } = JSON.parse(text);
  if (method !== 'message/send')
    return answer({ jsonrpc: '2.0', id, error: { code: -32601, message: `no method ${method}` } });
  messages += 1;
  const parts = [{ kind: 'text', text: `${messages} ${params.message.parts[0].text}` }];
  answer({ jsonrpc: '2.0', id, result: { kind: 'message', messageId: `m${messages}`, role: 'agent', parts } });
}).listen(9000, '0.0.0.0');
