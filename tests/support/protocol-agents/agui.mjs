// An AG-UI agent without a framework: events of a run as server-sent events, and the same over a WebSocket.
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

const run = ({ threadId, runId }) => [
  { type: 'RUN_STARTED', threadId, runId },
  { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'hello' },
  { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
  { type: 'RUN_FINISHED', threadId, runId },
];

/** What comes by the platform says who the agent is. */
const isOfPlatform = ({ headers }) => Boolean(headers.workloadaccesstoken);

const server = createServer(async (request, response) => {
  if (request.url === '/ping') return response.end('{"status":"Healthy"}');
  if (!isOfPlatform(request)) return response.writeHead(401).end();
  let text = '';
  for await (const chunk of request) text += chunk;
  response.setHeader('content-type', 'text/event-stream');
  for (const event of run(JSON.parse(text))) response.write(`data: ${JSON.stringify(event)}\n\n`);
  response.end();
});
const verifyClient = ({ req }) => isOfPlatform(req);
new WebSocketServer({ server, path: '/ws', verifyClient }).on('connection', (socket) =>
  socket.on('message', (text) => {
    for (const event of run(JSON.parse(String(text)))) socket.send(JSON.stringify(event));
  }),
);
server.listen(8080, '0.0.0.0');
