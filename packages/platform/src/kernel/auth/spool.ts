import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { errors } from '@agentplatform/contract';
import { isDiskFull } from '../system-error.ts';

/** A body read to its end: in memory, or in a file that has no name any more. */
export type SpooledBody = { sha256: string; length: number } & (
  | { kind: 'memory'; data: Buffer }
  /** Exactly one of the two must be called, once; the stream closes the file when it ends or is destroyed. */
  | { kind: 'file'; open(): Readable; discard(): Promise<void> }
);

export interface Spool {
  /** Reads `source` to its end. Throws 413 past `maxBytes`, 503 when the disk or the spool's share of it is full. */
  take(source: Readable, maxBytes: number): Promise<SpooledBody>;
}

export interface SpoolOptions {
  /** A directory of the spool's own. */
  dir: string;
  /** Bytes of one body that stay in memory. */
  memoryBytes?: number;
  /** Bytes of memory that bodies may take together while they arrive; what comes beside them goes to disk, however short it is. */
  memoryTotalBytes?: number;
  /** Bytes that all bodies on disk may take together. */
  diskBytes?: number;
  /** Throws while the disk has no room for anything new. */
  needRoom?(): void;
}

/** Makes the directory (0700) and removes what a killed process left between creating and unlinking a file. */
export async function createSpool(options: SpoolOptions): Promise<Spool> {
  const { dir, memoryBytes = 1_000_000, memoryTotalBytes = 256_000_000, diskBytes = 4_000_000_000, needRoom } = options;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  for (const name of await readdir(dir)) if (name.endsWith('.body')) await rm(join(dir, name), { force: true });
  let serial = 0;
  let onDisk = 0;
  let inMemory = 0;

  async function openNameless(): Promise<FileHandle> {
    const path = join(dir, `${process.pid}-${serial++}.body`);
    const handle = await open(path, 'wx+', 0o600);
    await unlink(path);
    return handle;
  }

  return {
    async take(source, maxBytes) {
      const hash = createHash('sha256');
      const parts: Buffer[] = [];
      let length = 0;
      let file: FileHandle | undefined;
      let held = 0;
      let remembered = 0;
      const letGo = (): void => {
        inMemory -= remembered;
        remembered = 0;
      };
      const release = (): void => {
        onDisk -= held;
        held = 0;
      };
      const discard = async (): Promise<void> => {
        release();
        await file?.close();
      };
      const write = async (part: Buffer): Promise<void> => {
        if (onDisk + part.length > diskBytes) throw errors.unavailable('Too many large bodies are arriving at once.');
        needRoom?.();
        file ??= await openNameless();
        onDisk += part.length;
        held += part.length;
        for (let at = 0; at < part.length; ) at += (await file.write(part, at)).bytesWritten;
      };
      try {
        // An answer has yet to go out on the same socket, so the source must survive an early end of this loop.
        for await (const part of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
          length += part.length;
          if (length > maxBytes) throw tooLarge(maxBytes);
          hash.update(part);
          if (file === undefined && length <= memoryBytes && inMemory + part.length <= memoryTotalBytes) {
            parts.push(part);
            remembered += part.length;
            inMemory += part.length;
            continue;
          }
          for (const early of parts.splice(0)) await write(early);
          letGo();
          await write(part);
        }
      } catch (error) {
        await discard();
        throw diskFull(error);
      } finally {
        letGo();
      }
      const sha256 = hash.digest('hex');
      const handle = file;
      if (handle === undefined) return { kind: 'memory', sha256, length, data: Buffer.concat(parts) };
      return {
        kind: 'file',
        sha256,
        length,
        open: () => handle.createReadStream({ start: 0 }).once('close', release),
        discard,
      };
    },
  };
}

export function tooLarge(maxBytes: number): Error {
  return errors.tooLarge(`The body is larger than ${maxBytes} bytes.`);
}

function diskFull(error: unknown): unknown {
  return isDiskFull(error) ? errors.unavailable('The disk for request bodies is full.', { cause: error }) : error;
}
