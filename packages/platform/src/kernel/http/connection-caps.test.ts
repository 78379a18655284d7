import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { capConnections } from './connection-caps.ts';
import { LOOPBACK, TrustedAddresses } from './trusted-addresses.ts';

const servers: Server[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) await new Promise((done) => server.close(done));
});

async function serve(trusted: readonly string[]): Promise<number> {
  const server = createServer((_req, res) => res.end('here'));
  servers.push(server);
  capConnections(server, { perAddress: 3, trusted: new TrustedAddresses(trusted) });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Whether a connection from that address is served; it stays open then. */
async function served(port: number, localAddress = '127.0.0.1'): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  const answer = await Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)]);
  return answer;
}

it('closes one connection more of an address than it may have, and no other address’s', async () => {
  const port = await serve([]);
  for (let i = 0; i < 3; i += 1) expect(await served(port)).toBe(true);
  expect(await served(port)).toBe(false);
  expect(await served(port)).toBe(false);
  expect(await served(port, '127.0.0.2')).toBe(true);
});

it('gives the place of a closed connection to the next', async () => {
  const port = await serve([]);
  for (let i = 0; i < 3; i += 1) await served(port);
  const [first] = sockets;
  first?.destroy();
  await expect.poll(() => served(port)).toBe(true);
  expect(await served(port)).toBe(false);
});

it('does not count whom it trusts', async () => {
  const port = await serve(LOOPBACK);
  for (let i = 0; i < 10; i += 1) expect(await served(port)).toBe(true);
});
