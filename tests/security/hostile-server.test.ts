import { connect, type Socket } from 'node:net';
import { afterAll, expect, it } from 'vitest';
import { ENDLESS, type HostileServer, MIB, openHostileServer, SILENT } from './hostile-server.ts';

// The control of all attacks by servers: what nothing bounds takes more than any bound of the platform's, or waits on.

const open: { name: string; server: HostileServer; socket: Socket; read: number; ended: boolean }[] = [];
afterAll(async () => {
  for (const { socket } of open) socket.destroy();
  await Promise.all(open.map(({ server }) => server.close()));
});

it('drowns or holds whoever listens to it without a bound', async () => {
  for (const [name, behave] of Object.entries({ ...SILENT, ...ENDLESS })) {
    const server = await openHostileServer(behave);
    const socket = connect(Number(new URL(server.origin).port), '127.0.0.1');
    const one = { name, server, socket, read: 0, ended: false };
    open.push(one);
    socket
      .on('error', () => undefined)
      .on('close', () => {
        one.ended = true;
      });
    socket.on('data', (part) => {
      one.read += part.length;
      // So much will do; others shall have their turn.
      if (one.read > 16 * MIB) socket.pause();
    });
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  }
  await expect
    .poll(() => open.filter(({ name, read }) => name in ENDLESS && read <= 16 * MIB).map(({ name }) => name), {
      timeout: 60_000,
    })
    .toEqual([]);
  expect(open.filter(({ ended }) => ended)).toEqual([]);
  expect(open.filter(({ name, read }) => name in SILENT && read > 10_000)).toEqual([]);
}, 90_000);
