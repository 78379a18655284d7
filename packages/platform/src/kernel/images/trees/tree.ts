import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  type Stats,
  symlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { ImageError } from '../images.ts';

export interface Ownership {
  uid: number;
  gid: number;
}

export interface EntryMeta extends Ownership {
  /** Permission bits, setuid, setgid and sticky included. */
  mode: number;
  /** Seconds since the epoch. */
  mtime: number;
}

const DEEPEST = 256;
const MOST_LINKS = 40;
/** Forty for each of the most entries that an image may have; half a minute or so. */
const MOST_STEPS = 20_000_000;
const IMPLICIT: EntryMeta = { mode: 0o755, uid: 0, gid: 0, mtime: 0 };

/**
 * Writes entries of a tar into a directory as a chroot would: every symlink on the way is resolved inside the root, `..`
 * stops there, and the last part of a path is never followed. Nobody else may write below `root` meanwhile. Synchronous,
 * so it belongs in a worker.
 */
export class Tree {
  readonly root: string;
  readonly #ownership: boolean;
  /** Parents already resolved, by their path as given; dropped whenever something is removed. */
  readonly #parents = new Map<string, string[]>();
  /** Paths that the current layer has written; its whiteouts do not touch them. */
  #inLayer = new Set<string>();
  #implicit = 0;
  /** Directory metadata goes on last: writing into a directory changes its time, and its mode may forbid it. */
  readonly #directories = new Map<string, EntryMeta>();

  /** Looks at the file system that are left; a few for each entry of an honest image. */
  #steps: number;

  /** `ownership`: whether uid and gid are set, which needs root. `steps`: looks at the file system at most. */
  constructor(root: string, ownership: boolean, steps = MOST_STEPS) {
    this.root = root;
    this.#steps = steps;
    this.#ownership = ownership;
  }

  beginLayer(): void {
    this.#inLayer = new Set();
  }

  directory(path: string, meta: EntryMeta): void {
    const parts = this.#place(path);
    const host = this.#host(parts);
    if (!this.#lstat(host)?.isDirectory()) {
      this.#clear(host);
      mkdirSync(host, { mode: 0o700 });
    }
    this.#directories.set(parts.join('/'), meta);
  }

