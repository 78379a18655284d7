import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionOptions,
  connect,
  constants,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { type AddressInfo, connect as connectSocket, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { frame, PREFACE, reset, TYPE } from '../../../../../../tests/support/http2/frames.ts';
import { systemClock } from '../../clock.ts';
import { silent } from '../../storage/testing/databases.ts';
import { Unhandled } from '../../unhandled.ts';
import { LOOPBACK, TrustedAddresses } from '../trusted-addresses.ts';
import { type Http2Side, type ServeHttp2Deps, serveHttp2 } from './serve-http2.ts';

const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;

let server: Server;
let side: Http2Side;
let port: number;
const sessions: ClientHttp2Session[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy();
  for (const socket of sockets.splice(0)) socket.destroy();
  side.destroy();
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

async function serve(handle: RequestListener, deps: Partial<ServeHttp2Deps> = {}): Promise<void> {
  server = createServer({ keepAliveTimeout: 60_000 }, handle);
  side = serveHttp2(server, {
    caps: { perAddress: 1000, trusted: new TrustedAddresses(LOOPBACK) },
    ...{ maxStreams: 1000, headMs: 60_000, idleMs: 60_000, probeMs: 120_000, clock: systemClock },
    unhandled: new Unhandled(silent),
    ...deps,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
}

function session(options?: ClientSessionOptions): ClientHttp2Session {
  const made = connect(`http://127.0.0.1:${port}`, options).on('error', () => {});
  sessions.push(made);
  return made;
}

function ask(from: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: string | 'open'): ClientHttp2Stream {
  const stream = from.request(headers, { endStream: body === undefined }).on('error', () => {});
  if (body !== undefined && body !== 'open') stream.end(body);
  return stream;
}

interface Answer {
  status: number | undefined;
  headers: Record<string, unknown>;
  body: string;
}

async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  const [headers] = await once(stream, 'response');
  return { status: headers[':status'], headers, body: await text(stream) };
}

/** How a stream ended: its code of RST_STREAM. */
async function endOf(stream: ClientHttp2Stream): Promise<number | undefined> {
  stream.resume();
  if (!stream.destroyed) await new Promise((done) => stream.once('close', done));
  return stream.rstCode;
}

const echo: RequestListener = async (req, res) => {
  const body = await text(req).catch(() => 'cut');
  res.setHeader('x-hop', 'kept');
  res.setHeader('set-cookie', ['a=1', 'b=2']);
  const { method, url, headers, rawHeaders, httpVersion, socket } = req;
  res.end(JSON.stringify({ method, url, headers, rawHeaders, httpVersion, from: socket.remoteAddress, body }));
};

/** A connection that writes its own bytes; what it was sent. */
function raw(...parts: (string | Buffer)[]): { socket: Socket; received(): Buffer } {
  const socket = connectSocket(port, '127.0.0.1').on('error', () => {});
  sockets.push(socket);
  const got: Buffer[] = [];
  socket.on('data', (part: Buffer) => got.push(part));
  for (const part of parts) socket.write(part);
  return { socket, received: () => Buffer.concat(got) };
}

const SETTINGS = frame(TYPE.settings, 0, 0);
/** `GET http /` of authority `x`, by the static table of HPACK. */
const GET = Buffer.from([0x82, 0x86, 0x84, 0x41, 0x01, 0x78]);

const closed = (socket: Socket): Promise<unknown> =>
  socket.closed ? Promise.resolve() : new Promise((done) => socket.once('close', done));
const open = (): Promise<number> =>
  new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));

/** What a request of HTTP/1.1 on the same port is answered. */
async function http1(path = '/'): Promise<string> {
  const sent = request({ port, host: '127.0.0.1', path, agent: false }).on('error', () => {});
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return text(answer);
}

describe('HTTP/2 without TLS', () => {
  it('reaches the handlers of HTTP/1.1 with the same request, on the same port', async () => {
    await serve(echo);
    const client = session();
    const sent = {
      ...{ ':method': 'POST', ':path': '/x?y=1', ':authority': 'here:1', 'x-a': '1', te: 'trailers' },
      cookie: ['a=1', 'b=2'],
    };
    const { status, headers, body } = await answerOf(ask(client, sent, 'hello'));
    expect(status).toBe(200);
    expect(headers).toMatchObject({ 'x-hop': 'kept', 'set-cookie': ['a=1', 'b=2'], date: expect.any(String) });
    const hops = ['connection', 'keep-alive', 'transfer-encoding'];
    expect(Object.keys(headers).filter((name) => hops.includes(name))).toEqual([]);
    const got = JSON.parse(body);
    expect(got).toMatchObject({ method: 'POST', url: '/x?y=1', httpVersion: '1.1', from: '127.0.0.1', body: 'hello' });
    expect(got.headers).toEqual({
      ...{ 'x-a': '1', host: 'here:1', cookie: 'a=1; b=2' },
      ...{ 'transfer-encoding': 'chunked', connection: 'close' },
    });
    expect(JSON.parse(await http1()).headers).not.toHaveProperty('cookie');
    const known = await answerOf(ask(client, { ':method': 'PUT', 'content-length': '5' }, 'hello'));
    expect(JSON.parse(known.body).headers).toMatchObject({ 'content-length': '5' });
    expect(JSON.parse(known.body).headers).not.toHaveProperty('transfer-encoding');
    const bare = await answerOf(ask(client, { ':method': 'GET' }));
    expect(JSON.parse(bare.body)).toMatchObject({ method: 'GET', body: '' });
    expect(JSON.parse(bare.body).headers).not.toHaveProperty('transfer-encoding');
    const head = await answerOf(ask(client, { ':method': 'HEAD' }));
    expect(head).toMatchObject({ status: 200, body: '' });
  });

  it('carries large bodies both ways, many at once', async () => {
    await serve((req, res) => void req.pipe(res));
    // The client counts what it has not sent yet.
    const client = session({ maxSessionMemory: 100 });
    const bodies = Array.from({ length: 50 }, (_, i) => String.fromCharCode(97 + (i % 26)).repeat(300_000 + i));
    const answers = await Promise.all(
      bodies.map((body) => answerOf(ask(client, { ':method': 'POST' }, body)).then(({ body: back }) => back === body)),
    );
    expect(answers.every(Boolean)).toBe(true);
  });

  it('is known by its first three bytes, in however many pieces they come', async () => {
    await serve(echo);
    const { socket, received } = raw('P');
    await new Promise((resolve) => setImmediate(resolve));
    socket.write('R');
    await expect.poll(open).toBe(1);
    socket.write(PREFACE.subarray(2));
    socket.write(Buffer.concat([SETTINGS, frame(1, 5, 1, GET)]));
    await expect.poll(() => received().includes('"method":"GET"')).toBe(true);
    const other = raw('P');
    await new Promise((resolve) => setImmediate(resolve));
    other.socket.write('OST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi');
    await expect.poll(() => other.received().toString()).toContain('"body":"hi"');
  });

  it('answers before the body has come to its end, and takes the next request', async () => {
    await serve((req, res) => {
      if (req.url === '/') res.writeHead(413).end('x'.repeat(200_000));
      else res.end('next');
    });
    const client = session();
    const early = ask(client, { ':method': 'POST' }, 'open');
    early.write('begin');
    const { status, body } = await answerOf(early);
    expect({ status, length: body.length }).toEqual({ status: 413, length: 200_000 });
    expect(await endOf(early)).toBe(NGHTTP2_NO_ERROR);
    expect((await answerOf(ask(client, { ':path': '/next' }))).body).toBe('next');
  });

  it('breaks an answer that breaks, before and within its body', async () => {
    await serve((req, res) => {
      if (req.url === '/never') return void res.destroy();
      res.write('begin');
      res.once('drain', () => undefined);
      setImmediate(() => res.destroy());
    });
    const client = session();
    expect(await endOf(ask(client, { ':path': '/never' }))).toBe(constants.NGHTTP2_INTERNAL_ERROR);
    expect(await endOf(ask(client, { ':path': '/half' }))).toBe(constants.NGHTTP2_INTERNAL_ERROR);
  });

  it.each([
    ['a status beyond 599', (res: ServerResponse) => res.writeHead(600)],
    ['a status beyond 599 with a body', (res: ServerResponse) => res.writeHead(999).write('text')],
    ['a head of 60 KB', (res: ServerResponse) => res.setHeader('x-long', 'x'.repeat(60_000))],
    ['a head of 300 KB', (res: ServerResponse) => res.setHeader('x-long', 'x'.repeat(300_000))],
  ])(
    'ends the stream of an answer that it cannot carry, and never as if nobody had seen the request: %s',
    async (_name, answer) => {
      let seen = 0;
      await serve(
        (req, res) => {
          if (req.url === '/fine') return void res.end('fine');
          seen += 1;
          answer(res);
          res.end();
        },
        { maxStreams: 2 },
      );
      const client = session();
      for (let i = 1; i <= 4; i++) {
        expect(await endOf(ask(client, { ':path': '/' }))).toBe(NGHTTP2_INTERNAL_ERROR);
        expect(seen).toBe(i);
      }
      // None of them holds a place.
      expect((await answerOf(ask(client, { ':path': '/fine' }))).body).toBe('fine');
    },
  );

  it('carries a long head, and drops what is of one connection alone', async () => {
    await serve((_req, res) => {
      res.setHeader('x-long', 'x'.repeat(14_000)).setHeader('http2-settings', 'AAMAAABk').end();
    });
    const { status, headers } = await answerOf(ask(session(), { ':path': '/' }));
    expect(status).toBe(200);
    expect(headers['x-long']).toHaveLength(14_000);
    expect(headers).not.toHaveProperty('http2-settings');
  });

  it('asks for the body where the client waits for that', async () => {
    await serve(echo);
    const stream = ask(session(), { ':method': 'POST', expect: '100-continue' }, 'open');
    await once(stream, 'continue');
    stream.end('now');
    expect(JSON.parse((await answerOf(stream)).body).body).toBe('now');
  });

  it('refuses two hosts, CONNECT and a path that HTTP/1.1 cannot carry', async () => {
    await serve(echo);
    const client = session();
    const code = constants.NGHTTP2_PROTOCOL_ERROR;
    expect(await endOf(ask(client, { ':authority': 'a', host: 'b' }))).toBe(code);
    expect(await endOf(ask(client, { ':method': 'CONNECT', ':authority': 'a:1' }))).toBe(code);
    expect((await answerOf(ask(client, { ':authority': 'a', host: 'a' }))).status).toBe(200);
  });
});

describe('a client that is gone', () => {
  it.each<[string, (socket: Socket) => void]>([
    ['by a reset', (socket) => socket.write(reset(1, NGHTTP2_CANCEL))],
    ['by a reset that names no error', (socket) => socket.write(reset(1, NGHTTP2_NO_ERROR))],
    ['with its connection', (socket) => socket.destroy()],
    ['with a reset of its connection', (socket) => socket.resetAndDestroy()],
    ['with the end of its connection', (socket) => socket.end()],
    ['with garbage', (socket) => socket.write(Buffer.alloc(100, 0xff))],
  ])('%s in the midst of its body is no client whose body is whole', async (_name, leave) => {
    const ends: string[] = [];
    let begun = false;
    await serve((req, res) => {
      req.once('data', () => (begun = true));
      text(req).then(
        (body) => ends.push(`whole: ${body}`),
        () => ends.push('cut'),
      );
      res.once('close', () => ends.push(res.writableFinished ? 'finished' : 'closed'));
    });
    const { socket } = raw(PREFACE, SETTINGS, frame(1, 4, 1, GET), frame(0, 0, 1, Buffer.from('begin')));
    await expect.poll(() => begun).toBe(true);
    leave(socket);
    await expect.poll(() => ends.toSorted()).toEqual(['closed', 'cut']);
    // The control: the end of the body, and nothing else, makes it whole.
    ends.length = 0;
    raw(PREFACE, SETTINGS, frame(1, 4, 1, GET), frame(0, 1, 1, Buffer.from('all')));
    await expect.poll(() => ends).toEqual(['whole: all']);
  });

  it('while it is answered is told to the handler, and only then', async () => {
    const ends: boolean[] = [];
    await serve((req, res) => {
      res.once('close', () => ends.push(res.writableFinished));
      if (req.url === '/whole') res.end('whole');
      else res.write('begin');
    });
    const client = session();
    for (let i = 0; i < 20; i += 1) await answerOf(ask(client, { ':path': '/whole' }));
    await expect.poll(() => ends).toEqual(Array.from({ length: 20 }, () => true));
    const stream = ask(client, {});
    await once(stream, 'response');
    stream.close(NGHTTP2_CANCEL);
    await expect.poll(() => ends.at(-1)).toBe(false);
  });
});

describe('the bounds of HTTP/1.1', () => {
  it('hold for the size of a head', async () => {
    await serve(echo);
    const client = session({ maxSendHeaderBlockLength: 1_000_000 });
    expect((await answerOf(ask(client, { 'x-a': 'y'.repeat(10_000) }))).status).toBe(200);
    const large = ask(client, { 'x-a': 'y'.repeat(17_000) });
    expect((await Promise.race([answerOf(large).then(({ status }) => status), endOf(large)])) ?? 0).not.toBe(200);
    const many = ask(client, Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, 'y'])));
    expect(await endOf(many)).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });

  it('hold for the time until a first request, and after the last', async () => {
    const timers: { ms: number; run: () => void }[] = [];
    const clock = {
      ...systemClock,
      after(ms: number, run: () => void) {
        const timer = { ms, run };
        timers.push(timer);
        return () => void (timers.includes(timer) && timers.splice(timers.indexOf(timer), 1));
      },
    };
    const elapse = (ms: number): void => {
      for (const timer of timers.filter((one) => one.ms <= ms)) timer.run();
    };
    await serve(echo, { headMs: 1000, idleMs: 5000, clock });
    const silent = raw();
    const speaks = raw(PREFACE, SETTINGS);
    // The head of its request never ends.
    const halting = raw(PREFACE, SETTINGS, frame(1, 1, 1, GET));
    const client = session();
    await answerOf(ask(client, {}));
    await expect
      .poll(() =>
        timers
          .map(({ ms }) => ms)
          .filter((ms) => ms < 120_000)
          .toSorted(),
      )
      .toEqual([1000, 1000, 1000, 5000]);
    elapse(1000);
    await Promise.all([silent, speaks, halting].map(({ socket }) => closed(socket)));
    expect(client.destroyed).toBe(false);
    const busy = ask(client, { ':method': 'POST' }, 'open');
    busy.write('x');
    await expect.poll(() => timers.filter(({ ms }) => ms === 5000)).toEqual([]);
    busy.end();
    await answerOf(busy);
    await expect.poll(() => timers.some(({ ms }) => ms === 5000)).toBe(true);
    elapse(5000);
    await expect.poll(() => client.destroyed).toBe(true);
  });

  it('end a connection whose client does not answer whether it is there', async () => {
    await serve(echo, { probeMs: 50 });
    const { socket } = raw(PREFACE, SETTINGS, frame(1, 4, 1, GET));
    const client = session();
    await answerOf(ask(client, {}));
    await closed(socket);
    await new Promise((done) => client.ping(done));
    expect((await answerOf(ask(client, {}))).status).toBe(200);
  });

  it('count a stream as a connection of its address', async () => {
    const held: (() => void)[] = [];
    const caps = { perAddress: 4, trusted: new TrustedAddresses([]) };
    await serve((_req, res) => void held.push(() => res.end('here')), { caps });
    const client = session();
    const streams = Array.from({ length: 5 }, () => ask(client, {}));
    const code = constants.NGHTTP2_REFUSED_STREAM;
    const refused = streams.map(async (stream) => (await endOf(stream)) === code);
    expect(await Promise.all(refused.slice(3))).toEqual([true, true]);
    await expect.poll(() => held.length).toBe(3);
    for (const answer of held.splice(0)) answer();
    expect(await Promise.all(refused.slice(0, 3))).toEqual([false, false, false]);
    const next = ask(client, {});
    await expect.poll(() => held.length).toBe(1);
    held.pop()?.();
    expect((await answerOf(next)).body).toBe('here');
  });

  it('allow no more streams than connections, and a hundred to one connection', async () => {
    let most = 0;
    let now = 0;
    const held: (() => void)[] = [];
    await serve(
      (_req, res) => {
        now += 1;
        most = Math.max(most, now);
        res.once('close', () => (now -= 1));
        held.push(() => res.end());
      },
      { maxStreams: 120 },
    );
    const [one, other] = [session(), session()];
    const streams = [one, other].flatMap((client) => Array.from({ length: 150 }, () => ask(client, {})));
    const ends = streams.map(endOf);
    await expect.poll(() => held.length).toBe(120);
    const timer = setInterval(() => {
      for (const answer of held.splice(0)) answer();
    }, 5);
    const codes = await Promise.all(ends);
    clearInterval(timer);
    expect(most).toBe(120);
    expect(codes).toContain(constants.NGHTTP2_REFUSED_STREAM);
    expect(codes.filter((code) => code === NGHTTP2_NO_ERROR).length).toBeGreaterThan(150);
  });
});

