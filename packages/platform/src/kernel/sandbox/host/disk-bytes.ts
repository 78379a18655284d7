import { stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Bytes of the host that the disk of the sandbox with this directory takes (`owner.pl`). Rejects for a disk in memory, or one that is gone. */
export async function diskBytes(dir: string): Promise<number> {
  // The system counts blocks of 512 bytes, regardless of the file system's block size.
  return (await stat(join(dir, 'disk'))).blocks * 512;
}

/** Ending a sandbox that holds less frees next to nothing: a disk that nobody wrote to is not what fills the server's. */
export const LEAST_DISK_BYTES = 16 * 2 ** 20;
