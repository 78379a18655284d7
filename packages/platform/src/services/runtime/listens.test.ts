import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { listens } from './listens.ts';

let server: Server | undefined;
afterEach(() => void server?.close());

async function serve(take: (socket: Socket, own: Server) => void): Promise<number> {
  const own = createServer((socket) => {
    socket.on('error', () => undefined);
    take(socket, own);
  }).listen(0, '127.0.0.1');
  server = own;
  await once(own, 'listening');
  return (own.address() as AddressInfo).port;
}

it('tells who takes connections from who does not', async () => {
  const port = await serve(() => undefined);
  expect(await listens('127.0.0.1', port)).toBe(true);
  if (server) await once(server.close(), 'close');
  expect(await listens('127.0.0.1', port)).toBe(false);
});

it('is not taken in by one who still accepts while it ends', async () => {
  const port = await serve((socket, own) => {
    own.close();
    socket.destroy();
  });
  expect(await listens('127.0.0.1', port)).toBe(false);
});

it('takes one who closes each connection at once, but goes on, for somebody', async () => {
  const port = await serve((socket) => socket.end());
  expect(await listens('127.0.0.1', port)).toBe(true);
});
