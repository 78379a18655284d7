import { stat, statfs } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Clock } from './clock.ts';

/** Bytes of a file system. */
export interface DiskSpace {
  /** What users other than root may still take. */
  free: number;
  total: number;
}

export interface WatchedDiskDeps {
  /** Whose disk it is, as messages say it: `the server`. */
  of: string;
  /** Any path on the disk. */
  path: string;
  /** What is kept free: the smaller of so many bytes and such a part of the disk. 0 of either: nothing. */
  reserve: { bytes: number; percent: number };
  clock: Clock;
  log: Logger;
  /** Another source in tests. */
  look?(path: string): Promise<DiskSpace>;
  /** What happens meanwhile, for the log: `nothing new is written`. */
  meanwhile: string;
}

/** How often it is looked; what is written meanwhile comes out of the reserve. More often when not much more than the reserve is free. */
const LOOK_MS = 1000;
const NEAR_LOOK_MS = 100;
const NEAR = 3;
/** Room again once a quarter more than the reserve is free, so that it does not go to and fro. */
const AGAIN = 1.25;

/** Knows how much of one disk is free, as of the last look, and whether that is less than its reserve. */
export class WatchedDisk {
  readonly #deps: WatchedDiskDeps;
  #space: DiskSpace = { free: 0, total: 0 };
  #low = false;
  #cancel: () => void = () => undefined;
  #stopped = false;
  #after: () => Promise<void> = async () => undefined;

  private constructor(deps: WatchedDiskDeps) {
    this.#deps = deps;
  }

  /** Rejects when the path cannot be looked at. */
  static async open(deps: WatchedDiskDeps): Promise<WatchedDisk> {
    const disk = new WatchedDisk(deps);
    await disk.look();
    disk.#arm();
    return disk;
  }

  /** What is done after each look. */
  onLook(after: () => Promise<void>): void {
    this.#after = after;
  }

  get of(): string {
    return this.#deps.of;
  }

  get low(): boolean {
    return this.#low;
  }

  get free(): number {
    return this.#space.free;
  }

  get reserve(): number {
    const { bytes, percent } = this.#deps.reserve;
    return Math.min(bytes, Math.floor((this.#space.total * percent) / 100));
  }

  report(): DiskSpace & { reserve: number; low: boolean } {
    return { ...this.#space, reserve: this.reserve, low: this.#low };
  }

  close(): void {
    this.#stopped = true;
    this.#cancel();
  }

  async look(): Promise<void> {
    const { of, path, log, look = spaceOf, meanwhile } = this.#deps;
    this.#space = await look(path);
    const { free, reserve } = this;
    const low = free < (this.#low ? reserve * AGAIN : reserve);
    if (low === this.#low) return;
    this.#low = low;
    if (low) log.error({ of, free, reserve }, `the disk is nearly full: ${meanwhile} until there is room`);
    else log.info({ of, free, reserve }, 'the disk has room again');
  }

  #arm(): void {
    if (this.#stopped) return;
    const { clock, log, of } = this.#deps;
    const near = this.free < this.reserve * NEAR;
    this.#cancel = clock.after(near ? NEAR_LOOK_MS : LOOK_MS, () => {
      this.look()
        .then(() => this.#after())
        .catch((error: unknown) => log.warn({ err: error, of }, 'the room on the disk could not be looked at'))
        .finally(() => this.#arm());
    });
  }
}

async function spaceOf(path: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(path);
  return { free: bavail * bsize, total: blocks * bsize };
}

/** What tells one file system from another; undefined for a path that cannot be looked at. */
export async function deviceOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ dev }) => dev,
    () => undefined,
  );
}
