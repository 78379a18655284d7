import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it } from 'vitest';
import { respond } from './respond.ts';

/** Runs `listener` on a request whose client reads the answer, or goes away at once. */
async function serve(listener: RequestListener, stays: boolean): Promise<void> {
  const done = Promise.withResolvers<void>();
  const server = createServer(async (req, res) => {
    if (!stays) await once(res, 'close');
    await Promise.resolve(listener(req, res)).catch(() => undefined);
    done.resolve();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').resume();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  if (!stays) setTimeout(() => socket.destroy(), 20);
  await done.promise;
  socket.destroy();
  server.close();
}

it.each([true, false])('lets go of what a streamed body holds, whether its client stays (%s)', async (stays) => {
  const held = { released: false };
  async function* body(): AsyncIterable<Uint8Array> {
    try {
      yield Buffer.from('first');
      yield Buffer.from('second');
    } finally {
      held.released = true;
    }
  }
  await serve((_req, res) => respond(res, { status: 200, headers: {}, body: body() }, 'id'), stays);
  expect(held.released).toBe(true);
});
