import { lstat, mkdir, mkdtemp, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import { errorCode, orMissing } from '../../system-error.ts';

export interface SharedFolderDeps {
  /** Made when missing, for this user alone. */
  dir: string;
  /** How many entries are kept; the ones not used for the longest time go. */
  most: number;
  clock: Pick<Clock, 'now'>;
  log: Logger;
}

const UNFINISHED = '.new-';
const UNFINISHED_MS = 86_400_000;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * What servers with different data directories share on one machine: an entry is a directory, there whole or not at all. A folder
 * that somebody else owns or may write is not used; nothing in here is ever needed, so that no failure of it is anybody's.
 */
export class SharedFolder {
  readonly #deps: SharedFolderDeps;
  #usable: Promise<boolean> | undefined;

  constructor(deps: SharedFolderDeps) {
    this.#deps = deps;
  }

  /** The entry of that name, marked as used now; undefined when there is none. `name` must be a plain file name. */
  async find(name: string): Promise<string | undefined> {
    if (!(await this.#isUsable())) return undefined;
    const path = join(this.#deps.dir, name);
    const now = this.#deps.clock.now() / 1000;
    // A link would lead to what is not ours.
    if (!(await orMissing(lstat(path)))?.isDirectory()) return undefined;
    await orMissing(utimes(path, now, now));
    return path;
  }

  /** Adds an entry that `fill` writes into an empty directory, unless there is one. Never rejects; what went wrong is logged. */
  async add(name: string, fill: (dir: string) => Promise<void>): Promise<void> {
    if (!(await this.#isUsable()) || (await this.find(name))) return;
    let unfinished: string | undefined;
    try {
      unfinished = await mkdtemp(join(this.#deps.dir, UNFINISHED));
      await fill(unfinished);
      await rename(unfinished, join(this.#deps.dir, name));
      await this.#prune();
    } catch (error) {
      if (unfinished) await rm(unfinished, { recursive: true, force: true }).catch(() => undefined);
      // Another server was faster: its entry is as good.
      if (['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) return;
      this.#deps.log.debug({ err: error, dir: this.#deps.dir }, 'nothing was added to what data directories share');
    }
  }

  /** Takes an entry out that turned out to be damaged. */
  async drop(name: string): Promise<void> {
    this.#deps.log.warn(
      { entry: join(this.#deps.dir, name) },
      'what data directories share was damaged and is made anew',
    );
    await rm(join(this.#deps.dir, name), { recursive: true, force: true }).catch(() => undefined);
  }

  async #prune(): Promise<void> {
    const entries: { path: string; at: number }[] = [];
    for (const name of await readdir(this.#deps.dir)) {
      const path = join(this.#deps.dir, name);
      const info = await orMissing(stat(path));
      if (!info) continue;
      if (!name.startsWith(UNFINISHED)) entries.push({ path, at: info.mtimeMs });
      else if (this.#deps.clock.now() - info.mtimeMs > UNFINISHED_MS) await rm(path, { recursive: true, force: true });
    }
    const tooMany = entries.sort((a, b) => b.at - a.at).slice(this.#deps.most);
    for (const { path } of tooMany) await rm(path, { recursive: true, force: true });
  }

  #isUsable(): Promise<boolean> {
    this.#usable ??= this.#open();
    return this.#usable;
  }

  async #open(): Promise<boolean> {
    const { dir, log } = this.#deps;
    try {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const info = await lstat(dir);
      const safe = info.isDirectory() && info.uid === process.geteuid?.() && (info.mode & WRITABLE_BY_OTHERS) === 0;
      if (!safe) log.warn({ dir }, 'not used to share images: it must be a directory that only this user may write');
      return safe;
    } catch (error) {
      log.warn({ err: error, dir }, 'not used to share images');
      return false;
    }
  }
}
