import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { Agent, request, fetch as undiciFetch } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { FakeClock } from '../fake-clock.ts';
import { asOutboundError } from './errors.ts';
import { createOutbound, type Outbound, type OutboundDeps } from './outbound.ts';
import type { Resolve } from './resolver.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const run of cleanups.splice(0).reverse()) await run();
});

async function serve(
  listener: RequestListener,
  address = '127.0.0.1',
  port = 0,
): Promise<{ port: number; server: Server }> {
  const server = createServer(listener);
  await new Promise<void>((done) => server.listen(port, address, done));
  cleanups.push(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  return { port: (server.address() as AddressInfo).port, server };
}

function outbound(deps: Partial<OutboundDeps> = {}): Outbound {
  const made = createOutbound({ clock: systemClock, allowPrivate: ['127.0.0.1/32'], ...deps });
  cleanups.push(() => made.close());
  return made;
}

const codeOf = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => 'no error',
    (error) => asOutboundError(error)?.code ?? error,
  );

const answering = (...lists: string[][]): Resolve & { calls: number } => {
  const resolve = async () => {
    const list = lists[Math.min(resolve.calls++, lists.length - 1)] ?? [];
    return list.map((address) => ({ address, family: address.includes(':') ? (6 as const) : (4 as const) }));
  };
  resolve.calls = 0;
  return resolve;
};

describe('addresses', () => {
  it('are anywhere for what the operator configured', async () => {
    const { port } = await serve((_, res) => res.end('inside'));
    const own = outbound({ allowPrivate: [], anywhere: true });
    expect(await (await own.fetch(`http://localhost:${port}/`)).text()).toBe('inside');
  });

  it('closes loopback unless opened', async () => {
    const { port } = await serve((_, res) => res.end('inside'));
    const closed = outbound({ allowPrivate: [] });
    expect(await codeOf(closed.fetch(`http://127.0.0.1:${port}/`))).toBe('ADDRESS_REFUSED');
    expect(await codeOf(closed.fetch(`http://localhost:${port}/`))).toBe('ADDRESS_REFUSED');
    expect(await (await outbound().fetch(`http://localhost:${port}/`)).text()).toBe('inside');
  });

  it('the dispatcher alone is guarded too, for request and for fetch', async () => {
    const { port } = await serve((_, res) => res.end('inside'));
    const closed = outbound({ allowPrivate: [], ports: [port] });
    for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]']) {
      const url = `http://${host}:${port}/`;
      expect(await codeOf(request(url, { dispatcher: closed.dispatcher }))).toBe('ADDRESS_REFUSED');
      expect(await codeOf(undiciFetch(url, { dispatcher: closed.dispatcher }))).toBe('ADDRESS_REFUSED');
    }
    expect(await codeOf(request('http://example.com:1/', { dispatcher: closed.dispatcher }))).toBe('PORT_REFUSED');
  });

  it('does not follow a redirect inwards through the bare dispatcher either', async () => {
    const inside = await serve((_, res) => res.end('inside'), '127.0.0.2');
    const { port } = await serve((_, res) =>
      res.writeHead(302, { location: `http://127.0.0.2:${inside.port}/` }).end(),
    );
    expect(await (await undiciFetch(`http://127.0.0.1:${port}/`)).text()).toBe('inside');
    const guarded = outbound();
    expect(await codeOf(undiciFetch(`http://127.0.0.1:${port}/`, { dispatcher: guarded.dispatcher }))).toBe(
      'ADDRESS_REFUSED',
    );
  });

  it('a name that changes its answer (DNS rebinding) reaches the judged address only', async () => {
    const { port } = await serve((_, res) => res.end('outside'));
    await serve((_, res) => res.end('inside'), '127.0.0.2', port);
    const url = `http://rebind.test:${port}/`;

    // The attack against a guard that judges first and lets the client resolve again.
    const naive = answering(['127.0.0.1'], ['127.0.0.2']);
    const [judged] = await naive('rebind.test');
    expect(judged?.address).toBe('127.0.0.1');
    const agent = new Agent({
      connect: { lookup: (name, _, done) => void naive(name).then((all) => done(null, [...all])) },
    });
    cleanups.push(() => agent.destroy());
    expect(await (await request(url, { dispatcher: agent })).body.text()).toBe('inside');

    // The same answers against ours: one question, and its answer is the connection.
    const resolve = answering(['127.0.0.1'], ['127.0.0.2']);
    const guarded = outbound({ resolve });
    expect(await (await guarded.fetch(url)).text()).toBe('outside');
    expect(resolve.calls).toBe(1);
    // When it does ask again (a new connection), the new answer is judged as well.
    await guarded.close();
    const again = outbound({ resolve });
    expect(await codeOf(again.fetch(url))).toBe('ADDRESS_REFUSED');
  });

  it('of a mixed answer it uses only the open addresses', async () => {
    const { port } = await serve((_, res) => res.end('outside'));
    await serve((_, res) => res.end('inside'), '127.0.0.2', port);
    const resolve = answering(['127.0.0.2', '::1', '127.0.0.1']);
    expect(await (await outbound({ resolve }).fetch(`http://mixed.test:${port}/`)).text()).toBe('outside');
  });

  it('names that do not resolve, or not in time', async () => {
    expect(await codeOf(outbound({ resolve: answering([]) }).fetch('http://none.test/'))).toBe('NAME_NOT_RESOLVED');
    const failing: Resolve = () => Promise.reject(new Error('ENOTFOUND'));
    expect(await codeOf(outbound({ resolve: failing }).fetch('http://none.test/'))).toBe('NAME_NOT_RESOLVED');
    const clock = new FakeClock();
    const silent = codeOf(outbound({ clock, resolve: () => new Promise(() => {}) }).fetch('http://none.test/'));
    await clock.advance(10_000);
    expect(await silent).toBe('NAME_NOT_RESOLVED');
  });
});

