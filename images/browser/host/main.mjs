// The first process of a browser session: it starts Chromium, starts it again when it breaks down, and lets the platform, and nobody
// inside, reach it. Node alone: nothing is installed for it.
import { createServer } from 'node:http';
import { Chromium } from './chromium.mjs';
import { sendFile } from './downloads.mjs';
import { relay } from './relay.mjs';
import { DEFAULT_SETTINGS, readSettings } from './settings.mjs';
import { takeFile } from './uploads.mjs';

const PORT = 8080;
const MAX_SETTINGS_BYTES = 64 * 2 ** 20;

const say = (what) => process.stderr.write(`browser host: ${what}\n`);
const chromium = new Chromium((why) => {
  say(why);
  process.exit(1);
});

/** A page must not reach what drives its browser: whoever comes from here, by whichever of its own addresses, is cut off. */
function isFromInside({ remoteAddress, localAddress }) {
  return remoteAddress === undefined || remoteAddress === localAddress || /^(::ffff:)?127\.|^::1$/.test(remoteAddress);
}

const server = createServer({ maxHeaderSize: 32_768 }, (request, response) => {
  const answer = (status, body) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const url = new URL(request.url, 'http://host');
  if (request.method === 'GET' && url.pathname === '/ping')
    return answer(chromium.ready ? 200 : 503, { status: chromium.ready ? 'Healthy' : 'Starting' });
  if (request.method === 'GET' && url.pathname === '/about') return answer(200, chromium.about());
  if (request.method === 'GET' && url.pathname === '/pages')
    return chromium.pages().then(
      (pages) => answer(200, { pages }),
      (error) => answer(error.status ?? 500, { message: error.message }),
    );
  if (request.method === 'GET' && url.pathname === '/origins')
    return chromium.origins().then(
      (origins) => answer(200, { origins }),
      (error) => answer(error.status ?? 500, { message: error.message }),
    );
  if (request.method === 'PUT' && url.pathname === '/uploads')
    return takeFile(url.searchParams.get('name') ?? '', request).then(
      (path) => answer(200, { path }),
      (error) => answer(error.status ?? 500, { message: error.message }),
    );
  if (request.method === 'GET' && url.pathname === '/downloads')
    return sendFile(url.searchParams.get('name'), response);
  if (request.method === 'PUT' && url.pathname === '/start') {
    return collect(request, MAX_SETTINGS_BYTES)
      .then((text) => chromium.start(readSettings(text)))
      .then(
        () => answer(200, chromium.about()),
        (error) => answer(error.status ?? 500, { message: error.message }),
      );
  }
  return answer(404, { message: `There is no ${request.method} ${url.pathname}.` });
});
server.keepAliveTimeout = 60_000;
server.on('connection', (socket) => {
  if (isFromInside(socket)) socket.destroy();
});
server.on('upgrade', (request, socket, head) => {
  socket.on('error', () => socket.destroy());
  if (request.url === '/automation' && chromium.ready) relay(request, socket, head, chromium.endpoint);
  else socket.end('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
});
server.on('error', (error) => {
  // One connection that could not be taken is no end of the others.
  say(error.message);
  if (!server.listening) process.exit(1);
});
server.listen(PORT, '0.0.0.0');

// Before anybody asks: a session with the usual settings finds its browser running.
await chromium.start(DEFAULT_SETTINGS);

async function collect(request, most) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > most) throw Object.assign(new Error('The settings are too large.'), { status: 413 });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
