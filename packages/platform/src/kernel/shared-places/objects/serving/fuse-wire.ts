import type { NamedEntry } from '../tree.ts';

// The kernel's FUSE interface (linux/fuse.h, version 7.31), in the byte order of all machines that Node runs on.

export const OP = {
  LOOKUP: 1,
  FORGET: 2,
  GETATTR: 3,
  SETATTR: 4,
  SYMLINK: 6,
  MKNOD: 8,
  MKDIR: 9,
  UNLINK: 10,
  RMDIR: 11,
  RENAME: 12,
  LINK: 13,
  OPEN: 14,
  READ: 15,
  WRITE: 16,
  STATFS: 17,
  RELEASE: 18,
  FSYNC: 20,
  FLUSH: 25,
  INIT: 26,
  OPENDIR: 27,
  READDIR: 28,
  RELEASEDIR: 29,
  FSYNCDIR: 30,
  CREATE: 35,
  INTERRUPT: 36,
  DESTROY: 38,
  BATCH_FORGET: 42,
  RENAME2: 45,
} as const;

/** Largest content of one READ or WRITE, in bytes. */
export const MAX_IO = 1 << 20;
/** Room for one request: the largest content and what stands before it. */
export const REQUEST_BYTES = MAX_IO + 4096;
export const ROOT_ID = 1;

export const S_IFMT = 0o170000;
export const S_IFREG = 0o100000;
const S_IFDIR = 0o040000;

/** For how long the kernel need not ask again what a name is and how large a file: what others write to the store shows then. */
const VALID_SECONDS = 1n;
const MAJOR = 7;
const MINOR = 31;
// ASYNC_READ, BIG_WRITES, AUTO_INVAL_DATA, PARALLEL_DIROPS, MAX_PAGES
const WANTED = (1 << 0) | (1 << 5) | (1 << 12) | (1 << 18) | (1 << 22);

export interface Attributes {
  id: number;
  kind: 'file' | 'directory';
  size: number;
  /** Milliseconds since the epoch. */
  modifiedAt: number;
}

/** One request of the kernel. Numbers of 64 bits are counters of ours or sizes of files, and fit a double. */
export class FuseRequest {
  readonly op: number;
  readonly unique: bigint;
  readonly node: number;
  readonly body: Buffer;

  constructor(message: Buffer) {
    this.op = message.readUInt32LE(4);
    this.unique = message.readBigUInt64LE(8);
    this.node = Number(message.readBigUInt64LE(16));
    this.body = message.subarray(40);
  }

  u32(offset: number): number {
    return this.body.readUInt32LE(offset);
  }

  u64(offset: number): number {
    return Number(this.body.readBigUInt64LE(offset));
  }

  /** The names that begin at `offset`, each ended by a zero byte. Undefined in place of one that is no UTF-8. */
  names(offset: number): (string | undefined)[] {
    const names: (string | undefined)[] = [];
    for (let from = offset; from < this.body.length; ) {
      const end = this.body.indexOf(0, from);
      const bytes = this.body.subarray(from, end < 0 ? undefined : end);
      const text = bytes.toString('utf8');
      names.push(Buffer.from(text).equals(bytes) ? text : undefined);
      if (end < 0) break;
      from = end + 1;
    }
    return names;
  }
}

/** A whole answer: `errno` is 0 or the number of an error, with no body then. */
export function reply(unique: bigint, errno: number, body: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(16);
  head.writeUInt32LE(16 + body.length, 0);
  head.writeInt32LE(-errno, 4);
  head.writeBigUInt64LE(unique, 8);
  return body.length === 0 ? head : Buffer.concat([head, body]);
}

