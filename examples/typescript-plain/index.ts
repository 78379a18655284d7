// An agent without any SDK: what the platform asks for is an HTTP server on port 8080 with these two routes.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';

let calls = 0;

const server = createServer((request, response) => {
  serve(request, response).catch((error: unknown) => answer(response, 500, { error: String(error) }));
});

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'GET' && request.url === '/ping') {
    return answer(response, 200, { status: 'Healthy', time_of_last_update: Math.floor(Date.now() / 1000) });
  }
  if (request.method !== 'POST' || request.url !== '/invocations') return answer(response, 404, { error: 'not found' });
  let payload: unknown;
  try {
    payload = await json(request);
  } catch (error) {
    return answer(response, 400, { error: `the payload is not valid JSON: ${error}` });
  }
  calls++;
  const session = request.headers['x-amzn-bedrock-agentcore-runtime-session-id'];
  answer(response, 200, { echo: payload, calls, session });
}

function answer(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

server.listen(Number(process.env.PORT ?? 8080), '0.0.0.0', () => console.log('listening'));
process.on('SIGTERM', () => server.close(() => process.exit(0)));