describe('a flood', () => {
  const flood = async (count: number, each: (i: number) => Buffer): Promise<Socket> => {
    const { socket } = raw(PREFACE, SETTINGS);
    for (let i = 0; i < count && !socket.destroyed; i += 100) {
      const many = Array.from({ length: 100 }, (_, at) => each(i + at));
      if (!socket.write(Buffer.concat(many)))
        await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined);
    }
    return socket;
  };
  const id = (i: number): number => 2 * i + 1;

  it.each<[string, number, (i: number) => Buffer]>([
    ['of PING', 2000, () => frame(6, 0, 0, Buffer.alloc(8))],
    ['of SETTINGS', 2000, () => SETTINGS],
    [
      'of streams that are reset at once',
      5000,
      (i) => Buffer.concat([frame(1, 5, id(i), GET), reset(id(i), NGHTTP2_CANCEL)]),
    ],
    ['of CONTINUATION', 5000, (i) => (i === 0 ? frame(1, 1, 1, GET) : frame(9, 0, 1, Buffer.from([0x82])))],
    ['of empty DATA', 2000, (i) => (i === 0 ? frame(1, 4, 1, GET) : frame(0, 0, 1))],
    ['of frames for no stream', 2000, () => frame(8, 0, 0, Buffer.alloc(4))],
  ])('%s ends its connection and no other', async (_name, count, each) => {
    await serve((_req, res) => void res.end('here'));
    const client = session();
    await answerOf(ask(client, {}));
    const socket = await flood(count, each);
    await closed(socket);
    expect((await answerOf(ask(client, {}))).body).toBe('here');
    expect(await http1()).toBe('here');
  });

  it.each<[string, Buffer]>([
    ['PING', frame(TYPE.ping, 0, 0, Buffer.alloc(8))],
    ['SETTINGS', SETTINGS],
  ])('of %s whose client takes each answer ends its connection, too', async (_name, each) => {
    await serve((_req, res) => void res.end('here'));
    const { socket } = raw(PREFACE, SETTINGS);
    let sent = 0;
    // Far more than a second's worth is not to be answered, however long that takes.
    for (; sent < 2000 && !socket.destroyed; sent += 50) {
      const answered = new Promise((done) => socket.once('data', done).once('close', done));
      socket.write(Buffer.concat(Array.from({ length: 50 }, () => each)));
      await answered;
    }
    expect(sent).toBeLessThan(2000);
  });

  it('is not what a busy client sends', async () => {
    await serve((_req, res) => void setImmediate(() => res.end('here')));
    const client = session();
    for (let i = 0; i < 20; i += 1) {
      const streams = Array.from({ length: 20 }, () => ask(client, {}));
      await new Promise((done) => client.ping(() => done(undefined)));
      for (const stream of streams.slice(10)) stream.close(NGHTTP2_CANCEL);
      await Promise.all(streams.map(endOf));
    }
    expect((await answerOf(ask(client, {}))).body).toBe('here');
  });
});

describe('a server that closes', () => {
  it('answers what is under way, and takes nothing new', async () => {
    let answer: (() => void) | undefined;
    await serve((_req, res) => {
      answer = () => res.end('late');
    });
    const silent = raw();
    const client = session();
    const stream = ask(client, {});
    await expect.poll(() => answer).toBeDefined();
    await expect.poll(open).toBe(2);
    const over = new Promise((done) => server.close(done));
    side.close();
    await closed(silent.socket);
    answer?.();
    expect((await answerOf(stream)).body).toBe('late');
    await over;
    server.listen(0);
  });

  it('cuts what does not end', async () => {
    let asked = false;
    await serve(() => {
      asked = true;
    });
    const stream = ask(session(), {});
    await expect.poll(() => asked).toBe(true);
    const over = new Promise((done) => server.close(done));
    side.close();
    side.destroy();
    await endOf(stream);
    await over;
    server.listen(0);
  });
});
