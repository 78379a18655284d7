import { once } from 'node:events';
import { createServer, IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { WireResponse } from '@agentplatform/contract';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '../auth/index.ts';
import { FakeClock } from '../fake-clock.ts';
import { until } from '../sandbox/testing/until.ts';
import { HeldElsewhereError } from '../sessions/index.ts';
import { type Forwarded, PeerForwarder } from './forward.ts';
import { PeerTokens } from './peer-token.ts';

const principal: Principal = { kind: 'iam', accountId: '1', arn: 'arn', accessKeyId: 'AKIA', tags: {} };

async function* parts(): AsyncGenerator<Uint8Array> {
  for (const part of ['ab', 'cd']) yield Buffer.from(part);
}

const textOf = (answer: WireResponse | undefined): Promise<string> => text(answer?.body as AsyncIterable<Uint8Array>);

describe('what a server waits for from another', () => {
  let server: Server;
  let forwarder: PeerForwarder;
  const waiting: ServerResponse[] = [];
  beforeEach(async () => {
    waiting.length = 0;
    server = createServer((_req, response) => void waiting.push(response));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    forwarder = new PeerForwarder(
      new PeerTokens({ serverId: 'a', key: new Uint8Array(32).fill(1), clock: new FakeClock() }),
    );
  });
  afterEach(async () => {
    await forwarder.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  /** A request for a session of that life of server `b`. */
  function of(epoch: number): Forwarded {
    const req = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: `/${epoch}` });
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { req, held: new HeldElsewhereError({ serverId: 'b', epoch, address }), principal, sourceIp: '192.0.2.7' };
  }

  it('ends with the life that was asked, and goes on where a later one was', async () => {
    const [older, later] = [2, 3].map((epoch) =>
      forwarder.request(of(epoch), undefined, undefined, () => () => undefined),
    );
    const broken = expect(older).rejects.toMatchObject({ status: 503 });
    await until(() => waiting.length === 2);
    forwarder.abandon('another', 9);
    forwarder.abandon('b', 2);
    await broken;
    for (const response of waiting) response.end('done');
    expect(await textOf(await later)).toBe('done');
  });

  it('is told the length of a body that streams, where the client has told it', async () => {
    const lengths: (string | undefined)[] = [];
    server.removeAllListeners('request').on('request', async (req: IncomingMessage, response: ServerResponse) => {
      let bytes = 0;
      for await (const part of req) bytes += part.length;
      lengths.push(req.headers['content-length']);
      response.end(String(bytes));
    });
    for (const length of [4, undefined]) {
      const asked = of(2);
      asked.req.method = 'POST';
      const answer = await forwarder.request(asked, parts(), length, () => () => undefined);
      expect(await textOf(answer)).toBe('4');
    }
    expect(lengths).toEqual(['4', undefined]);
  });

  it('is told anew what the request is a part of where that is traced, and else as it came', async () => {
    const theirs = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`, baggage: 'a=1' };
    const told: (readonly unknown[])[] = [];
    server.removeAllListeners('request').on('request', ({ headers }: IncomingMessage, response: ServerResponse) => {
      told.push([headers.traceparent, headers.baggage, headers['x-mine']]);
      response.end();
    });
    const trace = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), sampled: true };
    for (const one of [{ trace }, {}]) {
      const asked = { ...of(2), ...one };
      asked.req.rawHeaders = ['Traceparent', theirs.traceparent, 'Baggage', theirs.baggage, 'X-Mine', 'kept'];
      await forwarder.request(asked, undefined, undefined, () => () => undefined);
    }
    expect(told).toEqual([
      [`00-${trace.traceId}-${trace.spanId}-01`, undefined, 'kept'],
      [theirs.traceparent, theirs.baggage, 'kept'],
    ]);
  });

  it('ends so for connections too', async () => {
    server.on('upgrade', (_req, socket) => void socket.on('error', () => undefined).write('hello'));
    const [older, later] = [new PassThrough(), new PassThrough()];
    await forwarder.upgrade(of(2), older, Buffer.alloc(0));
    await forwarder.upgrade(of(3), later, Buffer.alloc(0));
    const closed = once(older, 'close');
    forwarder.abandon('b', 2);
    await closed;
    expect(later.destroyed).toBe(false);
    const ended = once(later, 'close');
    forwarder.abandon('b', 3);
    await ended;
  });

  it('ends at once for a connection whose client left while the other server was called', async () => {
    const upgrades: string[] = [];
    server.on('upgrade', ({ url = '' }, socket) => {
      upgrades.push(url);
      socket.on('error', () => undefined).write('hello');
    });
    const called = once(server, 'connection');
    const left = new PassThrough();
    const asked = of(2);
    asked.req.rawHeaders = ['host', 'b', 'connection', 'upgrade', 'upgrade', 'websocket'];
    const joining = forwarder.upgrade(asked, left, Buffer.alloc(0));
    left.destroy();
    await joining;
    const [upstream] = (await called) as [Socket];
    // The other end closes only if ours does.
    await until(() => upstream.destroyed);
    expect(upgrades).toEqual([]);
  });
});