/** The answer to INIT: what of the kernel's offer is taken. */
export function initBody(request: FuseRequest): Buffer {
  const out = Buffer.alloc(64);
  out.writeUInt32LE(MAJOR, 0);
  out.writeUInt32LE(Math.min(MINOR, request.u32(4)), 4);
  out.writeUInt32LE(request.u32(8), 8);
  out.writeUInt32LE((WANTED & request.u32(12)) >>> 0, 12);
  out.writeUInt16LE(64, 16);
  out.writeUInt16LE(48, 18);
  out.writeUInt32LE(MAX_IO, 20);
  out.writeUInt32LE(1, 24);
  out.writeUInt16LE(MAX_IO / 4096, 28);
  return out;
}

/** Everybody who has the mount may do everything: who may have it, and whether to write, is decided before it is mounted. */
function attributes({ id, kind, size, modifiedAt }: Attributes): Buffer {
  const out = Buffer.alloc(88);
  const seconds = BigInt(Math.max(0, Math.floor(modifiedAt / 1000)));
  const nanoseconds = Math.max(0, Math.floor(modifiedAt % 1000)) * 1_000_000;
  out.writeBigUInt64LE(BigInt(id), 0);
  out.writeBigUInt64LE(BigInt(size), 8);
  out.writeBigUInt64LE(BigInt(Math.ceil(size / 512)), 16);
  for (const [i, offset] of [24, 32, 40].entries()) {
    out.writeBigUInt64LE(seconds, offset);
    out.writeUInt32LE(nanoseconds, 48 + 4 * i);
  }
  out.writeUInt32LE((kind === 'file' ? S_IFREG : S_IFDIR) | 0o777, 60);
  out.writeUInt32LE(1, 64);
  out.writeUInt32LE(4096, 80);
  return out;
}

export function attributesBody(about: Attributes): Buffer {
  const head = Buffer.alloc(16);
  head.writeBigUInt64LE(VALID_SECONDS, 0);
  return Buffer.concat([head, attributes(about)]);
}

export function entryBody(about: Attributes): Buffer {
  const head = Buffer.alloc(40);
  head.writeBigUInt64LE(BigInt(about.id), 0);
  head.writeBigUInt64LE(VALID_SECONDS, 16);
  head.writeBigUInt64LE(VALID_SECONDS, 24);
  return Buffer.concat([head, attributes(about)]);
}

export function openBody(handle: number): Buffer {
  const out = Buffer.alloc(16);
  out.writeBigUInt64LE(BigInt(handle), 0);
  return out;
}

export function writtenBody(bytes: number): Buffer {
  const out = Buffer.alloc(8);
  out.writeUInt32LE(bytes, 0);
  return out;
}

/** As much of a directory, from the given place in it, as `room` bytes hold. */
export function directoryBody(entries: readonly NamedEntry[], from: number, room: number): Buffer {
  const parts: Buffer[] = [];
  let length = 0;
  for (let i = from; i < entries.length; i += 1) {
    const entry = entries[i];
    if (!entry) break;
    const name = Buffer.from(entry.name);
    const out = Buffer.alloc(Math.ceil((24 + name.length) / 8) * 8);
    if (length + out.length > room) break;
    // A number that is not known yet; of those who list it nobody looks, and stat(2) tells the real one.
    out.writeBigUInt64LE(0xffff_ffffn, 0);
    out.writeBigUInt64LE(BigInt(i + 1), 8);
    out.writeUInt32LE(name.length, 16);
    out.writeUInt32LE(entry.kind === 'file' ? 8 : 4, 20);
    name.copy(out, 24);
    parts.push(out);
    length += out.length;
  }
  return Buffer.concat(parts);
}

/** An object store has no end that could be told: as if a pebibyte were free. */
export function statfsBody(): Buffer {
  const out = Buffer.alloc(80);
  const blocks = 2n ** 38n;
  for (const offset of [0, 8, 16, 24, 32]) out.writeBigUInt64LE(blocks, offset);
  out.writeUInt32LE(4096, 40);
  out.writeUInt32LE(255, 44);
  out.writeUInt32LE(4096, 48);
  return out;
}
