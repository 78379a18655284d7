import { randomBytes } from 'node:crypto';

/** What the first bytes of a frame say (RFC 6455, 5.2). */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Why a peer's frames cannot be taken, with the close code to tell it. */
export interface FrameFault {
  code: 1002 | 1009;
  reason: string;
}

export interface Scanned {
  /** What may be passed on, as it came. */
  pieces: Buffer[];
  /** Set once the peer has said goodbye: nothing after it counts. */
  close: { code: number | undefined; reason: string } | undefined;
  fault: FrameFault | undefined;
}

const LONGEST_CONTROL = 125;
const KNOWN = new Set<number>(Object.values(OPCODE));

/**
 * Follows the frames of one direction of a WebSocket without taking messages apart: it reads the few bytes that begin a frame and
 * counts the others. Control frames are held until they are whole, so that between two calls nothing but data frames can be half
 * passed on. Pongs that answer our own pings are kept back.
 */
export class FrameScanner {
  readonly #masked: boolean;
  readonly #maxMessageBytes: number;
  readonly #ping: Buffer;
  /** Bytes of a frame that has begun and cannot be judged yet. */
  #held: Buffer = Buffer.alloc(0);
  /** Of the data frame that is being passed on. */
  #left = 0;
  #message = 0;
  #fragmented = false;
  #over = false;

  /** `masked`: whether the peer is a client, who masks what it sends. `ping` is what our own pings carry. */
  constructor({ masked, maxMessageBytes, ping }: { masked: boolean; maxMessageBytes: number; ping: Buffer }) {
    this.#masked = masked;
    this.#maxMessageBytes = maxMessageBytes;
    this.#ping = ping;
  }

  /** Whether a frame of somebody else may be put in after what was passed on so far. */
  get betweenFrames(): boolean {
    return this.#left === 0;
  }

  take(chunk: Buffer): Scanned {
    const found: Scanned = { pieces: [], close: undefined, fault: undefined };
    if (this.#over) return found;
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = bytes.subarray(bytes.length);
    let from = 0;
    let at = 0;
    const pass = (to: number): void => {
      if (to > from) found.pieces.push(bytes.subarray(from, to));
    };
    while (at < bytes.length) {
      if (this.#left > 0) {
        const step = Math.min(this.#left, bytes.length - at);
        this.#left -= step;
        at += step;
        continue;
      }
      const head = readHead(bytes, at);
      if (head === undefined) break;
      const fault = this.#judge(head);
      if (fault) {
        this.#over = true;
        pass(at);
        return { ...found, fault };
      }
      if (head.opcode < OPCODE.close) {
        this.#left = head.length;
        at += head.size;
        continue;
      }
      const end = at + head.size + head.length;
      if (end > bytes.length) break;
      if (head.opcode === OPCODE.pong && payloadOf(bytes, at, head).equals(this.#ping)) {
        pass(at);
        from = end;
      } else if (head.opcode === OPCODE.close) {
        const close = readClose(payloadOf(bytes, at, head));
        this.#over = true;
        pass(close ? end : at);
        return close
          ? { ...found, close }
          : { ...found, fault: { code: 1002, reason: 'the close frame is not valid' } };
      }
      at = end;
    }
    pass(at);
    // A copy: the few bytes must not keep a large chunk.
    if (at < bytes.length) this.#held = Buffer.from(bytes.subarray(at));
    return found;
  }

  #judge(head: Head): FrameFault | undefined {
    const wrong = (reason: string): FrameFault => ({ code: 1002, reason });
    if (head.reserved || !KNOWN.has(head.opcode)) return wrong('a frame of a kind that was not agreed on');
    if (head.masked !== this.#masked) return wrong(this.#masked ? 'a frame is not masked' : 'a frame is masked');
    if (head.opcode >= OPCODE.close) {
      return head.final && head.length <= LONGEST_CONTROL
        ? undefined
        : wrong('a control frame is too long or in parts');
    }
    if ((head.opcode === OPCODE.continuation) !== this.#fragmented) return wrong('the parts of a message are mixed up');
    this.#message = (this.#fragmented ? this.#message : 0) + head.length;
    this.#fragmented = !head.final;
    return this.#message > this.#maxMessageBytes ? { code: 1009, reason: 'the message is above the limit' } : undefined;
  }
}

interface Head {
  opcode: number;
  final: boolean;
  reserved: boolean;
  masked: boolean;
  /** Bytes of the head, mask included. */
  size: number;
  /** Bytes of the payload; beyond what a number holds it is only large. */
  length: number;
}

function readHead(bytes: Buffer, at: number): Head | undefined {
  const [first, second] = [bytes[at], bytes[at + 1]];
  if (first === undefined || second === undefined) return undefined;
  const short = second & 0x7f;
  const masked = (second & 0x80) !== 0;
  const size = 2 + (short === 126 ? 2 : short === 127 ? 8 : 0) + (masked ? 4 : 0);
  if (at + size > bytes.length) return undefined;
  let length = short;
  if (short === 126) length = bytes.readUInt16BE(at + 2);
  if (short === 127) length = bytes.readUInt32BE(at + 2) * 2 ** 32 + bytes.readUInt32BE(at + 6);
  return { opcode: first & 0x0f, final: (first & 0x80) !== 0, reserved: (first & 0x70) !== 0, masked, size, length };
}

function payloadOf(bytes: Buffer, at: number, { size, length, masked }: Head): Buffer {
  const payload = Buffer.from(bytes.subarray(at + size, at + size + length));
  if (masked)
    for (let i = 0; i < length; i += 1) payload[i] = (payload[i] ?? 0) ^ (bytes[at + size - 4 + (i % 4)] ?? 0);
  return payload;
}

function readClose(payload: Buffer): Scanned['close'] {
  if (payload.length === 0) return { code: undefined, reason: '' };
  if (payload.length === 1) return undefined;
  const code = payload.readUInt16BE(0);
  return sendableCode(code) === undefined ? undefined : { code, reason: payload.toString('utf8', 2) };
}

/** Close codes that may be sent (RFC 6455, 7.4); the others only stand for what happened. */
export function sendableCode(code: number): number | undefined {
  return (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999)
    ? code
    : undefined;
}

/** At most 123 bytes of UTF-8, whole letters: what fits into a close frame. */
export function closeReason(text: string): string {
  let reason = text;
  while (Buffer.byteLength(reason) > 123) reason = reason.slice(0, -1);
  return reason.toWellFormed();
}

/** A ping or close frame, masked as a client's have to be when it goes to a server. */
export function controlFrame(opcode: number, payload: Buffer, masked: boolean): Buffer {
  const mask = masked ? randomBytes(4) : Buffer.alloc(0);
  const sent = Buffer.from(payload);
  for (let i = 0; masked && i < sent.length; i += 1) sent[i] = (sent[i] ?? 0) ^ (mask[i % 4] ?? 0);
  return Buffer.concat([Buffer.from([0x80 | opcode, (masked ? 0x80 : 0) | sent.length]), mask, sent]);
}

/** A close frame; without a code it says none. */
export function closeFrame(code: number | undefined, reason: string, masked: boolean): Buffer {
  if (code === undefined) return controlFrame(OPCODE.close, Buffer.alloc(0), masked);
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return controlFrame(OPCODE.close, Buffer.concat([payload, Buffer.from(closeReason(reason))]), masked);
}