describe('redirects', () => {
  const hops = async (): Promise<{ port: number; other: number; seen: IncomingMessage[] }> => {
    const seen: IncomingMessage[] = [];
    const end: RequestListener = (req, res) => {
      seen.push(req);
      res.end(`${req.method} at end`);
    };
    const { port: other } = await serve(end);
    const { port } = await serve((req, res) => {
      seen.push(req);
      const url = new URL(req.url ?? '/', 'http://x');
      const to = url.searchParams.get('to');
      if (to === null) end(req, res);
      else res.writeHead(Number(url.searchParams.get('status') ?? 302), { location: to }).end('moved');
    });
    return { port, other, seen };
  };

  it('are judged like the first address', async () => {
    const { port } = await hops();
    const go = (to: string) => codeOf(outbound().fetch(`http://127.0.0.1:${port}/?to=${encodeURIComponent(to)}`));
    expect(await go('http://127.0.0.2:9/')).toBe('ADDRESS_REFUSED');
    expect(await go('http://169.254.169.254/latest/meta-data')).toBe('ADDRESS_REFUSED');
    expect(await go('file:///etc/passwd')).toBe('SCHEME_REFUSED');
    expect(await go('http://a:b@127.0.0.1/')).toBe('USERINFO_REFUSED');
    expect(await go('http://[')).toBe('REDIRECT_REFUSED');
  });

  it('carry credentials within the origin only', async () => {
    const { port, other, seen } = await hops();
    const headers = { Authorization: 'Bearer t', Cookie: 'c', 'x-api-key': 'k', accept: 'text/plain' };
    const out = outbound();
    await (await out.fetch(`http://127.0.0.1:${port}/?to=/same`, { headers })).text();
    expect(seen.at(-1)?.headers).toMatchObject({ authorization: 'Bearer t', cookie: 'c', 'x-api-key': 'k' });
    const to = encodeURIComponent(`http://127.0.0.1:${other}/`);
    await (await out.fetch(`http://127.0.0.1:${port}/?to=${to}`, { headers })).text();
    const last = seen.at(-1)?.headers ?? {};
    expect(last.accept).toBe('text/plain');
    expect([last.authorization, last.cookie, last['x-api-key']]).toEqual([undefined, undefined, undefined]);
  });

  it('change the method as browsers do, and send a body again only when it can be', async () => {
    const { port, seen } = await hops();
    const out = outbound();
    const post = async (status: number, body: string | Readable): Promise<string> =>
      (await out.fetch(`http://127.0.0.1:${port}/?to=/end&status=${status}`, { method: 'post', body })).text();
    for (const status of [301, 302, 303]) expect(await post(status, 'x')).toBe('GET at end');
    expect(seen.at(-1)?.headers['content-length']).toBeUndefined();
    for (const status of [307, 308]) expect(await post(status, 'x')).toBe('POST at end');
    expect(await codeOf(post(307, Readable.from(['x'])))).toBe('BODY_NOT_REPLAYABLE');
  });

  it('are counted, and can be had as they are', async () => {
    const { port } = await serve((_, res) => res.writeHead(302, { location: '/' }).end());
    expect(await codeOf(outbound().fetch(`http://127.0.0.1:${port}/`))).toBe('TOO_MANY_REDIRECTS');
    expect((await outbound().fetch(`http://127.0.0.1:${port}/`, { redirects: 0 })).status).toBe(302);
  });
});

