import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect } from 'node:tls';

/** Records that a client may come to: its hello, what its handshake ends with (two or three), and what it says then. */
const MOST_RECORDS = 6;
/** Where one is cut; its header is its type, its version and its length. */
const RECORD_PLACES = [
  'beginning',
  'type',
  'version',
  'length',
  'end of header',
  'first byte',
  'end of handshake header',
  'middle',
  'last byte',
  'end',
] as const;

export interface TlsCut {
  version: 'TLSv1.2' | 'TLSv1.3';
  /** How many records go out whole before the one that is cut. */
  at: number;
  place: (typeof RECORD_PLACES)[number];
}

/** The cut of the `turn`th attempt: each there is, one after another. */
export function cutOf(turn: number): TlsCut {
  const place = RECORD_PLACES[turn % RECORD_PLACES.length] ?? 'end';
  const rest = Math.floor(turn / RECORD_PLACES.length);
  return { place, at: rest % MOST_RECORDS, version: Math.floor(rest / MOST_RECORDS) % 2 === 0 ? 'TLSv1.2' : 'TLSv1.3' };
}

/** Every cut that an attempt comes to whose message is a single record. */
export function everyCut(): TlsCut[] {
  return Array.from({ length: 2 * MOST_RECORDS * RECORD_PLACES.length }, (_, turn) => cutOf(turn)).filter(
    ({ version, at }) => at < (version === 'TLSv1.2' ? 5 : 4),
  );
}

export function describeCut({ version, at, place }: TlsCut): string {
  return `${place} of record ${at} of ${version}`;
}

const HEADER = 5;
/** How long a server may take for its part of the handshake, in ms. */
const PATIENCE_MS = 5000;

/** Shakes hands over `socket`, agrees on `alpn` where there is one, and sends the message as far as the cut; resolves then, the socket still open, with whether it came to it. */
export async function sendSecurely(socket: Socket, message: Buffer, cut: TlsCut, alpn?: string): Promise<boolean> {
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const records = new RecordCutter(cut, (bytes) => socket.write(bytes), resolve);
  const wire = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, next) {
      records.push(chunk);
      next();
    },
  });
  const hear = (bytes: Buffer): void => void wire.push(bytes);
  socket.on('data', hear);
  const secure = connect({
    socket: wire,
    ...(alpn ? { ALPNProtocols: [alpn] } : {}),
    rejectUnauthorized: false,
    minVersion: cut.version,
    maxVersion: cut.version,
  });
  // When all is said, no record more comes.
  secure.on('error', resolve).once('secureConnect', () => secure.write(message, () => resolve()));
  const patience = setTimeout(resolve, PATIENCE_MS);
  socket.once('close', resolve);
  await done;
  clearTimeout(patience);
  socket.off('data', hear);
  // What it says as it goes stays here.
  records.stop();
  secure.destroy();
  wire.destroy();
  socket.resume();
  return records.cutOff;
}

/** Hands records on whole, and of one of them the beginning; nothing after that. */
class RecordCutter {
  readonly #cut: TlsCut;
  readonly #send: (bytes: Buffer) => void;
  readonly #done: () => void;
  #waiting = Buffer.alloc(0);
  #handedOn = 0;
  #ended = false;

  constructor(cut: TlsCut, send: (bytes: Buffer) => void, done: () => void) {
    this.#cut = cut;
    this.#send = send;
    this.#done = done;
  }

  push(chunk: Buffer): void {
    this.#waiting = Buffer.concat([this.#waiting, chunk]);
    while (!this.#ended && this.#waiting.length >= HEADER) {
      const length = HEADER + this.#waiting.readUInt16BE(3);
      if (this.#waiting.length < length) return;
      this.#handOn(this.#waiting.subarray(0, length));
      this.#waiting = this.#waiting.subarray(length);
    }
  }

  /** It has come to the cut. */
  get cutOff(): boolean {
    return this.#handedOn > this.#cut.at;
  }

  stop(): void {
    this.#ended = true;
  }

  #handOn(record: Buffer): void {
    this.#ended = this.#handedOn === this.#cut.at;
    this.#handedOn += 1;
    if (!this.#ended) {
      this.#send(record);
      return;
    }
    const within = {
      beginning: 0,
      type: 1,
      version: 3,
      length: 4,
      'end of header': HEADER,
      'first byte': HEADER + 1,
      'end of handshake header': HEADER + 4,
      middle: (HEADER + record.length) >> 1,
      'last byte': record.length - 1,
      end: record.length,
    }[this.#cut.place];
    this.#send(record.subarray(0, within));
    this.#done();
  }
}
