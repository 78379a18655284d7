import { once } from 'node:events';
import { expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { CdpClient } from './cdp-client.ts';

it.each(['{', 'null', '{"method":"Page.screencastFrame"}'])(
  'ends with a sandbox that says what no browser says: %s',
  async (junk) => {
    const browser = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await once(browser, 'listening');
    const address = browser.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    browser.on('connection', (socket: WebSocket) =>
      socket.on('message', (text) => {
        const { id, method } = JSON.parse(String(text));
        socket.send(method === 'junk' ? junk : JSON.stringify({ id, result: { is: method } }));
      }),
    );
    const cdp = await CdpClient.open({ host: '127.0.0.1', port }, new AbortController().signal);
    cdp.listen(({ params }) => Buffer.from(params.data as string));
    try {
      expect(await cdp.send('right')).toEqual({ is: 'right' });
      await expect(cdp.send('junk')).rejects.toThrow('broken down');
      await cdp.closed;
    } finally {
      cdp.close();
      for (const socket of browser.clients) socket.terminate();
      browser.close();
    }
  },
);
