import { closeSync, ftruncateSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isDiskFull } from '../../../system-error.ts';
import { type FileEntry, type Tree, TreeError } from '../tree.ts';

/** Disk for what is open, shared by all open files of one mount. */
export class Room {
  readonly #limit: number;
  #taken = 0;

  /** @param limit Bytes. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Throws ENOSPC, so that a file which grows for ever fails alone. */
  change(from: number, to: number): void {
    if (to > from && this.#taken + to - from > this.#limit) throw new TreeError('ENOSPC');
    this.#taken += to - from;
  }
}

export interface OpenContentDeps {
  tree: Pick<Tree, 'stat' | 'fetch' | 'store'>;
  room: Room;
  directory: string;
  /** A name for a local copy that none has had. */
  newLocal(): string;
  /** Where the file is now; undefined when it was removed. */
  path(): string | undefined;
  now(): number;
}

/** How often a file that is renamed or grows meanwhile is fetched before it is given up. */
const ATTEMPTS = 5;

/**
 * The content of a file that is open, one for all who have it open: fetched when it is first wanted, kept beside the platform's data, and
 * stored again as a whole. What was written is in the object store when `flush` resolves.
 */
export class OpenContent {
  /** How often it is open. */
  opens = 0;
  /** Number of other holders. While there is one, opening the file gives this content. */
  holds = 0;
  readonly #deps: OpenContentDeps;
  /** Known once the content is here. */
  #fd: number | undefined;
  /** Name of the local copy. */
  #local = '';
  #size = 0;
  #modifiedAt = 0;
  #loading: Promise<void> | undefined;
  #written = 0;
  #stored = 0;
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(deps: OpenContentDeps) {
    this.#deps = deps;
  }

  get dirty(): boolean {
    return this.#written !== this.#stored;
  }

  /** Undefined while it is not here. */
  get entry(): FileEntry | undefined {
    return this.#fd === undefined ? undefined : { kind: 'file', size: this.#size, modifiedAt: this.#modifiedAt };
  }

  /** Whether nothing must be waited for. */
  get loaded(): boolean {
    return this.#fd !== undefined;
  }

  /** Brings the content here. */
  load(): Promise<void> {
    if (this.#fd !== undefined) return Promise.resolve();
    this.#loading ??= this.#fetch().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** Once loaded. */
  read(offset: number, size: number): Buffer {
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(size, this.#size - offset)));
    let done = 0;
    while (done < buffer.length) {
      const length = readSync(this.#file(), buffer, done, buffer.length - done, offset + done);
      if (length === 0) break;
      done += length;
    }
    return buffer.subarray(0, done);
  }

  /** Once loaded. Throws ENOSPC. */
  write(place: number | 'end', data: Buffer): void {
    const offset = place === 'end' ? this.#size : place;
    this.#resize(Math.max(this.#size, offset + data.length));
    try {
      for (let done = 0; done < data.length; )
        done += writeSync(this.#file(), data, done, data.length - done, offset + done);
    } catch (error) {
      throw isDiskFull(error) ? new TreeError('ENOSPC', { cause: error }) : error;
    } finally {
      this.#touch();
    }
  }

  /** Cuts it off or lengthens it with zeros; what is cut off to nothing need not be fetched. */
  async truncate(size: number): Promise<void> {
    if (size === 0 && this.#fd === undefined && !this.#loading) this.begin();
    else await this.load();
    this.#resize(size);
    ftruncateSync(this.#file(), size);
    this.#touch();
  }

  /** With the empty content of a file that is new. */
  begin(modifiedAt = this.#deps.now()): void {
    this.#local = this.#deps.newLocal();
    this.#fd = openSync(this.#localPath(), 'w+', 0o600);
    this.#modifiedAt = modifiedAt;
  }

  /** Resolves when all that was written before is stored. Rejects with why it is not. */
  flush(): Promise<void> {
    return this.exclusively(async () => {
      const { tree, path } = this.#deps;
      const wanted = this.#written;
      const at = path();
      if (this.#stored >= wanted || at === undefined) return;
      const { modifiedAt } = await tree.store(at, this.#local);
      this.#stored = Math.max(this.#stored, wanted);
      if (!this.dirty) this.#modifiedAt = modifiedAt;
    });
  }

  /** Work during which the file is not stored. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.catch(() => undefined).then(work);
    this.#turn = turn;
    return turn;
  }

  close(): void {
    this.#closed = true;
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    this.#deps.room.change(this.#size, 0);
    rmSync(this.#localPath(), { force: true });
  }

  async #fetch(): Promise<void> {
    const { path } = this.#deps;
    for (let attempt = 1; ; attempt += 1) {
      const at = path();
      if (at === undefined) throw new TreeError('ENOENT');
      try {
        await this.#fetchFrom(at);
        return;
      } catch (error) {
        const errno = error instanceof TreeError ? error.errno : undefined;
        // Renamed, or grown, while it was on its way.
        const again = (errno === 'ENOENT' && path() !== at) || errno === 'EFBIG';
        if (!again || attempt === ATTEMPTS) throw error;
      }
    }
  }

  /** What it takes of the disk is taken from the room first, so that many at once have no more than there is. */
  async #fetchFrom(at: string): Promise<void> {
    const { tree, room, newLocal } = this.#deps;
    const there = await tree.stat(at);
    if (there.kind === 'directory') throw new TreeError('EISDIR');
    let taken = 0;
    const take = (bytes: number): void => {
      room.change(taken, bytes);
      taken = bytes;
    };
    take(there.size);
    // Another each time: an attempt that was given up may still be written.
    const local = newLocal();
    try {
      const { size, modifiedAt } = await tree.fetch(at, local, there.size);
      if (this.#closed) throw new TreeError('EIO');
      take(size);
      this.#fd = openSync(this.#localPath(local), 'r+');
      this.#local = local;
      this.#size = size;
      this.#modifiedAt = modifiedAt;
    } catch (error) {
      take(0);
      rmSync(this.#localPath(local), { force: true });
      throw error;
    }
  }

  #resize(size: number): void {
    this.#deps.room.change(this.#size, size);
    this.#size = size;
  }

  #touch(): void {
    this.#written += 1;
    this.#modifiedAt = this.#deps.now();
  }

  #file(): number {
    if (this.#fd === undefined) throw new TreeError('EIO');
    return this.#fd;
  }

  #localPath(local = this.#local): string {
    return join(this.#deps.directory, local);
  }
}
