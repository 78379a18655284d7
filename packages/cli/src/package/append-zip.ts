import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';

/** Where the list of a zip's entries is. */
interface Directory {
  entries: number;
  /** Where it begins, which is where the entries themselves end. */
  offset: number;
  bytes: Buffer;
}

/** The record that ends a zip, when no comment follows. */
const END = { signature: 0x06054b50, bytes: 22, entries: 10, size: 12, offset: 16 };
/** An entry of the list; its name, extra fields and comment follow. */
const LISTED = { bytes: 46, lengths: [28, 30, 32], offset: 42 };
/** From this value on, a number in a zip means that the real number is in the zip64 record. */
const MANY = 0xffff;
const FAR = 0xffffffff;

/**
 * Writes a zip to `path` with the entries of the zip `base`, followed by those of the zip `added`. It copies the compressed data unchanged. Resolves with false and writes
 * nothing if one of the two, or both together, need zip64 or end in a comment. A name that is in both would be there twice.
 */
export async function appendZip(base: string, added: string, path: string, signal: AbortSignal): Promise<boolean> {
  const first = await readDirectory(base);
  const second = await readDirectory(added);
  if (!first || !second) return false;
  const entries = first.entries + second.entries;
  const offset = first.offset + second.offset;
  const list = Buffer.concat([first.bytes, moved(second, first.offset)]);
  if (entries >= MANY || offset + list.length >= FAR) return false;
  const end = Buffer.alloc(END.bytes);
  end.writeUInt32LE(END.signature, 0);
  // The number of entries on this disk, and on all disks.
  end.writeUInt16LE(entries, END.entries - 2);
  end.writeUInt16LE(entries, END.entries);
  end.writeUInt32LE(list.length, END.size);
  end.writeUInt32LE(offset, END.offset);
  async function* parts(): AsyncGenerator<Uint8Array> {
    if (first && first.offset > 0) yield* createReadStream(base, { end: first.offset - 1 });
    if (second && second.offset > 0) yield* createReadStream(added, { end: second.offset - 1 });
    yield list;
    yield end;
  }
  await pipeline(parts, createWriteStream(path, { mode: 0o600 }), { signal });
  return true;
}

/** Undefined for a file that does not end as a plain zip. */
async function readDirectory(path: string): Promise<Directory | undefined> {
  await using file = await open(path);
  const { size: fileSize } = await file.stat();
  if (fileSize < END.bytes) return undefined;
  const end = Buffer.alloc(END.bytes);
  await file.read(end, 0, END.bytes, fileSize - END.bytes);
  const [entries, size, offset] = [
    end.readUInt16LE(END.entries),
    end.readUInt32LE(END.size),
    end.readUInt32LE(END.offset),
  ];
  if (end.readUInt32LE(0) !== END.signature || entries === MANY) return undefined;
  if (offset + size + END.bytes !== fileSize) return undefined;
  const bytes = Buffer.alloc(size);
  await file.read(bytes, 0, size, offset);
  return { entries, offset, bytes };
}

/** The list of entries, moved by `distance` bytes. */
function moved({ bytes }: Directory, distance: number): Buffer {
  const list = Buffer.from(bytes);
  for (let at = 0; at < list.length; ) {
    list.writeUInt32LE(list.readUInt32LE(at + LISTED.offset) + distance, at + LISTED.offset);
    at += LISTED.bytes + LISTED.lengths.reduce((sum, place) => sum + list.readUInt16LE(at + place), 0);
  }
  return list;
}
