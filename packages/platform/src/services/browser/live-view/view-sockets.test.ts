import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import pino from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { systemClock } from '../../../kernel/clock.ts';
import type { SocketOpening } from '../../../kernel/http/index.ts';
import type { ViewTickets } from './tickets.ts';
import { ViewSockets, type ViewSocketsDeps } from './view-sockets.ts';

const PATH = '/browser-streams/aws.browser.v1/sessions/abc/live-view';
const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';

let browser: WebSocketServer;
let door: ReturnType<typeof createServer>;
let leases: number;
let refused: unknown[];

beforeEach(async () => {
  [leases, refused] = [0, []];
  browser = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  browser.on('connection', (socket: WebSocket) =>
    socket.on('message', (text) => socket.send(JSON.stringify({ id: JSON.parse(String(text)).id, result: {} }))),
  );
  await once(browser, 'listening');
  const views = new ViewSockets(deps());
  door = createServer();
  door.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => undefined);
    const opening = {
      ...{ req, socket, head, key: KEY, principal: { accountId: '1', arn: 'arn' }, opened: () => undefined },
      signal: new AbortController().signal,
      require: async () => undefined,
    };
    views
      .read(req)
      ?.open(opening as unknown as SocketOpening)
      .catch((error: unknown) => {
        refused.push(error);
        socket.destroy();
      });
  });
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
});

afterEach(() => {
  for (const socket of browser.clients) socket.terminate();
  browser.close();
  door.close();
});

function deps(): ViewSocketsDeps {
  const address = (): { host: string; port: number } => ({ host: '127.0.0.1', port: portOf(browser) });
  const sandbox = { address, exited: new Promise(() => undefined) };
  const connection = { request: () => Promise.reject(new Error('no pages')) };
  const lease = async (): Promise<unknown> => {
    leases += 1;
    const release = (): void => {
      leases -= 1;
    };
    return { lease: { sandbox, connection, release }, record: { sessionId: 'abc', automation: 'ENABLED' } };
  };
  const ticket = { browserId: 'aws.browser.v1', sessionId: 'abc', mode: 'read-only', accountId: '1' };
  return {
    browsers: { get: async () => ({ arn: 'arn' }) },
    sessions: { lease },
    tickets: { read: () => ticket } as unknown as ViewTickets,
    automationChanged: () => undefined,
    ...{ clock: systemClock, region: 'local', log: pino({ enabled: false }) },
  } as unknown as ViewSocketsDeps;
}

function portOf(server: { address(): unknown }): number {
  const address = server.address();
  return typeof address === 'object' && address !== null && 'port' in address ? Number(address.port) : 0;
}

/** Says a handshake with these protocols. */
function knock(protocols: string): ReturnType<typeof connect> {
  const client = connect(portOf(door), '127.0.0.1');
  client.on('error', () => undefined);
  const lines = [`GET ${PATH} HTTP/1.1`, 'Host: h', 'Connection: Upgrade', 'Upgrade: websocket'];
  const own = [`Sec-WebSocket-Key: ${KEY}`, 'Sec-WebSocket-Version: 13', `Sec-WebSocket-Protocol: ${protocols}`];
  client.write([...lines, ...own, '', ''].join('\r\n'));
  return client;
}

it('keeps neither session nor browser for a handshake that comes to nothing', async () => {
  // One that is right keeps both, until its client goes.
  const right = knock('agentplatform.live-view, ticket');
  const [answer] = await once(right, 'data');
  expect(String(answer)).toContain('101');
  expect([leases, browser.clients.size]).toEqual([1, 1]);
  right.destroy();
  await expect.poll(() => [leases, browser.clients.size]).toEqual([0, 0]);

  // The same word twice is no list of protocols.
  const wrong = knock('agentplatform.live-view, ticket, ticket');
  const [said] = await once(wrong, 'data');
  expect(String(said)).toContain('400');
  await expect.poll(() => [leases, browser.clients.size]).toEqual([0, 0]);
});

it('counts those who are still coming among those who watch', async () => {
  const clients = Array.from({ length: 30 }, () => knock('agentplatform.live-view, ticket'));
  await expect.poll(() => refused.length).toBe(10);
  expect(String(refused[0])).toContain('watched by 20 people');
  expect(leases).toBe(20);
  for (const client of clients) client.destroy();
  await expect.poll(() => leases).toBe(0);
});