describe('bounds', () => {
  it('time, over the headers and over the body', async () => {
    const { port } = await serve((req, res) => {
      if (req.url === '/body') res.write('a');
    });
    for (const path of ['/', '/body']) {
      const run = async () => (await outbound().fetch(`http://127.0.0.1:${port}${path}`, { timeoutMs: 100 })).text();
      expect(await codeOf(run())).toBe('TIMEOUT');
    }
  });

  it("the caller's own signal keeps its reason", async () => {
    const { port } = await serve(() => {});
    const reason = new Error('stop');
    const call = outbound().fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.abort(reason) });
    await expect(call).rejects.toBe(reason);
    const stop = new AbortController();
    const late = outbound().fetch(`http://127.0.0.1:${port}/`, { signal: stop.signal });
    setTimeout(() => stop.abort(reason), 20);
    await expect(late).rejects.toBe(reason);
  });

  it('size, declared or not', async () => {
    const { port } = await serve((_, res) => res.end(Buffer.alloc(2_000)));
    const get = async (maxBytes: number) => (await outbound().fetch(`http://127.0.0.1:${port}/`, { maxBytes })).bytes();
    expect((await get(2_000)).length).toBe(2_000);
    expect(await codeOf(get(1_999))).toBe('TOO_LARGE');
  });

  it('size of what a small answer unfolds into, nested as well', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    expect(bomb.length).toBeLessThan(60_000);
    const { port } = await serve((req, res) => {
      const twice = req.url === '/twice';
      res.setHeader('content-encoding', twice ? 'gzip, gzip' : 'gzip');
      res.end(twice ? gzipSync(bomb) : bomb);
    });
    const get = async (path: string) => (await outbound().fetch(`http://127.0.0.1:${port}${path}`)).bytes();
    const before = process.memoryUsage().arrayBuffers;
    expect(await codeOf(get('/'))).toBe('TOO_LARGE');
    expect(await codeOf(get('/twice'))).toBe('TOO_LARGE');
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(40_000_000);
  });

  it('decodes what was asked for and refuses what cannot be decoded', async () => {
    const { port } = await serve((req, res) => {
      const coding = decodeURIComponent(req.url?.slice(1) ?? '');
      res.setHeader('content-encoding', coding).end(coding === 'gzip' ? gzipSync('hello') : 'not encoded');
    });
    const get = async (coding: string) =>
      (await outbound().fetch(`http://127.0.0.1:${port}/${encodeURIComponent(coding)}`)).text();
    expect(await get('gzip')).toBe('hello');
    for (const coding of ['br', 'deflate', 'rot13', 'gzip,gzip,gzip']) {
      expect(await codeOf(get(coding)), coding).toBe('BAD_ENCODING');
    }
  });

  it('calls at once, released when each answer is done', async () => {
    const { port } = await serve((_, res) => res.end('ok'));
    const out = outbound({ limits: { inFlight: 1 } });
    const url = `http://127.0.0.1:${port}/`;
    const first = await out.fetch(url);
    expect(await codeOf(out.fetch(url))).toBe('OVERLOADED');
    await first.text();
    await new Promise((done) => setImmediate(done));
    expect(await (await out.fetch(url)).text()).toBe('ok');
    expect(await codeOf(out.fetch('http://127.0.0.2/'))).toBe('ADDRESS_REFUSED');
    expect(await (await out.fetch(url)).text()).toBe('ok');
  });

  it('origins, of which those that never answer are forgotten like all others', async () => {
    const { promise: later, resolve: end } = Promise.withResolvers<void>();
    const { port } = await serve((req, res) => {
      if (req.url === '/') res.end('ok');
      if (req.url === '/slow') res.write('o', () => void later.then(() => res.end('k')));
    });
    const out = outbound({ limits: { origins: 4 }, resolve: answering(['127.0.0.1']) });
    const silent = (n: number) => codeOf(out.fetch(`http://silent-${n}.test:${port}/silent`, { timeoutMs: 50 }));
    const slow = await out.fetch(`http://slow.test:${port}/slow`);
    for (let n = 0; n < 10; n++) expect(await silent(n)).toBe('TIMEOUT');
    expect(await (await out.fetch(`http://other.test:${port}/`)).text()).toBe('ok');
    // What was under way meanwhile goes on.
    end();
    expect(await slow.text()).toBe('ok');
  });

  it('time while a name is being resolved', async () => {
    const out = outbound({ resolve: () => new Promise(() => undefined), limits: { connectTimeoutMs: 60_000 } });
    expect(await codeOf(out.fetch('http://silent.test/', { timeoutMs: 50 }))).toBe('TIMEOUT');
    const stop = new AbortController();
    const call = out.fetch('http://silent.test/', { signal: stop.signal });
    stop.abort(new Error('stop'));
    await expect(call).rejects.toThrow('stop');
  });

  it('calls at once of its own for what is apart', async () => {
    const { port } = await serve((req, res) => void (req.url === '/' && res.end('ok')));
    const out = outbound({ limits: { inFlight: 2 } });
    const other = out.apart();
    const held = [1, 2].map(() => codeOf(out.fetch(`http://127.0.0.1:${port}/silent`, { timeoutMs: 60_000 })));
    expect(await codeOf(out.fetch(`http://127.0.0.1:${port}/`))).toBe('OVERLOADED');
    expect(await (await other.fetch(`http://127.0.0.1:${port}/`)).text()).toBe('ok');
    expect(await codeOf(out.resolve('127.0.0.1'))).toBe('OVERLOADED');
    expect(await other.resolve('127.0.0.1')).toHaveLength(1);
    await out.close();
    expect(await Promise.all(held)).toEqual(['CONNECTION_FAILED', 'CONNECTION_FAILED']);
    expect(await codeOf(other.fetch(`http://127.0.0.1:${port}/`))).toBe('CONNECTION_FAILED');
  });

  it('errors: also what goes wrong in a body is one of its own, and none quotes what came', async () => {
    const { port } = await serve((req, res) => {
      if (req.url === '/json') return void res.end('secret, no JSON');
      res.writeHead(200, { 'content-length': '10' }).write('part');
      res.destroy();
    });
    const get = (path: string) => outbound().fetch(`http://127.0.0.1:${port}${path}`);
    expect(await codeOf(get('/').then((answer) => answer.text()))).toBe('CONNECTION_FAILED');
    const json = get('/json').then((answer) => answer.json());
    expect(await codeOf(json)).toBe('BAD_JSON');
    await expect(json).rejects.not.toThrow('secret');
  });

  it('headers that would redefine the call', async () => {
    const { port } = await serve((_, res) => res.end('ok'));
    const get = (headers: Record<string, string>) => codeOf(outbound().fetch(`http://127.0.0.1:${port}/`, { headers }));
    expect(await get({ Host: 'internal' })).toBe('BAD_HEADER');
    expect(await get({ 'Transfer-Encoding': 'chunked' })).toBe('BAD_HEADER');
    expect(await get({ 'x-a': 'b\r\nx-c: d' })).toBe('CONNECTION_FAILED');
    expect(await get({ host: `127.0.0.1:${port}` })).toBe('no error');
  });
});
