import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../clock.ts';
import { closeFrame, controlFrame, type FrameFault, FrameScanner, OPCODE } from './frames.ts';
import { MessageReader } from './message-reader.ts';

/** A WebSocket whose handshake is over. `head` is what came along with it. */
export interface Upgraded {
  socket: Duplex;
  head: Buffer;
}

export interface SpliceOptions {
  /** The one who called us, and masks. */
  client: Upgraded;
  /** The one whom we called. */
  agent: Upgraded;
  maxMessageBytes: number;
  pingIntervalMs: number;
  clock: Clock;
  /** Hears the texts that the client sends, those that are not long; absent where nobody listens. */
  onText?: ((text: string) => void) | undefined;
  /** Why the agent went away without a word, for the client. */
  explain(): Promise<string>;
}

/** How long a goodbye may stay unanswered. */
const GRACE_MS = 5000;

/** One of the two. `in` follows what it sends. */
interface Side {
  socket: Duplex;
  in: FrameScanner;
  /** Whether frames to it are masked: it is a server. */
  masked: boolean;
  heard: boolean;
  /** Nothing that it says counts any more: it has said goodbye, or broken the rules, or is gone. */
  saidClose: boolean;
  /** It has been told goodbye, and nothing else can be said to it. */
  toldClose: boolean;
  /** What it is told as soon as the frame that is on its way is whole. */
  farewell: Buffer | undefined;
  gone: boolean;
  /** Who hears what it says, beside the other. */
  reader: MessageReader | undefined;
}

/**
 * Passes the frames of a client and an agent between their sockets as they are, mask and all, since neither has agreed on anything
 * else with us. What stands in between: the size of messages is bounded, a slow reader slows its writer down, a silent peer is
 * pinged and given up, and who remains learns why the other has gone.
 */
export class SplicedStream {
  readonly #client: Side;
  readonly #agent: Side;
  readonly #options: SpliceOptions;
  readonly #stops: (() => void)[] = [];
  /** What our pings carry, so that their answers are known. */
  readonly #ping = randomBytes(8);
  readonly closed: Promise<void>;
  #settle: () => void = () => undefined;
  #ending = false;
  #finished = false;

  constructor(options: SpliceOptions) {
    this.#options = options;
    const side = ({ socket }: Upgraded, isClient: boolean): Side => ({
      socket,
      in: new FrameScanner({ masked: isClient, maxMessageBytes: options.maxMessageBytes, ping: this.#ping }),
      masked: !isClient,
      heard: true,
      saidClose: false,
      toldClose: false,
      farewell: undefined,
      gone: false,
      reader: isClient && options.onText ? new MessageReader(options.onText) : undefined,
    });
    this.#client = side(options.client, true);
    this.#agent = side(options.agent, false);
    this.closed = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#pump(this.#client, this.#agent, options.client.head);
    this.#pump(this.#agent, this.#client, options.agent.head);
    this.#keepAlive(this.#client, this.#agent);
    this.#keepAlive(this.#agent, this.#client);
  }

  /** Says goodbye to both with that code, and cuts them off when they do not answer. */
  close(code: number, reason: string, graceMs = GRACE_MS): void {
    this.#tell(this.#client, code, reason);
    this.#tell(this.#agent, code, '');
    this.#cutAfter(graceMs);
  }

  #pump(from: Side, to: Side, head: Buffer): void {
    const { socket } = from;
    socket.on('data', (chunk: Buffer) => this.#pass(from, to, chunk));
    socket.on('drain', () => to.socket.resume());
    // Either of them says that no more will come; which one does depends on how it ended.
    socket.once('end', () => this.#gone(from, to));
    socket.once('close', () => this.#gone(from, to));
    socket.on('error', () => socket.destroy());
    socket.resume();
    if (head.length > 0) this.#pass(from, to, head);
  }

  #pass(from: Side, to: Side, chunk: Buffer): void {
    if (this.#finished) return;
    from.heard = true;
    const { pieces, close, fault } = from.in.take(chunk);
    if (!to.toldClose) for (const piece of pieces) if (!to.socket.write(piece)) from.socket.pause();
    if (from.reader) for (const piece of pieces) from.reader.take(piece);
    if (fault) this.#refuse(from, to, fault);
    else if (close) {
      from.saidClose = true;
      to.toldClose = true;
      if (to.saidClose) this.#finish();
      else this.#cutAfter(GRACE_MS);
    } else if (to.farewell && from.in.betweenFrames) this.#say(to, to.farewell);
  }

  #refuse(from: Side, to: Side, { code, reason }: FrameFault): void {
    from.saidClose = true;
    this.#tell(from, code, reason);
    if (from === this.#agent)
      this.#tell(to, 1011, code === 1009 ? 'the agent sent a message above the limit' : `the agent: ${reason}`);
    else this.#tell(to, code === 1009 ? 1009 : 1001, '');
    this.#cutAfter(GRACE_MS);
  }

  #gone(who: Side, other: Side): void {
    if (who.gone) return;
    who.gone = true;
    const expected = who.saidClose || who.toldClose;
    who.saidClose = true;
    if (expected || other.gone) {
      this.#tell(other, 1000, '');
      this.#finish();
    } else if (who === this.#client) {
      this.#tell(other, 1001, '');
      this.#cutAfter(GRACE_MS);
    } else {
      const told = (why: string): void => {
        this.#tell(other, 1011, why);
        this.#cutAfter(GRACE_MS);
      };
      this.#options.explain().then(told, () => told(''));
    }
  }

  #tell(side: Side, code: number, reason: string): void {
    if (side.toldClose || side.farewell) return;
    const other = side === this.#client ? this.#agent : this.#client;
    const frame = closeFrame(code, reason, side.masked);
    // In the middle of a frame nothing can be said; when its rest will never come, the connection can only be cut.
    if (other.in.betweenFrames) this.#say(side, frame);
    else if (other.saidClose) side.socket.destroy();
    else side.farewell = frame;
    // Who is not read could not answer.
    side.socket.resume();
  }

  #say(side: Side, frame: Buffer): void {
    side.toldClose = true;
    side.farewell = undefined;
    if (side.socket.writable) side.socket.write(frame);
  }

  #keepAlive(side: Side, other: Side): void {
    const { clock, pingIntervalMs } = this.#options;
    const beat = (): void => {
      if (!side.heard && !side.socket.isPaused()) {
        side.socket.destroy();
        return;
      }
      // Between two frames only; one who is being sent to will be asked the next time.
      const free = other.in.betweenFrames && !side.toldClose && side.socket.writable;
      side.heard = !free;
      if (free) side.socket.write(controlFrame(OPCODE.ping, this.#ping, side.masked));
      this.#stops[index] = clock.after(pingIntervalMs, beat);
    };
    const index = this.#stops.length;
    this.#stops.push(clock.after(pingIntervalMs, beat));
  }

  #cutAfter(ms: number): void {
    if (this.#ending) return;
    this.#ending = true;
    const timer = setTimeout(() => this.#finish(), ms);
    timer.unref();
    this.#stops.push(() => clearTimeout(timer));
  }

  /** Both have had their word. */
  #finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    for (const stop of this.#stops.splice(0)) stop();
    for (const { socket } of [this.#agent, this.#client]) {
      // What was written last is sent before the end; who does not take it is cut off.
      socket.end();
      const timer = setTimeout(() => socket.destroy(), 1000);
      timer.unref();
      socket.once('close', () => clearTimeout(timer));
      socket.resume();
    }
    this.#settle();
  }
}
