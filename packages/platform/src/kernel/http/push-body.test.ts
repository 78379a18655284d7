import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { PushBody, requestUpstream } from './push-body.ts';

const open: { server?: Server; pool?: Pool }[] = [];
afterEach(async () => {
  for (const { server, pool } of open.splice(0)) {
    await pool?.destroy();
    server?.closeAllConnections();
    server?.close();
  }
});

async function serve(listener: RequestListener): Promise<{ pool: Pool; origin: string }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pool = new Pool(origin);
  open.push({ server, pool });
  return { pool, origin };
}

/** A proxy in front of `agent`, as the hot path is. */
async function proxy(agent: RequestListener): Promise<{ origin: string; outcome: Promise<unknown> }> {
  const upstream = await serve(agent);
  let settle: (outcome: unknown) => void = () => undefined;
  const outcome = new Promise((resolve) => {
    settle = resolve;
  });
  const { origin } = await serve(async (req, res) => {
    try {
      const answer = await requestUpstream(upstream.pool, { method: 'POST', path: '/', body: req });
      res.writeHead(answer.status);
      await answer.body.pushTo(res);
      settle('done');
    } catch (error) {
      settle(error);
      res.destroy();
    }
  });
  return { origin, outcome };
}

describe('a body that a web stream brings, all of it at once', () => {
  const PARTS = 50;

  /** What a client is sent, and whether the first part was on its way when the second was asked for. */
  async function sent(): Promise<{ wire: string; early: boolean }> {
    let early = false;
    const { origin } = await serve(async (_, res) => {
      function* parts() {
        yield Buffer.from('first');
        early = (res.socket?.bytesWritten ?? 0) > 0 && res.socket?.writableCorked === 0;
        for (let i = 1; i < PARTS; i++) yield Buffer.from(`,${i}`);
      }
      res.writeHead(200);
      await PushBody.from(ReadableStream.from(parts())).pushTo(res);
    });
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    return { wire: await text(socket), early };
  }

  it('sends the first part before the rest is read', async () => {
    expect((await sent()).early).toBe(true);
  });

  it('sends the rest in few writes, whole and in order', async () => {
    const [, body = ''] = (await sent()).wire.split('\r\n\r\n', 2);
    const chunks = body.split('\r\n').filter((_, i) => i % 2 === 1);
    expect(chunks.join('')).toBe(['first', ...Array.from({ length: PARTS - 1 }, (_, i) => i + 1)].join(','));
    expect(chunks.length).toBeLessThan(10);
  });
});

