import { createServer } from 'node:http';

/** The API behind the contestants: a process of its own, which answers every request with the same small JSON. Its only argument is its port. */
const answer = Buffer.from(JSON.stringify({ id: '7', state: 'shipped', items: [{ name: 'tea', count: 2 }] }));
const head = { 'content-type': 'application/json', 'content-length': String(answer.length) };
createServer((req, res) => {
  req.resume();
  res.writeHead(200, head).end(answer);
}).listen(Number(process.argv[2]), '127.0.0.1');
