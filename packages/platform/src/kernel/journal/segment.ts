import { type FileHandle, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeFrame, type Frame, MAX_BODY_BYTES } from './frame.ts';

/** One file of the journal. Segments follow one another by the first sequence number they may hold, which names them. */
export interface Segment {
  path: string;
  firstSeq: number;
}

const NAME = /^(\d{16})\.wal$/;
const CHUNK_BYTES = 256 * 1024;

export function segmentPath(directory: string, firstSeq: number): string {
  return join(directory, `${String(firstSeq).padStart(16, '0')}.wal`);
}

/** The segments in a directory, oldest first. */
export async function listSegments(directory: string): Promise<Segment[]> {
  const names = (await readdir(directory)).filter((name) => NAME.test(name)).sort();
  return names.map((name) => ({ path: join(directory, name), firstSeq: Number.parseInt(name, 10) }));
}

export interface Placed {
  frame: Frame;
  /** Offset of the byte after the frame. */
  end: number;
}

/** The offset at which reading stopped, and the reason if it was not the end. */
export interface ReadEnd {
  offset: number;
  broken?: string;
}

/** Yields the frames from `offset` up to `limit`, and returns where the intact ones end. Holds one frame and one chunk. */
export async function* readSegment(
  file: FileHandle,
  offset: number,
  limit: number,
): AsyncGenerator<Placed, ReadEnd, undefined> {
  let buffer: Buffer = Buffer.alloc(0);
  let bufferStart = offset;
  let position = offset;
  let wanted = CHUNK_BYTES;
  for (;;) {
    const decoded = decodeFrame(buffer, position - bufferStart);
    if (decoded.kind === 'frame') {
      position = bufferStart + decoded.end;
      yield { frame: decoded.frame, end: position };
      continue;
    }
    if (decoded.kind === 'broken') return { offset: position, broken: decoded.reason };
    const rest = buffer.subarray(position - bufferStart);
    wanted = Math.max(CHUNK_BYTES, decoded.bytes);
    const readFrom = position + rest.length;
    const size = Math.min(wanted, MAX_BODY_BYTES + CHUNK_BYTES, limit - readFrom);
    const chunk = Buffer.allocUnsafe(Math.max(0, size));
    const { bytesRead } = await file.read(chunk, 0, chunk.length, readFrom);
    if (bytesRead === 0) return rest.length === 0 ? { offset: position } : { offset: position, broken: 'a cut frame' };
    buffer = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
    bufferStart = position;
  }
}
