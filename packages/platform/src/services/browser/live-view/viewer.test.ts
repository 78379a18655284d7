import { once } from 'node:events';
import { expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { systemClock } from '../../../kernel/clock.ts';
import type { BrowserHost } from '../browser-host.ts';
import type { CdpClient } from '../cdp-client.ts';
import { Viewer } from './viewer.ts';

it('lets go of a person who asks and asks and reads nothing', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const address = server.address();
  const client = new WebSocket(`ws://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`);
  client.on('error', () => undefined);
  const [socket]: WebSocket[] = await once(server, 'connection');
  if (!socket) throw new Error('there is no connection');
  const over = new AbortController();
  const viewer = new Viewer({
    socket,
    cdp: { send: async () => ({}), listen: () => undefined, waiting: 0 } as unknown as CdpClient,
    host: { pages: async () => [] } as unknown as BrowserHost,
    readOnly: false,
    automation: 'ENABLED',
    setAutomation: async () => undefined,
    share: () => 'x'.repeat(1_000_000),
    clock: systemClock,
    signal: over.signal,
  });
  try {
    await viewer.start();
    await once(client, 'open');
    // One who reads gets his answers.
    const answers: string[] = [];
    client.on('message', (text) => answers.push(String(text)));
    client.send('{"type":"share"}');
    await expect.poll(() => answers.some((text) => text.includes('"shared"'))).toBe(true);
    client.pause();
    const closed = once(socket, 'close');
    for (let asked = 0; asked < 100; asked += 1) client.send('{"type":"share"}');
    await closed;
    expect(socket.bufferedAmount).toBeLessThan(20_000_000);
  } finally {
    viewer.stop();
    client.terminate();
    server.close();
  }
});
