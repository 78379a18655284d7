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

it('sends the head before a first part that takes its time, and in one packet with one that is there', async () => {
  const late = Promise.withResolvers<void>();
  async function* waiting(): AsyncIterable<Uint8Array> {
    await late.promise;
    yield Buffer.from('late');
  }
  async function* ready(): AsyncIterable<Uint8Array> {
    yield Buffer.from('there');
  }
  const server = createServer((req, res) => {
    const body = req.url === '/waiting' ? waiting() : ready();
    respond(res, { status: 200, headers: {}, body }, 'id').catch(() => undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const first = async (path: string): Promise<string> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const [part] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    return part.toString();
  };
  expect(await first('/waiting')).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  late.resolve();
  expect(await first('/ready')).toContain('\r\n\r\n5\r\nthere\r\n');
  server.close();
});
