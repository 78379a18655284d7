import { deviceOf, WatchedDisk, type WatchedDiskDeps } from './watched-disk.ts';

export interface DiskRoomDeps extends Omit<WatchedDiskDeps, 'of' | 'meanwhile'> {
  /** Another source in tests. */
  device?(path: string): Promise<number | undefined>;
}

/** A place beside the data directory, which may be on another disk. */
export interface OtherPlace {
  /** Whose it is, as messages say it: `the cache`. */
  of: string;
  path: string;
  /** The platform itself writes there, and so nothing new is written while it is nearly full; otherwise it is only told. */
  own: boolean;
}

/** Too little of a disk is left for anything new. It counts as a full disk wherever one is told. */
export class LowDiskError extends Error {
  readonly code = 'ENOSPC';

  constructor({ free }: { free: number }, reserve: number, of = 'the server') {
    super(`The disk of ${of} is nearly full: ${mib(free)} are free, and ${mib(reserve)} stay so.`);
    this.name = 'LowDiskError';
  }
}

/** Below this part of the reserve agents wait altogether: each call that is answered leaves a row in the audit trail. */
const LAST = 0.5;

/**
 * Watches the disk that the data directory is on, and those of other places. Below the reserve, nothing new is written (`need` throws): the host, the audit
 * trail, the database's own log and deletions still have the rest. Of the last half of the data directory's agents get nothing (`needLast`), and
 * room is made (`relieveBy`). It is over by itself once there is room.
 */
export class DiskRoom {
  readonly #deps: DiskRoomDeps;
  readonly #others: { disk: WatchedDisk; place: OtherPlace }[] = [];
  readonly #devices: Set<number | undefined>;
  readonly #data: WatchedDisk;
  #relieve: () => Promise<void> = async () => undefined;

  private constructor(deps: DiskRoomDeps, device: number | undefined, data: WatchedDisk) {
    this.#deps = deps;
    this.#devices = new Set([device]);
    this.#data = data;
    data.onLook(() => (this.#last ? this.#relieve() : Promise.resolve()));
  }

  /** Rejects when the path cannot be looked at. */
  static async open(deps: DiskRoomDeps): Promise<DiskRoom> {
    const { device = deviceOf, path } = deps;
    const data = await WatchedDisk.open({ ...deps, of: 'the server', meanwhile: 'nothing new is written' });
    return new DiskRoom(deps, await device(path), data);
  }

  /** Watches the disk of one place more, unless it is one of those that are watched. A place that is not there is passed over. */
  async watch(place: OtherPlace): Promise<void> {
    const { device: look = deviceOf, log } = this.#deps;
    const device = await look(place.path);
    if (device === undefined || this.#devices.has(device)) return;
    this.#devices.add(device);
    const meanwhile = place.own ? 'nothing new is written' : 'agents that write there run out of space';
    const disk = await WatchedDisk.open({ ...this.#deps, ...place, meanwhile });
    this.#others.push({ disk, place });
    log.info({ of: place.of, path: place.path }, 'watches the room on a disk of its own');
  }

  get low(): boolean {
    return this.#full !== undefined;
  }

  /** Throws `LowDiskError` while less than the reserve is free of a disk that the platform writes on. */
  readonly need = (): void => {
    const full = this.#full;
    if (full) throw new LowDiskError(full, full.reserve, full.of);
  };

  /** Throws `LowDiskError` while less than half of the reserve is free. */
  readonly needLast = (): void => {
    if (this.#last) throw new LowDiskError(this.#data, this.#data.reserve);
  };

  /**
   * Makes room before anything is written: `relieve` is called until half of the reserve is free, or until it says that there is nothing
   * left to free. Rejects with what `relieve` rejects with.
   */
  async makeRoom(relieve: () => Promise<boolean>): Promise<void> {
    while (this.#last && (await relieve())) await this.#data.look();
  }

  /** What is done at each look while less than half of the reserve is free, until there is room. */
  relieveBy(relieve: () => Promise<void>): void {
    this.#relieve = relieve;
  }

  /** The data directory's disk, and those of other places. */
  report(): DiskReport & { others: (DiskReport & OtherPlace)[] } {
    return { ...this.#data.report(), others: this.#others.map(({ disk, place }) => ({ ...place, ...disk.report() })) };
  }

  close(): void {
    for (const disk of [this.#data, ...this.#others.map(({ disk }) => disk)]) disk.close();
  }

  get #full(): WatchedDisk | undefined {
    if (this.#data.low) return this.#data;
    return this.#others.find(({ disk, place }) => place.own && disk.low)?.disk;
  }

  get #last(): boolean {
    return this.#data.low && this.#data.free < this.#data.reserve * LAST;
  }
}

type DiskReport = ReturnType<WatchedDisk['report']>;

function mib(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)} MiB`;
}
