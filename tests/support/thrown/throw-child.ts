import { EventEmitter } from 'node:events';
import { IncomingMessage } from 'node:http';
import { PassThrough, Readable } from 'node:stream';

// Loaded into a platform before it starts (`node --import`): where a request says so in a header, something of it is met that nobody catches, once
// the platform begins to read it.

/** Beside the name of a kind, in a request of HTTP or the one that asks for a WebSocket. */
const KIND = 'x-thrown';
/** What meets it of HTTP/2: the stream of that name, otherwise the request within. */
const STREAM = 'x-thrown-by-stream';
/** Takes away the last line of defence before. */
const UNGUARDED = 'x-thrown-unguarded';

type Headers = Readonly<Record<string, unknown>>;

const marked = new WeakMap<object, Headers>();
const emit = EventEmitter.prototype.emit;
const { on } = Readable.prototype;

EventEmitter.prototype.emit = function (this: EventEmitter, event: string | symbol, ...said: unknown[]): boolean {
  const [first, second] = said;
  if (event === 'request' && first instanceof IncomingMessage && !(STREAM in first.headers)) mark(first, first.headers);
  if (event === 'upgrade' && first instanceof IncomingMessage && second instanceof Readable)
    mark(second, first.headers);
  if (event === 'stream' && first instanceof Readable && isHeaders(second) && STREAM in second) mark(first, second);
  return emit.call(this, event, ...said);
};

Object.defineProperty(Readable.prototype, 'on', {
  value(this: Readable, event: string | symbol, listener: unknown): unknown {
    const headers = event === 'data' || event === 'readable' ? marked.get(this) : undefined;
    if (headers && marked.delete(this)) {
      if (UNGUARDED in headers) process.removeAllListeners('uncaughtException');
      KINDS[String(headers[KIND])]?.(this, event);
    }
    return Reflect.apply(on, this, [event, listener]);
  },
});

const fail = (): never => {
  throw new Error('thrown where nobody catches it');
};

const KINDS: Readonly<Record<string, (source: Readable, event: string | symbol) => void>> = {
  callback: () => setImmediate(fail),
  stream: () => new PassThrough().destroy(new Error('of a stream that nobody hears')),
  rejection: () => void Promise.reject(new Error('of a promise that nobody hears')),
  listener: (source, event) => Reflect.apply(on, source, [event, fail]),
};

function mark(source: object, headers: Headers): void {
  if (KIND in headers) marked.set(source, headers);
}

function isHeaders(what: unknown): what is Headers {
  return typeof what === 'object' && what !== null;
}
