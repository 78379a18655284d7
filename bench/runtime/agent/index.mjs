// The fixed backend of the benchmark: 1 KB at once for any body, or a stream when the path or the body asks for one.
import { createHash } from 'node:crypto';
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
  // What is no events is not called so: one of a gigabyte would be refused.
  res.writeHead(200, { 'content-type': bytes > 0 ? 'application/octet-stream' : 'text/event-stream' });
  for (let i = 0; i < chunks; i += 1) {
    res.write(`data: part ${i}\n\n`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  for (let sent = 0; sent < bytes; sent += CHUNK.length)
    if (!res.write(CHUNK)) await new Promise((resolve) => res.once('drain', resolve));
  res.end();
}

// WebSocket: every message goes back as it came. Frames of less than 64 KiB, unfragmented, which is what the benchmark sends.
server.on('upgrade', (req, socket) => {
  const accept = createHash('sha1')
    .update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  socket.setNoDelay(true);
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
  );
  let waiting = Buffer.alloc(0);
  socket.on('error', () => socket.destroy());
  socket.on('data', (part) => {
    waiting = Buffer.concat([waiting, part]);
    for (let frame = nextFrame(waiting); frame; frame = nextFrame(waiting)) {
      waiting = waiting.subarray(frame.size);
      if (frame.opcode === 8) return socket.end();
      if (frame.opcode === 9) frame.opcode = 10;
      else if (frame.opcode === 10) continue;
      const { length } = frame.payload;
      const head = length < 126 ? [0x80 | frame.opcode, length] : [0x80 | frame.opcode, 126, length >> 8, length & 255];
      socket.write(Buffer.concat([Buffer.from(head), frame.payload]));
    }
  });
});

/** The first frame in `bytes`, unmasked; undefined while it is not whole. */
function nextFrame(bytes) {
  if (bytes.length < 6) return undefined;
  const short = bytes[1] & 127;
  const start = short < 126 ? 6 : 8;
  if (bytes.length < start) return undefined;
  const length = short < 126 ? short : bytes.readUInt16BE(2);
  if (bytes.length < start + length) return undefined;
  const mask = bytes.subarray(start - 4, start);
  const payload = Buffer.from(bytes.subarray(start, start + length));
  for (let i = 0; i < length; i += 1) payload[i] ^= mask[i & 3];
  return { opcode: bytes[0] & 15, payload, size: start + length };
}

server.keepAliveTimeout = 300_000;
server.listen(Number(process.env.BENCH_PORT ?? 8080), '0.0.0.0');
