import { crc32, deflateRawSync } from 'node:zlib';

export interface RawZipEntry {
  name: string;
  content?: string | Uint8Array;
  /** Unix mode with its file type bits. */
  mode?: number;
  store?: boolean;
  flags?: number;
  method?: number;
  /** What the directory claims instead of the truth. */
  claims?: { size?: number; crc?: number };
}

/** A zip built by hand, so that it can hold what no honest tool writes. */
export function rawZip(entries: readonly RawZipEntry[]): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const name = Buffer.from(entry.name);
    const plain = Buffer.from(entry.content ?? '');
    const packed = entry.store ? plain : deflateRawSync(plain);
    const method = entry.method ?? (entry.store ? 0 : 8);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE((entry.flags ?? 0) | 0x800, 2);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(entry.claims?.crc ?? crc32(plain), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(entry.claims?.size ?? plain.length, 18);
    common.writeUInt16LE(name.length, 22);
    bodies.push(Buffer.from('PK\x03\x04', 'latin1'), common, name, packed);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(((entry.mode ?? 0o100644) << 16) >>> 0, 6);
    tail.writeUInt32LE(offset, 10);
    const madeBy = Buffer.from([20, 3]);
    directory.push(Buffer.from('PK\x01\x02', 'latin1'), madeBy, common, tail, name);
    offset += 30 + name.length + packed.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...bodies, central, Buffer.from('PK\x05\x06', 'latin1'), end]);
}