  /** Opens a new file for writing; the caller writes and calls `close` once. */
  file(path: string, meta: EntryMeta): { write(bytes: Uint8Array): void; close(): void } {
    const host = this.#vacant(path);
    const fd = openSync(host, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
    return {
      write(bytes) {
        for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
      },
      close: () => {
        try {
          if (this.#ownership) fchownSync(fd, meta.uid, meta.gid);
          fchmodSync(fd, meta.mode);
          futimesSync(fd, meta.mtime, meta.mtime);
        } finally {
          closeSync(fd);
        }
      },
    };
  }

  symlink(path: string, target: string, owner: Ownership): void {
    if (target === '' || target.length > 4095 || target.includes('\0'))
      throw invalid(`the link ${show(path)} has no usable target`);
    const host = this.#vacant(path);
    symlinkSync(target, host);
    if (this.#ownership) lchownSync(host, owner.uid, owner.gid);
  }

  /** `target` is a path inside the tree, as a tar names it; the link is to what is there, never through it. */
  hardlink(path: string, target: string): void {
    const found = this.#find(split(target));
    const from = found && this.#host(found);
    const info = from === undefined ? undefined : this.#lstat(from);
    if (from === undefined || !info)
      throw invalid(`the hard link ${show(path)} points to ${show(target)}, which is not there`);
    if (!info.isFile() && !info.isSymbolicLink())
      throw invalid(`the hard link ${show(path)} points to ${show(target)}, which is not a file`);
    const to = this.#place(path);
    // A link to itself must not remove the file first.
    if (this.#host(to) === from) return;
    this.#clear(this.#host(to));
    linkSync(from, this.#host(to));
  }

  /** How many directories were made since the last call that no entry asked for: one name may stand for hundreds. */
  takeImplicit(): number {
    const count = this.#implicit;
    this.#implicit = 0;
    return count;
  }

  /** A whiteout: removes what lower layers had at `path`. */
  remove(path: string): void {
    const parts = this.#find(split(path));
    if (parts && parts.length > 0) this.#removeLower(parts);
  }

  /** An opaque whiteout: removes what lower layers had inside the directory `path`. */
  empty(path: string): void {
    const parts = this.#find(split(path));
    const host = parts && this.#host(parts);
    if (!parts || !host || !this.#lstat(host)?.isDirectory()) return;
    for (const name of readdirSync(host)) this.#removeLower([...parts, name]);
  }

  /** Sets modes, owners and times of the directories. Call once, after the last layer. */
  finish(): void {
    const deepestFirst = [...this.#directories].sort(([a], [b]) => b.length - a.length);
    for (const [path, meta] of deepestFirst) {
      const parts = path === '' ? [] : path.split('/');
      // A part may have been replaced by a link since, and a link may lead out of the root.
      if (!this.#isRealDirectory(parts)) continue;
      const host = this.#host(parts);
      if (this.#ownership) lchownSync(host, meta.uid, meta.gid);
      chmodSync(host, meta.mode);
      utimesSync(host, meta.mtime, meta.mtime);
    }
    this.#directories.clear();
  }

  #isRealDirectory(parts: readonly string[]): boolean {
    for (let depth = 0; depth <= parts.length; depth++) {
      if (!this.#lstat(this.#host(parts.slice(0, depth)))?.isDirectory()) return false;
    }
    return true;
  }

  #lstat(path: string): Stats | undefined {
    this.#step();
    return lstatSync(path, { throwIfNoEntry: false });
  }

  #step(): void {
    this.#steps -= 1;
    if (this.#steps < 0)
      throw new ImageError(
        'too-large',
        'The image takes more work to unpack than an image may: its links or whiteouts go back and forth.',
      );
  }

  #host(parts: readonly string[]): string {
    return join(this.root, ...parts);
  }

  /** Where an entry goes: its real place, marked as written by this layer, with its parents made. */
  #place(path: string): string[] {
    const parts = this.#locate(split(path));
    // A new file below a directory that a later whiteout removes keeps that directory too.
    for (let depth = parts.length; depth > 0; depth--) {
      const key = parts.slice(0, depth).join('/');
      if (this.#inLayer.has(key)) break;
      this.#inLayer.add(key);
    }
    return parts;
  }

  #vacant(path: string): string {
    const parts = this.#place(path);
    if (parts.length === 0) throw invalid('an entry would replace the root directory');
    const host = this.#host(parts);
    this.#clear(host);
    return host;
  }

  #clear(host: string): void {
    const info = this.#lstat(host);
    if (!info) return;
    if (host === this.root) throw invalid('an entry would replace the root directory');
    rmSync(host, { recursive: true, force: true });
    if (info.isDirectory() || info.isSymbolicLink()) this.#parents.clear();
  }

  #removeLower(parts: string[]): void {
    const host = this.#host(parts);
    const info = this.#lstat(host);
    if (!info) return;
    if (!this.#inLayer.has(parts.join('/'))) {
      this.#clear(host);
      return;
    }
    if (!info.isDirectory()) return;
    for (const name of readdirSync(host)) this.#removeLower([...parts, name]);
  }

  #locate(path: readonly string[]): string[] {
    const base = path.at(-1);
    if (base === undefined) return [];
    const parent = this.#parent(path.slice(0, -1));
    return [...parent, base];
  }

  #parent(path: readonly string[]): string[] {
    const key = path.join('/');
    const known = this.#parents.get(key);
    if (known) return known;
    const real = this.#walk(path, true);
    if (!real) throw invalid(`the parent of ${show(key)} cannot be made`);
    this.#parents.set(key, real);
    return real;
  }

  /** Like `#locate`, without making anything: undefined when a parent is not there. */
  #find(path: readonly string[]): string[] | undefined {
    const base = path.at(-1);
    if (base === undefined) return [];
    const parent = this.#walk(path.slice(0, -1), false);
    return parent && [...parent, base];
  }

  #walk(path: readonly string[], make: boolean): string[] | undefined {
    const left = [...path];
    const real: string[] = [];
    let links = 0;
    for (let part = left.shift(); part !== undefined; part = left.shift()) {
      this.#step();
      if (part === '' || part === '.') continue;
      if (part === '..') {
        real.pop();
        continue;
      }
      const host = this.#host([...real, part]);
      const info = this.#lstat(host);
      if (info?.isSymbolicLink()) {
        links += 1;
        if (links > MOST_LINKS) throw invalid(`${show(path.join('/'))} goes through more than ${MOST_LINKS} links`);
        const target = readlinkSync(host);
        if (target.startsWith('/')) real.length = 0;
        left.unshift(...target.split('/'));
        continue;
      }
      if (!info) {
        if (!make) return undefined;
        if (real.length >= DEEPEST) throw invalid(`${show(path.join('/'))} is nested more than ${DEEPEST} deep`);
        mkdirSync(host, { mode: 0o700 });
        this.#implicit += 1;
        const made = [...real, part].join('/');
        this.#inLayer.add(made);
        this.#directories.set(made, IMPLICIT);
      } else if (!info.isDirectory()) {
        if (!make) return undefined;
        throw invalid(`${show(path.join('/'))} is needed as a directory, but a part of it is a file`);
      }
      real.push(part);
    }
    return real;
  }
}

/** Parts of a tar name, relative to the root; `..` and NUL have no place in an image and are refused. */
function split(path: string): string[] {
  if (path.includes('\0') || path.length > 4096) throw invalid('a name in it is too long or holds a NUL character');
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw invalid(`the name ${show(path)} leads out of the image`);
  if (parts.length > DEEPEST) throw invalid(`${show(path)} is nested more than ${DEEPEST} deep`);
  if (parts.some((part) => Buffer.byteLength(part) > 255))
    throw invalid(`the name ${show(path)} has a part of more than 255 bytes`);
  return parts;
}

function show(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

function invalid(why: string): ImageError {
  return new ImageError('invalid', `The image cannot be unpacked: ${why}.`);
}
