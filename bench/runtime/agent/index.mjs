// The fixed backend of the benchmark: 1 KB at once for any body, or a stream when the path or the body asks for one.
import { createServer } from 'node:http';

const KILOBYTE = Buffer.alloc(1024, 'x');
const CHUNK = Buffer.alloc(64 * 1024, 'x');
const server = createServer((req, res) => {
  if (req.url === '/ping') {
    req.resume();
    res.end('{"status":"Healthy"}');
    return;
  }
  let body;
  req.on('data', (part) => {
    body = body ? Buffer.concat([body, part]) : part;
  });
  req.on('end', () => {
    // `{` is never in the 1 KB that the load generators send.
    if (body?.[0] === 0x7b) return stream(JSON.parse(body.toString()), res);
    res.writeHead(200, ['content-type', 'application/octet-stream', 'content-length', '1024']);
    res.end(KILOBYTE);
  });
});

/** `{"chunks":3,"everyMs":20}` or `{"bytes":1073741824}`. */
async function stream({ chunks = 0, everyMs = 0, bytes = 0 }, res) {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let i = 0; i < chunks; i += 1) {
    res.write(`data: part ${i}\n\n`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  for (let sent = 0; sent < bytes; sent += CHUNK.length)
    if (!res.write(CHUNK)) await new Promise((resolve) => res.once('drain', resolve));
  res.end();
}

server.keepAliveTimeout = 300_000;
server.listen(Number(process.env.BENCH_PORT ?? 8080), '0.0.0.0');
