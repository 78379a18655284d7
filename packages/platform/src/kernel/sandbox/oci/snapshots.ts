import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { StagedSpec } from '../host-stage.ts';

/** A sandbox as it was at one moment. */
export interface SnapshotFiles {
  /** Directory of the runtime: processes and memory. */
  state: string;
  /** Image of its disk. */
  disk: string;
}

/** A draft's name begins so: what of that is there at the beginning, a server that was killed has left. */
const DRAFT = '.';

/**
 * What sandboxes specified like this one have in common: one of them may go on as the copy of another. `runtime` is its name and version, for
 * no other release reads what it has written.
 */
export function snapshotKey({ image, command, ownInit, env, limits, labels }: StagedSpec, runtime: string): string {
  const { digest, config } = image;
  const parts = [runtime, digest, config, command, ownInit, Object.entries(env).sort(), limits, labels];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/** Snapshots on disk by their keys, at most `maxBytes` of them: for a new one those that were used longest ago go. */
export class Snapshots {
  readonly #dir: string;
  readonly #maxBytes: number;

  private constructor(dir: string, maxBytes: number) {
    this.#dir = dir;
    this.#maxBytes = maxBytes;
  }

  /** Opens the directory, which only the server reads: it holds memory of agents. */
  static async open(dir: string, maxBytes: number): Promise<Snapshots> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const name of await readdir(dir)) if (name.startsWith(DRAFT)) await remove(join(dir, name));
    return new Snapshots(dir, maxBytes);
  }

  /** The snapshot of this key, marked as used now; undefined when it does not exist. */
  async find(key: string): Promise<SnapshotFiles | undefined> {
    const place = join(this.#dir, key);
    const now = new Date();
    return utimes(place, now, now).then(
      () => filesIn(place),
      () => undefined,
    );
  }

  /** Keeps what `write` puts into the files that it is given. Rejects when it does, and when that is more than may be kept; nothing is kept then. */
  async keep(key: string, write: (files: SnapshotFiles) => Promise<void>): Promise<void> {
    const draft = join(this.#dir, `${DRAFT}${key}.${randomBytes(4).toString('hex')}`);
    const files = filesIn(draft);
    try {
      await mkdir(files.state, { recursive: true, mode: 0o700 });
      await write(files);
      await this.#makeRoom(await bytesIn(draft));
      await this.forget(key);
      await rename(draft, join(this.#dir, key));
    } catch (error) {
      await remove(draft);
      throw error;
    }
  }

  /** Removes the one of this key, if there is one. */
  async forget(key: string): Promise<void> {
    await remove(join(this.#dir, key));
  }

  async #makeRoom(bytes: number): Promise<void> {
    if (bytes > this.#maxBytes)
      throw new Error(`a snapshot of ${bytes} bytes is more than the ${this.#maxBytes} that are kept`);
    const names = (await readdir(this.#dir)).filter((name) => !name.startsWith(DRAFT));
    const kept = await Promise.all(
      names.map(async (name) => {
        const place = join(this.#dir, name);
        return { name, bytes: await bytesIn(place), usedAt: (await stat(place)).mtimeMs };
      }),
    );
    let total = bytes + kept.reduce((sum, one) => sum + one.bytes, 0);
    for (const one of kept.sort((a, b) => a.usedAt - b.usedAt)) {
      if (total <= this.#maxBytes) return;
      await this.forget(one.name);
      total -= one.bytes;
    }
  }
}

function filesIn(place: string): SnapshotFiles {
  return { state: join(place, 'state'), disk: join(place, 'disk') };
}

async function bytesIn(place: string): Promise<number> {
  const names = await readdir(place, { recursive: true });
  // The system counts blocks of 512 bytes; holes are none.
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(place, name))).blocks * 512));
  return sizes.reduce((sum, size) => sum + size, 0);
}

function remove(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true });
}
