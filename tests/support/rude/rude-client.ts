import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { bytesBefore, type DueCut } from './due-cuts.ts';
import type { Message } from './messages.ts';
import type { Random } from './random.ts';
import { cutOf, describeCut, sendSecurely } from './tls-records.ts';

export interface Address {
  host: string;
  port: number;
}

const ENDINGS = ['reset', 'reset', 'half-close', 'stall', 'garbage', 'close'] as const;
export type Ending = (typeof ENDINGS)[number];
const PLACES = ['beginning', 'first byte', 'middle', 'last byte', 'end'] as const;
/** How long a client that waits for what the server makes of it does so, in ms. */
const PATIENCE_MS = 300;
/** Connections left open at once. */
const MOST_STALLED = 64;

/** What one attempt did, so that it can be done again. */
export interface Attempt {
  message: string;
  cut: string;
  ending: Ending;
}

/** Sends messages, each cut somewhere and ended rudely. */
export class RudeClient {
  readonly #random: Random;
  readonly #stalled: Socket[] = [];
  /** Where TLS was cut. */
  readonly cuts = new Set<string>();
  #turn = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Cut where and ended as `due` says, or as chance does. Rejects when the server takes no connection. */
  async attempt(address: Address, message: Message, due?: DueCut): Promise<Attempt> {
    const random = this.#random;
    const ending = due?.ending ?? random.pick(ENDINGS);
    // All that chance decides is decided before anything is waited for, so that a seed means the same on any machine.
    const { cut, bytes } = due ? { cut: due.phase, bytes: bytesBefore(message, due, random) } : this.#anywhere(message);
    const attempt = { message: message.name, cut, ending };
    const parts = splitAt(bytes, random.below(3) === 0 ? random.below(bytes.length + 1) : bytes.length);
    const end = this.#ending(ending);
    const socket = await dial(address);
    for (const part of parts) {
      socket.write(part);
      if (parts.length > 1) await sleep(1);
    }
    await end(socket);
    return attempt;
  }

  #anywhere(message: Message): { cut: string; bytes: Buffer } {
    const random = this.#random;
    // Now and then all of it is said, most often of what makes sense: what is done for it is cut then.
    const whole = random.below(message.sound ? 2 : 8) === 0;
    const at = whole ? message.pieces.length - 1 : random.below(message.pieces.length);
    const place = whole ? 'end' : random.pick(PLACES);
    return { cut: `${place} of ${message.pieces[at]?.kind}`, bytes: cutAt(message, at, place) };
  }

  /** The same over TLS, cut in a record of the client, at whichever of them the handshake or the message has come to. */
  async attemptSecurely(address: Address, message: Message): Promise<Attempt> {
    const random = this.#random;
    const ending = random.pick(ENDINGS);
    const cut = cutOf(this.#turn++);
    const attempt = { message: message.name, cut: describeCut(cut), ending };
    const end = this.#ending(ending);
    const socket = await dial(address);
    const bytes = Buffer.concat(message.pieces.map((piece) => piece.bytes));
    if (await sendSecurely(socket, bytes, cut, message.protocol === 'HTTP/2' ? 'h2' : undefined))
      this.cuts.add(attempt.cut);
    await end(socket);
    return attempt;
  }

  /** Decides what a rude end needs, and gives it. */
  #ending(ending: Ending): (socket: Socket) => Promise<void> {
    const random = this.#random;
    const pauseMs = random.pick([0, 0, 1, 5, 30]);
    const garbage = random.bytes(ending === 'garbage' ? 1 + random.below(2000) : 0);
    return async (socket) => {
      await sleep(pauseMs);
      if (ending === 'reset') socket.resetAndDestroy();
      else if (ending === 'close') socket.destroy();
      else if (ending === 'stall') this.#stall(socket);
      else {
        if (ending === 'garbage') socket.write(garbage);
        else socket.end();
        await ended(socket, PATIENCE_MS);
        // Node keeps the file of a connection that is reset while its half-close is under way.
        if (ending === 'half-close') socket.destroy();
        else socket.resetAndDestroy();
      }
    };
  }

  /** Lets go of what it has left open. */
  close(): void {
    for (const socket of this.#stalled.splice(0)) socket.resetAndDestroy();
  }

  #stall(socket: Socket): void {
    this.#stalled.push(socket);
    if (this.#stalled.length > MOST_STALLED) this.#stalled.shift()?.resetAndDestroy();
  }
}

function cutAt({ pieces }: Message, at: number, place: (typeof PLACES)[number]): Buffer {
  const { length } = pieces[at]?.bytes ?? Buffer.alloc(0);
  const within = { beginning: 0, 'first byte': 1, middle: length >> 1, 'last byte': length - 1, end: length }[place];
  const before = pieces.slice(0, at).map(({ bytes }) => bytes);
  return Buffer.concat([...before, pieces[at]?.bytes.subarray(0, Math.max(0, within)) ?? Buffer.alloc(0)]);
}

function splitAt(bytes: Buffer, at: number): Buffer[] {
  return [bytes.subarray(0, at), bytes.subarray(at)].filter((part) => part.length > 0);
}

function dial({ host, port }: Address): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true });
    socket.once('connect', () => resolve(socket));
    socket.on('error', reject);
    socket.resume();
  });
}

async function ended(socket: Socket, ms: number): Promise<void> {
  if (socket.readableEnded || socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    for (const event of ['end', 'close'])
      socket.once(event, () => {
        clearTimeout(timer);
        resolve();
      });
  });
}
