import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { LapseWatch } from './lapse-watch.ts';
import type { ServerHold } from './server-hold.ts';
import type { ServerRecord, ServerStore } from './server-store.ts';
import type { ServerHolder } from './session-store.ts';

export interface ServerLeaseDeps {
  store: ServerStore;
  serverId: string;
  /** False on a database that only this server can use: its hold never lapses. */
  shared: boolean;
  /** How long other servers wait before they take a silent one's sessions, ms. */
  leaseMs: number;
  /** Shown to whatever ends sandboxes when their server is gone: they may live for `heldMs` from now. */
  beat(heldMs: number): Promise<void>;
  clock: Clock;
  log: Logger;
}

/** Parts of the lease: a beat each eighth, and sessions given up after three quarters, so that they are gone before anybody else may begin. */
const BEATS_PER_LEASE = 8;
const HELD_PART = 3 / 4;

/**
 * This server's hold on its sessions: renewed in the database, and remembered with the moment at which it ends on the monotonic clock,
 * so that a request asks no database. See docs/adr on servers that share a database.
 */
export class ServerLease implements ServerHold {
  readonly #deps: ServerLeaseDeps;
  readonly #watch = new LapseWatch();
  #epoch = 0;
  #until = Number.NEGATIVE_INFINITY;
  #address: string | undefined;
  #onLost: () => Promise<void> = async () => undefined;
  #onLeft: (serverId: string, epoch: number) => void = () => undefined;
  /** The other servers, as they were at the last beat. */
  #others = new Map<string, ServerRecord>();
  #beaten = false;
  #losing: Promise<void> | undefined;
  #cancelBeat: (() => void) | undefined;
  #cancelLapse: (() => void) | undefined;
  #renewing: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(deps: ServerLeaseDeps) {
    this.#deps = deps;
  }

  get serverId(): string {
    return this.#deps.serverId;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Whether this server knows that no other one was there at its last beat. */
  get alone(): boolean {
    return !this.#deps.shared || (this.#beaten && this.#others.size === 0);
  }

  /** The other server whose life has that number, as far as this one knew at its last beat. No two lives have one number. */
  other(epoch: number): ServerHolder | undefined {
    for (const { serverId, address, ...server } of this.#others.values())
      if (server.epoch === epoch) return { serverId, epoch, address };
    return undefined;
  }

  held(): boolean {
    return this.#deps.clock.monotonic() < this.#until;
  }

  /** Begins a life of this server. Rejects with the database's error. */
  async open(): Promise<void> {
    await this.#claim();
  }

  /** Tells other servers the `host:port` at which they reach this one. */
  async announce(address: string): Promise<void> {
    this.#address = address;
    await this.#deps.store.announce(this.#deps.serverId, this.#epoch, address);
  }

  /**
   * Keeps the hold until `close`. `onLost` ends every sandbox of this server and must not reject. `onLeft` learns of each life of another
   * server that is over, whoever ended it, by the last epoch that is: what it was asked until then is answered no more.
   */
  start(onLost: () => Promise<void>, onLeft: (serverId: string, epoch: number) => void = () => undefined): void {
    this.#onLost = onLost;
    this.#onLeft = onLeft;
    if (this.#deps.shared) this.#armBeat();
  }

  /** Takes leave; the sessions have ended by then. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelBeat?.();
    this.#cancelLapse?.();
    await this.#renewing;
    const { store, serverId, clock, log } = this.#deps;
    await store
      .release(serverId, this.#epoch, clock.now())
      .catch((error: unknown) => log.warn({ err: error }, 'the server could not take leave of the database'));
  }

  async #claim(): Promise<void> {
    const { store, serverId, leaseMs, clock } = this.#deps;
    const began = clock.monotonic();
    this.#epoch = await store.claim({ serverId, leaseMs, address: this.#address });
    await this.#renewed(began);
  }

  async #renewed(began: number): Promise<void> {
    const { shared, leaseMs, clock } = this.#deps;
    if (!shared) {
      this.#until = Number.POSITIVE_INFINITY;
      return;
    }
    await this.#deps.beat(leaseMs * HELD_PART);
    this.#until = began + leaseMs * HELD_PART;
    this.#cancelLapse?.();
    this.#cancelLapse = clock.after(this.#until - clock.monotonic(), () => void this.#lose());
  }

  #armBeat(): void {
    if (this.#closed) return;
    this.#cancelBeat = this.#deps.clock.after(this.#deps.leaseMs / BEATS_PER_LEASE, () => {
      this.#renewing = this.#beat()
        .catch((error: unknown) => this.#deps.log.warn({ err: error }, 'the hold on sessions could not be renewed yet'))
        .finally(() => this.#armBeat());
    });
  }

  async #beat(): Promise<void> {
    const { store, serverId, clock } = this.#deps;
    if (!this.held() || this.#losing) return this.#regain();
    const began = clock.monotonic();
    const servers = await store.renew(serverId, this.#epoch);
    if (!servers) this.#until = Number.NEGATIVE_INFINITY;
    // The answer may have taken so long that the sessions are ending already.
    if (!servers || this.#losing) return this.#regain();
    await this.#renewed(began);
    const others = servers.filter((server) => server.serverId !== serverId);
    for (const lapsed of this.#watch.observe(others, clock.monotonic())) await this.#take(lapsed);
    const now = new Map(others.map((server) => [server.serverId, server]));
    for (const [id, { epoch }] of this.#others) {
      const current = now.get(id)?.epoch;
      // It may have lived more than once since the last beat. Of one that is not there a new life may have begun by now.
      if (current !== epoch) this.#onLeft(id, current === undefined ? epoch : current - 1);
    }
    this.#others = now;
    this.#beaten = true;
  }

  async #regain(): Promise<void> {
    await this.#lose();
    if (this.#closed) return;
    await this.#claim();
    this.#losing = undefined;
    this.#deps.log.info('the hold on sessions is back');
  }

  async #take(server: ServerRecord): Promise<void> {
    const { store, clock, log } = this.#deps;
    const sessions = await store.depose(server, clock.now());
    if (sessions) log.warn({ server: server.serverId, sessions }, 'a server is gone; its sessions have ended');
  }

  /** Gives every session up, once for each loss. */
  #lose(): Promise<void> {
    if (!this.#losing && (this.held() || this.#closed)) return Promise.resolve();
    this.#losing ??= (async () => {
      this.#deps.log.error('the database was out of reach for too long: the sessions of this server end');
      await this.#onLost();
    })();
    return this.#losing;
  }
}
