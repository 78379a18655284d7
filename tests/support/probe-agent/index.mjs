// An agent for tests: it does what the prompt says, well or badly.
import { appendFileSync, closeSync, fsync, fsyncSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';

let count = 0;
let busy = false;
let healthy = true;
/** What a warm-up hook has been asked, in order; `warming` is how it answers. */
const warmed = [];
const warming = process.env.PROBE_WARMING ?? '200';

const acts = {
  count: (_, res) => res.end(JSON.stringify({ count: ++count, pid: process.pid })),
  echo: ({ body }, res) => res.end(body),
  warmed: (_, res) => res.end(JSON.stringify({ warmed, pid: process.pid })),
  url: ({ req }, res) => res.end(req.url),
  headers: ({ req }, res) => res.end(JSON.stringify(req.headers)),
  env: (_, res) => res.end(JSON.stringify(process.env)),
  fetch: async ({ url }, res) => {
    const signal = AbortSignal.timeout(5000);
    const said = await fetch(url, { signal }).then(
      (answer) => answer.text(),
      (error) => `${error.cause?.code ?? error}`,
    );
    res.end(said);
  },
  write: ({ text }, res) => {
    const file = openSync('/tmp/kept', 'w');
    writeSync(file, text ?? 'kept');
    fsyncSync(file);
    closeSync(file);
    res.end('written');
  },
  read: (_, res) => {
    try {
      res.end(readFileSync('/tmp/kept'));
    } catch {
      res.end('nothing');
    }
  },
  file: ({ path, append }, res) => {
    try {
      if (append !== undefined) appendFileSync(path, append);
      res.end(JSON.stringify(path.endsWith('/') ? { names: readdirSync(path) } : { text: readFileSync(path, 'utf8') }));
    } catch (error) {
      res.end(JSON.stringify({ error: error.code }));
    }
  },
  stream: async ({ parts = 3, everyMs = 20 }, res) => {
    res.setHeader('content-type', 'text/event-stream');
    for (let i = 1; i <= parts; i += 1) {
      res.write(`data: part ${i}\n\n`);
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
    res.end();
  },
  bytes: async ({ size }, res) => {
    const chunk = Buffer.alloc(65_536, 'x');
    for (let sent = 0; sent < size; sent += chunk.length) {
      if (!res.write(size - sent < chunk.length ? chunk.subarray(0, size - sent) : chunk))
        await new Promise((resolve) => res.once('drain', resolve));
    }
    res.end();
  },
  die: ({ status = 3 }) => {
    console.error('the agent is about to die');
    process.exit(status);
  },
  'stream-and-die': (_, res) => {
    res.write('data: half\n\n');
    setTimeout(() => process.exit(4), 50);
  },
  // The end of the connection alone ends this answer, whole or not.
  'plain-and-die': ({ parts = 2 }, res) => {
    res.useChunkedEncodingByDefault = false;
    res.removeHeader('transfer-encoding');
    res.write('half ');
    if (parts > 1) setTimeout(() => res.end('whole'), 20);
    else setTimeout(() => process.exit(4), 20);
  },
  fail: (_, res) => {
    res.statusCode = 500;
    res.end('{"error":"the agent failed on purpose"}');
  },
  redirect: (_, res) => {
    res.statusCode = 302;
    res.setHeader('location', 'http://127.0.0.1/');
    res.end();
  },
  // Of those that have ended and wait to be reaped, only the letter.
  processes: (_, res) => {
    const lines = readdirSync('/proc').map((pid) => {
      try {
        const state = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) (.).*/s, '$1');
        return `${state} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`;
      } catch {
        return '';
      }
    });
    res.end(lines.join('\n'));
  },
  hang: () => undefined,
  busy: ({ value = true }, res) => {
    busy = value;
    res.end('ok');
  },
  sick: (_, res) => {
    healthy = false;
    res.end('ok');
  },
  memory: () => {
    const held = [];
    for (;;) held.push(Buffer.alloc(16 * 1024 * 1024, 1));
  },
  disk: ({ stay }, res) => {
    const file = openSync('/tmp/full', 'w');
    const chunk = Buffer.alloc(1024 * 1024, 1);
    try {
      for (;;) writeSync(file, chunk);
    } catch (error) {
      // What stays with its request until the session ends has all of it on the disk, not only in memory.
      if (stay) fsync(file, () => undefined);
      else res.end(error.code);
    }
  },
};

const server = createServer((req, res) => {
  if (req.url === '/ping') {
    res.statusCode = healthy ? 200 : 500;
    res.end(
      JSON.stringify({ status: busy ? 'HealthyBusy' : 'Healthy', time_of_last_update: Math.floor(Date.now() / 1000) }),
    );
    return;
  }
  if (req.url === '/warm') {
    warmed.push(req.method);
    if (warming === 'exit') process.exit(9);
    console.log('the warm-up was asked');
    res.writeHead(Number(warming)).end('as it was told');
    return;
  }
  const parts = [];
  req.on('data', (part) => parts.push(part));
  req.on('end', async () => {
    const body = Buffer.concat(parts);
    const payload = parse(body);
    res.setHeader('content-type', 'application/json');
    const act = acts[payload.do ?? 'echo'];
    if (!act) res.writeHead(400).end('{"error":"unknown act"}');
    else await act({ ...payload, body, req }, res);
  });
});
server.keepAliveTimeout = 120_000;
if (process.env.PROBE_START === 'exit') {
  console.error('no configuration found');
  process.exit(7);
}
if (process.env.PROBE_START !== 'never-listen') server.listen(Number(process.env.PORT ?? 8080), '0.0.0.0');
else setInterval(() => undefined, 1000);

function parse(body) {
  try {
    const value = JSON.parse(body.toString());
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
