// An agent for tests of traces: it tells the headers that it got, and asks a model of the platform with or without the trace that it is a part of.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { BedrockRuntimeClient, ConverseCommand } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { WebSocketServer } from 'ws';

const client = new BedrockRuntimeClient({ maxAttempts: 1, requestHandler: new NodeHttpHandler() });

async function converse(headers) {
  const command = new ConverseCommand({
    modelId: 'llama3.2',
    messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
  });
  command.middlewareStack.add(
    (next) => (args) => {
      Object.assign(args.request.headers, headers);
      return next(args);
    },
    { step: 'build' },
  );
  return (await client.send(command)).output.message.content[0].text;
}

const server = createServer(async (request, response) => {
  if (request.url === '/ping') return response.end('{"status":"Healthy"}');
  const { headers } = request;
  const act = await json(request);
  const { traceparent, tracestate } = headers;
  const said = {
    traced: () => converse({ traceparent, ...(tracestate ? { tracestate } : {}) }),
    xray: () => converse({ 'x-amzn-trace-id': headers['x-amzn-trace-id'] }),
    untraced: () => converse({}),
    nothing: async () => undefined,
  }[act.do];
  const text = await said().catch((error) => `${error.name}: ${error.message}`);
  response.setHeader('content-type', 'application/json');
  return response.end(JSON.stringify({ headers, text }));
});
new WebSocketServer({ server, path: '/ws' }).on('connection', (ws, request) => {
  ws.on('message', () => ws.send(JSON.stringify(request.headers)));
});
server.listen(Number(process.env.PORT ?? 8080), '0.0.0.0');
