import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { type Clock, systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';

/** What a server does with a connection once it has read a request, of which it is given the head. */
export type Behaviour = (socket: Socket, head: string) => void | Promise<void>;

export const MIB = 2 ** 20;
const OK = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const CHUNK = `${(64 << 10).toString(16)}\r\n${'a'.repeat(64 << 10)}\r\n`;
/** Unfolds into a mebibyte of zeros; as a member of a gzip file it may come again and again. */
const MEMBER = gzipSync(Buffer.alloc(MIB));
const EMPTY_MEMBERS = Buffer.concat(Array(1000).fill(gzipSync('')));
const HEADERS = 'x-more: and more\r\n'.repeat(1000);

function* forEver<T>(part: T): Generator<T> {
  for (;;) yield part;
}

/** Sends the first and then the same part over and over, as fast as it is taken. */
const endlessly =
  (first: string, part: string | Buffer): Behaviour =>
  (socket) => {
    socket.write(first);
    Readable.from(forEver(part))
      .on('error', () => undefined)
      .pipe(socket);
  };
const saying =
  (text: string): Behaviour =>
  (socket) =>
    void socket.end(text);
const answer = (body: string, head = OK): Behaviour =>
  saying(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);

/** Keeps whoever listens waiting. */
export const SILENT: Record<string, Behaviour> = {
  'never answers': () => undefined,
  'stops within the head': (socket) => void socket.write(OK),
  'stops within the body': (socket) => void socket.write(`${OK}content-length: 100\r\n\r\n{"a":`),
  'one byte at a time': (socket) => {
    socket.write(`${OK}\r\n`);
    const timer = setInterval(() => socket.write(' '), 50);
    socket.once('close', () => clearInterval(timer));
  },
};
/** Goes on as long as somebody listens. */
export const ENDLESS: Record<string, Behaviour> = {
  'an endless head': endlessly(OK, HEADERS),
  'endless interim answers': endlessly('', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(1000)),
  'an endless body': endlessly(`${OK}\r\n`, 'a'.repeat(64 << 10)),
  'endless chunks': endlessly(`${OK}transfer-encoding: chunked\r\n\r\n`, CHUNK),
  'an endless extension of a chunk': endlessly(`${OK}transfer-encoding: chunked\r\n\r\n1;`, 'a'.repeat(64 << 10)),
  'endless trailers': endlessly(`${OK}transfer-encoding: chunked\r\n\r\n0\r\n`, HEADERS),
  'a body that unfolds without end': endlessly(`${OK}content-encoding: gzip\r\n\r\n`, MEMBER),
  'endless empty members': endlessly(`${OK}content-encoding: gzip\r\n\r\n`, EMPTY_MEMBERS),
};
/** Ends with nothing that can be used as what these services are asked for. */
export const SENSELESS: Record<string, Behaviour> = {
  'hangs up': (socket) => void socket.end(),
  resets: (socket) => void socket.resetAndDestroy(),
  'speaks something else': saying('SSH-2.0-OpenSSH_9.9\r\n'),
  'speaks TLS': saying('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
  'is nested in itself': answer('['.repeat(1_000_000)),
  'a page of HTML': answer('<html>Sign in</html>', 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n'),
  'half an object': answer('{"data":['),
  null: answer('null'),
  'a number': answer('7'),
  'an empty list': answer('[]'),
  'an empty object': answer('{}'),
  nothing: answer(''),
  'bytes of no text': answer('\ufffd\u0000\u0001'),
  'an unknown encoding': answer('x', `${OK}content-encoding: rot13\r\n`),
  'what is not what it says': answer('{}', `${OK}content-encoding: gzip\r\n`),
  'an error': answer('{"error":"no"}', 'HTTP/1.1 500 Internal Server Error\r\n'),
  'a redirect to itself': answer('', 'HTTP/1.1 307 Temporary Redirect\r\nlocation: /again\r\n'),
};

export interface HostileServer {
  /** As `http://127.0.0.1:8080`. */
  origin: string;
  /** The heads of the requests that came. */
  heads: string[];
  /** Connections that are open now. */
  connections(): number;
  /** Bytes that it has got rid of. */
  sent(): number;
  close(): Promise<void>;
}

/** Listens on a free port of an address of the loopback interface. */
export async function openHostileServer(behave: Behaviour, address = '127.0.0.1'): Promise<HostileServer> {
  const sockets = new Set<Socket>();
  const heads: string[] = [];
  let sent = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    let text = '';
    const read = (part: Buffer): void => {
      // A hello of TLS, which it does not speak.
      if (text === '' && part[0] === 0x16) return void socket.destroy();
      text += part.toString('latin1');
      if (!text.includes('\r\n\r\n')) return;
      heads.push(text);
      // Whatever comes afterwards is read, so that the end is seen.
      socket.off('data', read).resume();
      void behave(socket, text);
    };
    socket.on('data', read);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sent += socket.bytesWritten;
      sockets.delete(socket);
    });
  });
  server.listen(0, address);
  await once(server, 'listening');
  return {
    origin: `http://${address}:${(server.address() as AddressInfo).port}`,
    heads,
    connections: () => sockets.size,
    sent: () => [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, sent),
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A clock whose timers run so many times as fast, for time limits of a minute. */
export const fastClock = (times: number): Clock => ({
  ...systemClock,
  after: (ms, run) => systemClock.after(ms / times, run),
});

/** What came of calling one hostile server. */
export interface Attempt {
  name: string;
  origin: string;
  /** What the call threw; undefined when it took what came for an answer. */
  error: unknown;
  requests: number;
  sent: number;
}

/** Calls one server of each behaviour, all at once; resolves when no connection to any of them is left. */
export async function attempt(
  behaviours: Record<string, Behaviour>,
  call: (origin: string) => Promise<unknown>,
): Promise<Attempt[]> {
  return Promise.all(
    Object.entries(behaviours).map(async ([name, behave]) => {
      const server = await openHostileServer(behave);
      const { origin, heads } = server;
      const error = await call(origin).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      await until(() => server.connections() === 0, 30_000);
      const came = { name, origin, error, requests: heads.length, sent: server.sent() };
      await server.close();
      return came;
    }),
  );
}

/** The text of an error with those of its causes, as far as `depth` of them. */
export function textOf(error: unknown, depth = 8): string {
  if (!(error instanceof Error)) return String(error);
  return depth > 0 && error.cause !== undefined
    ? `${error.message} – ${textOf(error.cause, depth - 1)}`
    : error.message;
}
