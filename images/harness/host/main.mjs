// The first process of a harness session: it runs turns that the platform asks for, one at a time, and keeps nothing of them.
import { createServer } from 'node:http';
import { PlatformLink, readLines } from './lines.mjs';
import { runTurn } from './turn.mjs';

// Where there is no isolation at all, each session is given a port of its own, and everybody is inside.
const GIVEN = process.env.AGENTPLATFORM_PORT;
const PORT = Number(GIVEN ?? 8080);

const say = (what) => process.stderr.write(`harness: ${what}\n`);
let busy = false;

/** What the model has run here must not play the platform: whoever comes from inside, by whichever address, is cut off. */
function isFromInside({ remoteAddress, localAddress }) {
  return remoteAddress === undefined || remoteAddress === localAddress || /^(::ffff:)?127\.|^::1$/.test(remoteAddress);
}

const server = createServer((request, response) => {
  const answer = (status, body) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (request.method === 'GET' && request.url === '/ping')
    return answer(200, { status: busy ? 'HealthyBusy' : 'Healthy' });
  if (request.method !== 'POST' || request.url !== '/turn')
    return answer(404, { message: `There is no ${request.method} ${request.url}.` });
  if (busy) return answer(409, { message: 'A turn is under way.' });
  busy = true;
  turn(request, response)
    .catch((error) => {
      say(error.message);
      response.destroy();
    })
    .finally(() => {
      busy = false;
    });
});
// A turn may take an hour, and its request as long as it does.
server.requestTimeout = 0;
server.keepAliveTimeout = 600_000;
server.on('connection', (socket) => {
  socket.setNoDelay(true);
  if (GIVEN === undefined && isFromInside(socket)) socket.destroy();
});
server.on('error', (error) => {
  say(error.message);
  if (!server.listening) process.exit(1);
});
server.listen(PORT, '0.0.0.0');

/** The first line says what the turn is; the platform's answers follow until the turn is over. */
async function turn(request, response) {
  const stop = new AbortController();
  response.on('close', () => stop.abort());
  response.on('error', () => stop.abort());
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  const lines = readLines(request);
  const { value: asked } = await lines.next();
  if (!asked) return response.end();
  const link = new PlatformLink((line) => response.write(line));
  const aborted = new Promise((resolve) => {
    stop.signal.addEventListener('abort', () => {
      link.end();
      resolve();
    });
  });
  const hear = async () => {
    for await (const message of lines) link.take(message);
  };
  const hearing = hear().catch((error) => stop.abort(error));
  // A tool that is still at work when nobody waits any more holds up no other turn.
  await Promise.race([aborted, tellEnd(asked, link, stop.signal)]);
  // The platform ends its half first: one that ends behind the answer would end the connection with it.
  await Promise.race([aborted, hearing]);
  response.end();
}

async function tellEnd(asked, link, signal) {
  try {
    link.tell({ type: 'end', ...(await runTurn(asked, link, signal)) });
  } catch (error) {
    link.tell({ type: 'failed', kind: error.kind, message: error.message });
  }
}
