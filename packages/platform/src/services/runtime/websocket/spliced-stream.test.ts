import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { acceptOf, acceptUpgrade, readHandshake, SplicedStream } from '../../../kernel/http/index.ts';
import type { Lease } from '../../../kernel/sessions/index.ts';
import { dialAgent } from './agent-stream.ts';

const endings: (() => void)[] = [];
afterEach(() => {
  for (const end of endings.splice(0)) end();
});

const PERIOD = 30_000;
const signal = AbortSignal.timeout(60_000);

function leaseAt(port: number): Lease {
  const sandbox = { address: () => ({ host: '127.0.0.1', port }), exited: new Promise(() => undefined) };
  return { sandbox, session: {} } as unknown as Lease;
}

const dial = (port: number, protocols: string[] = []) =>
  dialAgent(leaseAt(port), 8080, { path: '/ws', headers: [], protocols, handshakeMs: 5000, signal });

/** A server that splices whoever comes with the agent at that port; `streams` has what it opened. */
async function gateway(agentPort: number) {
  const clock = new FakeClock();
  const streams: SplicedStream[] = [];
  const server = createServer();
  server.on('upgrade', async (req, socket, head) => {
    const key = readHandshake(req);
    const agent = await dial(agentPort);
    acceptUpgrade(socket, key, []);
    const client = { socket, head };
    const explain = async (): Promise<string> => 'it is gone';
    streams.push(new SplicedStream({ client, agent, maxMessageBytes: 1000, pingIntervalMs: PERIOD, clock, explain }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  endings.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { clock, streams, port };
}

/** An echo on `ws`; `sockets` are its connections. */
async function echoAgent() {
  const sockets: WebSocket[] = [];
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket) => {
    sockets.push(socket);
    socket.on('message', (data, binary) => socket.send(data, { binary }));
  });
  await once(server, 'listening');
  endings.push(() => server.close());
  return { port: (server.address() as AddressInfo).port, sockets };
}

/** An agent that answers the handshake and then does as it is told. */
async function rawAgent(answer = (key: string) => `Sec-WebSocket-Accept: ${acceptOf(key)}`) {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (request) => {
      const key = /sec-websocket-key: (\S+)/i.exec(request.toString())?.[1] ?? '';
      socket.write(`HTTP/1.1 101 Hi\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${answer(key)}\r\n\r\n`);
      sockets.push(socket);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  endings.push(() => server.close());
  return { port: (server.address() as AddressInfo).port, sockets };
}

async function client(port: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
  socket.on('error', () => undefined);
  endings.push(() => socket.terminate());
  await once(socket, 'open', { signal });
  return socket;
}

const closeOf = async (socket: WebSocket): Promise<[number, string]> => {
  const [code, reason] = await once(socket, 'close', { signal });
  return [code, String(reason)];
};

describe('two WebSockets that are spliced', () => {
  it('hear each other, pings and empty ones too; our own pings are answered to us alone', async () => {
    const agent = await echoAgent();
    const { clock, port } = await gateway(agent.port);
    const socket = await client(port);
    const pongs: string[] = [];
    socket.on('pong', (data) => pongs.push(String(data)));
    for (const payload of ['', 'mine']) socket.ping(payload);
    socket.send('x'.repeat(1000));
    expect(String((await once(socket, 'message', { signal }))[0])).toHaveLength(1000);
    expect(pongs).toEqual(['', 'mine']);
    const pinged = Promise.all([
      once(socket, 'ping', { signal }),
      once(agent.sockets[0] ?? socket, 'ping', { signal }),
    ]);
    agent.sockets[0]?.on('pong', () => pongs.push('at the agent'));
    for (let beat = 0; beat < 3; beat += 1) {
      await clock.advance(PERIOD);
      await pinged;
      socket.send('still here');
      await once(socket, 'message', { signal });
    }
    expect(pongs).toEqual(['', 'mine']);
  });

  it('end together: a client that is silent is given up, and the agent learns of it', async () => {
    const agent = await echoAgent();
    const { clock, port, streams } = await gateway(agent.port);
    // Its system takes what comes, and nobody reads it.
    const half = connect(port, '127.0.0.1');
    half.on('error', () => undefined);
    endings.push(() => half.destroy());
    half.write(
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
        `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\n\r\n`,
    );
    await once(half, 'readable', { signal });
    const gone = closeOf(agent.sockets[0] ?? expect.unreachable());
    await clock.advance(PERIOD);
    // The agent answers in the meantime, which the client does not.
    await turn();
    await clock.advance(PERIOD);
    expect(await gone).toEqual([1001, '']);
    await streams[0]?.closed;
  });

  it('are told goodbye after the frame that is on its way, or are cut off when its rest never comes', async () => {
    const agent = await rawAgent();
    const { port, streams } = await gateway(agent.port);
    const whole = await client(port);
    agent.sockets[0]?.write(Buffer.from([0x82, 4, 1, 2]));
    // Once it is on its way: what the client has been sent before is known to have gone through.
    await expect.poll(() => streams.length).toBe(1);
    const ponged = once(agent.sockets[0] ?? expect.unreachable(), 'data', { signal });
    whole.ping('through');
    await ponged;
    streams[0]?.close(1001, 'enough');
    const message = once(whole, 'message', { signal });
    const goodbye = closeOf(whole);
    agent.sockets[0]?.write(Buffer.from([3, 4]));
    expect((await message)[0]).toEqual(Buffer.from([1, 2, 3, 4]));
    expect(await goodbye).toEqual([1001, 'enough']);

    const cut = await client(port);
    const abrupt = closeOf(cut);
    agent.sockets[1]?.end(Buffer.from([0x82, 4, 1, 2]));
    expect(await abrupt).toEqual([1006, '']);
    await streams[1]?.closed;

    const orphan = await client(port);
    const explained = closeOf(orphan);
    agent.sockets[2]?.destroy();
    expect(await explained).toEqual([1011, 'it is gone']);
    await streams[2]?.closed;
  });

  it('break no rule unnoticed: who does is told, and the other one too', async () => {
    const agent = await rawAgent();
    const { port } = await gateway(agent.port);
    const socket = await client(port);
    const closed = closeOf(socket);
    const told = once(agent.sockets[0] ?? expect.unreachable(), 'data', { signal });
    agent.sockets[0]?.write(Buffer.from([0x83, 0]));
    expect(await closed).toEqual([1011, expect.stringContaining('the agent: ')]);
    expect((await told)[0][0]).toBe(0x88);
  });
});

describe('an agent that is asked for a WebSocket', () => {
  it.each([
    ['answers another handshake', () => `Sec-WebSocket-Accept: ${acceptOf('other')}`, /not to this handshake/],
    [
      'chooses what was not offered',
      (key: string) => `Sec-WebSocket-Accept: ${acceptOf(key)}\r\nSec-WebSocket-Protocol: x`,
      /subprotocol/,
    ],
    [
      'extends the protocol',
      (key: string) => `Sec-WebSocket-Accept: ${acceptOf(key)}\r\nSec-WebSocket-Extensions: y`,
      /extension/,
    ],
  ])('and %s is refused', async (_what, answer, message) => {
    const agent = await rawAgent(answer);
    await expect(dial(agent.port, ['chat'])).rejects.toMatchObject({
      code: 'RuntimeClientError',
      message: expect.stringMatching(message),
    });
  });
});
