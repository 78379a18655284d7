// An agent for tests of session endpoints: beside its invocations it serves a web application on a port of its own.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

createServer((req, res) => {
  req
    .resume()
    .on('end', () => res.end(req.url === '/ping' ? '{"status":"Healthy"}' : JSON.stringify({ pid: process.pid })));
}).listen(Number(process.env.PORT ?? 8080), '0.0.0.0');

const pages = {
  '/page': (_, res) => {
    res.setHeader('set-cookie', ['theirs=1; Path=/', 'other=2', 'agentplatform-session=stolen']);
    res.setHeader('content-security-policy', "script-src 'self'");
    res.setHeader('clear-site-data', '"*"');
    res.setHeader('strict-transport-security', 'max-age=1');
    res.setHeader('content-type', 'text/html');
    res.end('<script>alert(1)</script>');
  },
  '/events': (req, res) => {
    res.setHeader('content-type', 'text/event-stream');
    res.write('data: first\n\n');
    // The rest only when the client has seen the first.
    open.set(req.headers['x-stream'], () => res.end('data: last\n\n'));
  },
  '/go-on': (req, res) => {
    open.get(req.headers['x-stream'])?.();
    res.end();
  },
  '/back': (req, res) => req.pipe(res),
  '/no': (_, res) => {
    res.statusCode = 401;
    res.end('no');
  },
  '/far': (_, res) => {
    res.writeHead(302, { location: '/page' }).end();
  },
  '/die': () => process.exit(7),
};
const open = new Map();

const application = createServer((req, res) => {
  const page = pages[req.url];
  if (page) return page(req, res);
  const hash = createHash('sha256');
  let bytes = 0;
  req.on('data', (part) => {
    bytes += part.length;
    hash.update(part);
  });
  req.on('end', () => {
    const { method, url, headers } = req;
    const told = JSON.stringify({ pid: process.pid, method, url, headers, bytes, sha256: hash.digest('hex') });
    res.setHeader('content-length', Buffer.byteLength(told));
    res.end(told);
  });
});
new WebSocketServer({ server: application }).on('connection', (ws, req) => {
  ws.on('message', (data, binary) => {
    if (String(data) === 'headers') ws.send(JSON.stringify({ ...req.headers, protocol: ws.protocol, url: req.url }));
    else ws.send(data, { binary });
  });
});
application.listen(Number(process.env.APPLICATION_PORT), '0.0.0.0');
