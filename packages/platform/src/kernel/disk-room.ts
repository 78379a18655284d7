import { statfs } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Clock } from './clock.ts';

/** Bytes of a file system. */
export interface DiskSpace {
  /** What users other than root may still take. */
  free: number;
  total: number;
}

export interface DiskRoomDeps {
  /** Any path on the disk. */
  path: string;
  /** What is kept free: the smaller of so many bytes and such a part of the disk. 0 of either: nothing. */
  reserve: { bytes: number; percent: number };
  clock: Clock;
  log: Logger;
  /** Another source in tests. */
  look?(path: string): Promise<DiskSpace>;
}

/** Too little of the disk is left for anything new. It counts as a full disk wherever one is told. */
export class LowDiskError extends Error {
  readonly code = 'ENOSPC';

  constructor({ free }: DiskSpace, reserve: number) {
    super(`The disk of the server is nearly full: ${mib(free)} are free, and ${mib(reserve)} stay so.`);
    this.name = 'LowDiskError';
  }
}

/** How often it is looked; what is written meanwhile comes out of the reserve. More often when not much more than the reserve is free. */
const LOOK_MS = 1000;
const NEAR_LOOK_MS = 100;
const NEAR = 3;
/** Below this part of the reserve agents wait altogether: each call that is answered leaves a row in the audit trail. */
const LAST = 0.5;
/** Room again once a quarter more than the reserve is free, so that it does not go to and fro. */
const AGAIN = 1.25;

/**
 * Watches the disk that the data directory is on. Below the reserve, nothing new is written (`need` throws): the host, the audit
 * trail, the database's own log and deletions still have the rest. Of its last half agents get nothing (`needLast`), and room is made
 * (`relieveBy`). It is over by itself once there is room.
 */
export class DiskRoom {
  readonly #deps: DiskRoomDeps;
  #relieve: () => Promise<void> = async () => undefined;
  #space: DiskSpace = { free: 0, total: 0 };
  #low = false;
  #cancel: () => void = () => undefined;
  #stopped = false;

  private constructor(deps: DiskRoomDeps) {
    this.#deps = deps;
  }

  /** Rejects when the path cannot be looked at. */
  static async open(deps: DiskRoomDeps): Promise<DiskRoom> {
    const room = new DiskRoom(deps);
    await room.#look();
    room.#arm();
    return room;
  }

  get low(): boolean {
    return this.#low;
  }

  /** Throws `LowDiskError` while less than the reserve is free. */
  readonly need = (): void => {
    if (this.#low) throw new LowDiskError(this.#space, this.#reserve);
  };

  /** Throws `LowDiskError` while less than half of the reserve is free. */
  readonly needLast = (): void => {
    if (this.#last) throw new LowDiskError(this.#space, this.#reserve);
  };

  /**
   * Makes room before anything is written: `relieve` is called until half of the reserve is free, or until it says that there is nothing
   * left to free. Rejects with what `relieve` rejects with.
   */
  async makeRoom(relieve: () => Promise<boolean>): Promise<void> {
    while (this.#last && (await relieve())) await this.#look();
  }

  /** What is done at each look while less than half of the reserve is free, until there is room. */
  relieveBy(relieve: () => Promise<void>): void {
    this.#relieve = relieve;
  }

  report(): DiskSpace & { reserve: number; low: boolean } {
    return { ...this.#space, reserve: this.#reserve, low: this.#low };
  }

  close(): void {
    this.#stopped = true;
    this.#cancel();
  }

  get #last(): boolean {
    return this.#low && this.#space.free < this.#reserve * LAST;
  }

  get #reserve(): number {
    const { bytes, percent } = this.#deps.reserve;
    return Math.min(bytes, Math.floor((this.#space.total * percent) / 100));
  }

  async #look(): Promise<void> {
    const { path, log, look = spaceOf } = this.#deps;
    this.#space = await look(path);
    const { free } = this.#space;
    const reserve = this.#reserve;
    const low = free < (this.#low ? reserve * AGAIN : reserve);
    if (low === this.#low) return;
    this.#low = low;
    if (low) log.error({ free, reserve }, 'the disk is nearly full: nothing new is written until there is room');
    else log.info({ free, reserve }, 'the disk has room again');
  }

  #arm(): void {
    if (this.#stopped) return;
    const near = this.#space.free < this.#reserve * NEAR;
    this.#cancel = this.#deps.clock.after(near ? NEAR_LOOK_MS : LOOK_MS, () => {
      this.#look()
        .then(() => (this.#last ? this.#relieve() : undefined))
        .catch((error: unknown) => this.#deps.log.warn({ err: error }, 'the room on the disk could not be looked at'))
        .finally(() => this.#arm());
    });
  }
}

async function spaceOf(path: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(path);
  return { free: bavail * bsize, total: blocks * bsize };
}

function mib(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)} MiB`;
}
