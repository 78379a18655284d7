import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { acceptOf } from './handshake.ts';
import { MessageReader } from './message-reader.ts';

it('reads what a client of another make sends, whole, however its bytes come apart; long and binary messages are passed over', async () => {
  const sent: Buffer[] = [];
  const server = createServer((socket: Socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (request) => {
      const key = /sec-websocket-key: (\S+)/i.exec(String(request))?.[1] ?? '';
      const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
      socket.write([...lines, `Sec-WebSocket-Accept: ${acceptOf(key)}`, '', ''].join('\r\n'));
      socket.on('data', (chunk) => sent.push(chunk));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const client = new WebSocket(`ws://127.0.0.1:${port}`, {
    createConnection: () => connect(Number(port), '127.0.0.1'),
  });
  await once(client, 'open');
  client.send('first');
  client.send('');
  client.send(Buffer.from('binary'));
  client.send('Jürgen ', { fin: false });
  client.ping();
  client.send('你好', { fin: true });
  client.send('x'.repeat(70_000));
  client.send('y'.repeat(1000));
  client.send('last');
  const whole = (): Buffer => Buffer.concat(sent);
  await expect.poll(() => whole().length).toBeGreaterThan(71_000 + 60);
  client.terminate();
  server.close();
  const bytes = whole();
  for (const size of [1, 7, 1000, bytes.length]) {
    const read: string[] = [];
    const reader = new MessageReader((text) => read.push(text));
    for (let at = 0; at < bytes.length; at += size) reader.take(bytes.subarray(at, at + size));
    expect(read).toEqual(['first', '', 'Jürgen 你好', 'y'.repeat(1000), 'last']);
  }
});
