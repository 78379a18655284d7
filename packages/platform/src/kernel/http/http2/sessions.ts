import { constants, performServerHandshake, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../clock.ts';
import type { Unhandled } from '../../unhandled.ts';
import { RateLimiter } from '../rate-limiter.ts';
import { type Peer, serveStream } from './stream-request.ts';

export interface Http2SessionsDeps {
  /** Serves a stream as a connection of HTTP/1.1, or destroys it at once. */
  serve(connection: Duplex & Peer): void;
  /** Streams of all connections at once; one more is refused. */
  maxStreams: number;
  /** How long the head of the first request may take to come. */
  headMs: number;
  /** How long a connection may stay without a request after its last one. */
  idleMs: number;
  /** How often the other side is asked whether it is there; one that has not answered by the next time is cut. */
  probeMs: number;
  unhandled: Unhandled;
  clock: Clock;
}

/** Requests of one connection at once; a client that has more waits. */
const STREAMS_PER_CONNECTION = 100;
/** PING and SETTINGS of one connection a second: each must be answered, and asks for nothing. */
const CONTROL_FRAMES_PER_SECOND = 100;
/** How long a connection that was told to end has to do so. */
const END_MS = 1000;
/** Bytes of all request bodies of a connection that may wait unread. */
const CONNECTION_WINDOW_BYTES = 1024 * 1024;

/** Node and nghttp2 end a connection that breaks one of these. */
const OPTIONS = {
  settings: {
    maxConcurrentStreams: STREAMS_PER_CONNECTION,
    initialWindowSize: 256 * 1024,
    // As Node has it for HTTP/1.1.
    maxHeaderListSize: 16 * 1024,
  },
  /** Frames that break the protocol, and empty ones. */
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  /** In MB. */
  maxSessionMemory: 10,
  maxHeaderListPairs: 128,
  // Streams that their client resets: so many at once, and so many a second.
  streamResetBurst: 500,
  streamResetRate: 50,
};

/** The HTTP/2 connections of one listener. */
export class Http2Sessions {
  readonly #deps: Http2SessionsDeps;
  readonly #open = new Map<ServerHttp2Session, Socket>();
  #streams = 0;

  constructor(deps: Http2SessionsDeps) {
    this.#deps = deps;
  }

  /** Takes over a connection whose client speaks HTTP/2. */
  accept(socket: Socket & { encrypted?: boolean }): void {
    const { clock, headMs, idleMs, unhandled } = this.#deps;
    const peer: Peer = { remoteAddress: socket.remoteAddress, encrypted: socket.encrypted === true };
    // Who has ended his side can no longer say that he is ready for more.
    socket.on('error', () => {}).once('end', () => socket.destroy());
    const session = performServerHandshake(socket, OPTIONS);
    this.#open.set(session, socket);
    let streams = 0;
    let cancel = clock.after(headMs, () => this.#end(session, socket));
    session.on('stream', (stream, _headers, _flags, rawHeaders) => {
      cancel();
      streams += 1;
      this.#streams += 1;
      stream.once('close', () => {
        streams -= 1;
        this.#streams -= 1;
        if (streams === 0 && !session.destroyed) cancel = clock.after(idleMs, () => this.#end(session, socket));
      });
      const serve = (connection: Duplex & Peer): void => {
        if (this.#streams > this.#deps.maxStreams) connection.destroy();
        else this.#deps.serve(connection);
      };
      const over = unhandled.during(
        () => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
        () => serveStream(stream, rawHeaders, peer, serve),
        [stream],
      );
      stream.once('close', over);
    });
    const stopAsking = this.#ask(session, socket);
    session
      .on('error', () => {})
      .once('close', () => {
        cancel();
        stopAsking();
        this.#open.delete(session);
      });
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES));
    const control = new RateLimiter(CONTROL_FRAMES_PER_SECOND, clock);
    const count = (): void => {
      if (control.tryTake('frames') > 0) this.#end(session, socket, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    };
    session.on('ping', count).on('remoteSettings', count);
  }

  /** Takes no new request on any connection, and ends each after the requests that are under way. */
  close(): void {
    for (const session of this.#open.keys()) session.close();
  }

  /** Cuts all that is under way. */
  destroy(): void {
    for (const socket of this.#open.values()) socket.destroy();
  }

  /** While Node writes it does not read, and over TLS it misses then that the other side is gone. */
  #ask(session: ServerHttp2Session, socket: Socket): () => void {
    const { clock, probeMs } = this.#deps;
    let answered = true;
    const ask = (): void => {
      if (!answered) return void socket.destroy();
      answered = false;
      if (!session.destroyed)
        session.ping((error) => {
          answered = error === null;
        });
      cancel = clock.after(probeMs, ask);
    };
    let cancel = clock.after(probeMs, ask);
    return () => cancel();
  }

  /** One that does not take the farewell is cut. */
  #end(session: ServerHttp2Session, socket: Socket, code = constants.NGHTTP2_NO_ERROR): void {
    const cancel = this.#deps.clock.after(END_MS, () => socket.destroy());
    socket.once('close', cancel);
    session.destroy(undefined, code);
  }
}
