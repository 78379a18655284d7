import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { errors } from '@agentplatform/contract';
import { afterEach, expect, it } from 'vitest';
import { refuseUpgrade } from './upgrade.ts';

const server = createServer();
const clients: Socket[] = [];
afterEach(() => {
  for (const client of clients) client.destroy();
  server.close();
});

it.each([
  ['sends on and closes its side', true],
  ['sends on and stays', false],
])('a client that was refused, %s, keeps no connection open', async (_, closes) => {
  server.removeAllListeners('upgrade').on('upgrade', (_req, socket) => {
    refuseUpgrade(socket, errors.validation('No.'), 'r');
  });
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  clients.push(client);
  await once(client, 'connect');
  let answer = '';
  client.on('data', (part) => {
    answer += part;
  });
  client.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nand bytes after it');
  if (closes) client.end();
  const open = promisify(server.getConnections.bind(server));
  await expect.poll(async () => [/^HTTP\/1.1 400 /.test(answer), await open()], { timeout: 30_000 }).toEqual([true, 0]);
});