describe('an answer that only the end of its connection ends', () => {
  it.each([
    ['was whole', undefined, { text: 'half' }],
    ['was cut', new Error('the agent is gone'), { error: 'the agent is gone' }],
  ])('is asked after: it %s', async (_, why, expected) => {
    const server = createTcpServer((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf'));
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    try {
      const answer = await requestUpstream(pool, { method: 'GET', path: '/' }, undefined, async () => why);
      const seen = await buffer(answer.body).then(
        (whole) => ({ text: whole.toString() }),
        (error: Error) => ({ error: error.message }),
      );
      expect(seen).toEqual(expected);
    } finally {
      await pool.destroy();
      server.close();
    }
  });

  it('is not asked after when its length is known', async () => {
    let asked = 0;
    const { pool } = await serve((_req, res) => res.end('whole'));
    const answer = await requestUpstream(pool, { method: 'GET', path: '/' }, undefined, async () => {
      asked += 1;
      return undefined;
    });
    expect(await answer.body.head(100)).toBe('whole');
    expect(asked).toBe(0);
  });
});

describe('a client that leaves before the answer begins', () => {
  it('ends the request of the agent, which sees its connection close', async () => {
    const seen = { requests: 0, closed: 0 };
    const { pool } = await serve((req, res) => {
      seen.requests += 1;
      res.once('close', () => {
        seen.closed += 1;
      });
      req.resume();
    });
    let leave = (): void => undefined;
    const answer = requestUpstream(pool, { method: 'POST', path: '/', body: 'x' }, (run) => {
      leave = run;
      return () => undefined;
    });
    const outcome = expect(answer).rejects.toThrow('the client closed the connection');
    await expect.poll(() => seen.requests).toBe(1);
    expect(seen.closed).toBe(0);
    leave();
    await outcome;
    await expect.poll(() => seen.closed).toBe(1);
  });

  it('is not asked about once it has the head, and not left waiting for a connection', async () => {
    const { pool } = await serve((_req, res) => res.end('answer'));
    let calledOff = 0;
    const answer = await requestUpstream(pool, { method: 'POST', path: '/', body: 'x' }, () => () => {
      calledOff += 1;
    });
    expect(await answer.body.head(100)).toBe('answer');
    expect(calledOff).toBeGreaterThan(0);
    const gone = requestUpstream(pool, { method: 'POST', path: '/', body: 'x' }, (run) => {
      run();
      return () => undefined;
    });
    await expect(gone).rejects.toThrow('the client closed the connection');
    const next = await requestUpstream(pool, { method: 'POST', path: '/', body: 'x' });
    expect(await next.body.head(100)).toBe('answer');
  });
});

describe('push body', () => {
  it('carries a short answer and a long one unchanged', async () => {
    const long = Buffer.alloc(5_000_000, 'abc');
    const { origin } = await proxy((req, res) => res.end(req.url === '/' ? long : ''));
    const answer = await fetch(origin, { method: 'POST', body: 'x' });
    expect(Buffer.from(await answer.arrayBuffer()).equals(long)).toBe(true);
  });

  it('carries every byte value in an answer of one write', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const { origin } = await proxy((_req, res) => res.end(bytes));
    const answer = await fetch(origin, { method: 'POST', body: 'x' });
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
  });

  it('hands each part over as it comes', async () => {
    let release = (): void => undefined;
    const { origin } = await proxy((_req, res) => {
      res.write('first');
      release = () => res.end('second');
    });
    const answer = await fetch(origin, { method: 'POST', body: 'x' });
    const reader = answer.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('first');
    release();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('second');
  });

  it('breaks the client connection when the agent dies in the middle', async () => {
    const { origin, outcome } = await proxy((_req, res) => {
      res.write('half');
      setTimeout(() => res.destroy(), 20);
    });
    const answer = await fetch(origin, { method: 'POST', body: 'x' });
    await expect(answer.text()).rejects.toThrow();
    expect(await outcome).toBeInstanceOf(Error);
  });

  it('ends the agent request when the client goes away', async () => {
    let gone = (): void => undefined;
    const agentSawIt = new Promise<void>((resolve) => {
      gone = resolve;
    });
    const { origin, outcome } = await proxy((_req, res) => {
      res.write('first');
      res.on('close', () => gone());
    });
    const abort = new AbortController();
    const answer = await fetch(origin, { method: 'POST', body: 'x', signal: abort.signal });
    await answer.body?.getReader().read();
    abort.abort();
    await agentSawIt;
    expect(await outcome).toBeInstanceOf(Error);
  });

  it('makes a fast agent wait for a slow client', async () => {
    let written = 0;
    const { origin } = await proxy((_req, res) => {
      const chunk = Buffer.alloc(65_536);
      const more = (): void => {
        while (written < 64 * 1024 * 1024) {
          written += chunk.length;
          if (!res.write(chunk)) {
            res.once('drain', more);
            return;
          }
        }
        res.end();
      };
      more();
    });
    const answer = await fetch(origin, { method: 'POST', body: 'x' });
    await sleep(300);
    // What is under way are the sockets' buffers, not the body.
    expect(written).toBeLessThan(32 * 1024 * 1024);
    let read = 0;
    for await (const chunk of answer.body ?? []) read += chunk.length;
    expect(read).toBe(64 * 1024 * 1024);
  });

  it('can be iterated, and stops the agent when the reader stops', async () => {
    const upstream = await serve((_req, res) => {
      res.write('a');
      setTimeout(() => res.end('b'), 10);
    });
    const { body } = await requestUpstream(upstream.pool, { method: 'GET', path: '/' });
    let text = '';
    for await (const chunk of body) text += Buffer.from(chunk).toString();
    expect(text).toBe('ab');
    const endless = await serve((_req, res) => {
      res.write('x'.repeat(100));
    });
    const second = await requestUpstream(endless.pool, { method: 'GET', path: '/' });
    expect(await second.body.head(10)).toBe('xxxxxxxxxx');
  });
});
