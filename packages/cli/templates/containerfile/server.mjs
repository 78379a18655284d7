// Any image will do that serves POST /invocations and GET /ping on port 8080.
import { createServer } from 'node:http';

let calls = 0;

createServer(async (request, response) => {
  const answer = (status, value) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(value));
  };
  if (request.url === '/ping')
    return answer(200, { status: 'Healthy', time_of_last_update: Math.floor(Date.now() / 1000) });
  if (request.method !== 'POST' || request.url !== '/invocations') return answer(404, { error: 'not found' });
  let text = '';
  for await (const chunk of request) text += chunk;
  try {
    calls++;
    answer(200, { said: JSON.parse(text).prompt ?? null, call: calls });
  } catch (error) {
    answer(400, { error: error.message });
  }
}).listen(Number(process.env.PORT ?? 8080), '0.0.0.0', () => console.log('listening'));
process.on('SIGTERM', () => process.exit(0));
