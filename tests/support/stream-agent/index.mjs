// An agent for tests of WebSockets and long bodies: it does what a text says, and echoes everything else, bodies of bytes as they come.
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

const server = createServer((req, res) => {
  const body = JSON.stringify({ status: 'Healthy', time_of_last_update: 0 });
  if (req.headers['content-type'] === 'application/octet-stream') req.pipe(res);
  else req.resume().on('end', () => res.end(req.url === '/ping' ? body : '{}'));
});
const streams = new WebSocketServer({ server, path: '/ws', maxPayload: 64 * 1024 * 1024 });
let open = 0;

streams.on('connection', (ws, req) => {
  open += 1;
  ws.on('close', (code, reason) => {
    open -= 1;
    console.log(`closed ${code} ${reason}`);
  });
  ws.on('message', (data, binary) => {
    const [act, number, ...words] = binary ? [] : data.toString().split(' ');
    if (act === 'headers') ws.send(JSON.stringify({ ...req.headers, protocol: ws.protocol, url: req.url }));
    else if (act === 'open') ws.send(String(open));
    else if (act === 'close') ws.close(Number(number), words.join(' '));
    else if (act === 'die') process.exit(Number(number));
    else if (act === 'big') ws.send(Buffer.alloc(Number(number), 'x'));
    else if (act === 'flood') for (let i = 0; i < Number(number); i += 1) ws.send(Buffer.alloc(1024 * 1024, i));
    else ws.send(data, { binary });
  });
});
server.listen(Number(process.env.PORT ?? 8080), '0.0.0.0');
