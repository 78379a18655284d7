import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { connect as connectSecurely } from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../clock.ts';
import { FakeClock } from '../fake-clock.ts';
import { openLocalAuthority } from '../tls/index.ts';
import { lingerAfterAnswer } from './linger.ts';

const BODY_BYTES = 20_000_000;
const HEAD = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`;
const REFUSAL = 'this is too much';
const REFUSED = new RegExp(`^HTTP/1.1 400 .*${REFUSAL}$`, 's');

const servers: Server[] = [];
const clients: Socket[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
  for (const server of servers.splice(0)) server.close();
});

/** The port of a server that refuses each request before its body is there, by the last answer of the connection. */
async function refusing(
  before: (req: IncomingMessage) => void,
  create: (listener: RequestListener) => Server = createServer,
): Promise<number> {
  const server = create((req, res) => {
    before(req);
    res.writeHead(400, { connection: 'close', 'content-length': REFUSAL.length }).end(REFUSAL);
  }).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function dial(port: number): Promise<Socket> {
  // It sends on when the other side has ended.
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  clients.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** What is answered to a client that sends all of its request before it looks for an answer, as those of Python do. */
async function sendAll(socket: Socket): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject).pause();
    socket.write(HEAD);
    socket.write(Buffer.alloc(BODY_BYTES), () => resolve());
  });
  return Buffer.concat(await socket.toArray()).toString();
}

describe('the refusal of a body that is still on its way', () => {
  it('is lost where nothing is done about it', async () => {
    const port = await refusing(() => undefined);
    await expect(sendAll(await dial(port))).rejects.toThrow(/EPIPE|ECONNRESET/);
  });

  it.each<[string, (req: IncomingMessage) => void]>([
    ['nobody has begun to read', () => undefined],
    ['somebody has begun to read', (req) => req.once('data', () => req.pause())],
    ['goes through a pipe that is stuck', (req) => req.pipe(new PassThrough())],
  ])('reaches a client whose body %s, and then the connection ends', async (_, read) => {
    const port = await refusing((req) => {
      read(req);
      lingerAfterAnswer(req, systemClock);
    });
    for (let i = 0; i < 5; i += 1) expect(await sendAll(await dial(port))).toMatch(REFUSED);
  });

  it('reaches a client over TLS', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'linger-'));
    try {
      const authority = await openLocalAuthority(dir, ['localhost'], Date.now());
      const { certificate: cert, key } = authority.issue(Date.now());
      const port = await refusing(
        (req) => lingerAfterAnswer(req, systemClock),
        (listener) => createSecureServer({ cert, key }, listener),
      );
      const ca = await readFile(authority.caFile, 'utf8');
      const socket = connectSecurely({ host: '127.0.0.1', port, ca, servername: 'localhost' });
      clients.push(socket);
      await once(socket, 'secureConnect');
      expect(await sendAll(socket)).toMatch(REFUSED);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});

describe('a client that is refused and does not come to an end', () => {
  /** The server's side of a connection whose client has its answer and has not sent the body. */
  async function refused(clock: FakeClock, limits?: Parameters<typeof lingerAfterAnswer>[2]) {
    let server: Socket | undefined;
    const port = await refusing((req) => {
      server = req.socket;
      lingerAfterAnswer(req, clock, limits);
    });
    const client = await dial(port);
    client.on('error', () => undefined).write(HEAD);
    await once(client.resume(), 'end');
    if (!server) throw new Error('the server has seen a request');
    return { client, server };
  }

  /** Sends and waits until it has come. */
  async function send(client: Socket, server: Socket, bytes: number): Promise<void> {
    const { bytesRead } = server;
    client.write(Buffer.alloc(bytes));
    await vi.waitFor(() => expect(server.bytesRead).toBe(bytesRead + bytes));
  }

  it('is cut off when it falls silent', async () => {
    const clock = new FakeClock();
    const { client, server } = await refused(clock);
    await clock.advance(4_000);
    await send(client, server, 1);
    await clock.advance(4_000);
    expect(server.destroyed).toBe(false);
    await clock.advance(2_000);
    expect(server.destroyed).toBe(true);
  });

  it('is cut off when it sends on, however slowly', async () => {
    const clock = new FakeClock();
    const { client, server } = await refused(clock);
    for (let second = 1; second < 30; second += 1) {
      await send(client, server, 1);
      await clock.advance(1_000);
    }
    expect(server.destroyed).toBe(false);
    await send(client, server, 1);
    await clock.advance(1_000);
    expect(server.destroyed).toBe(true);
  });

  it('is cut off when it sends more than it is worth to read', async () => {
    const clock = new FakeClock();
    const { client, server } = await refused(clock, { idleSeconds: 5, seconds: 30, bytes: 1_000_000 });
    await send(client, server, 1_000_000);
    await clock.advance(1_000);
    expect(server.destroyed).toBe(false);
    await send(client, server, 1);
    await clock.advance(1_000);
    expect(server.destroyed).toBe(true);
  });

  it('leaves nothing when it goes away itself', async () => {
    const clock = new FakeClock();
    const after = vi.spyOn(clock, 'after');
    const { client, server } = await refused(clock);
    client.resetAndDestroy();
    await vi.waitFor(() => expect(server.destroyed).toBe(true));
    const armed = after.mock.calls.length;
    await clock.advance(60_000);
    expect(after.mock.calls.length).toBe(armed);
  });
});
