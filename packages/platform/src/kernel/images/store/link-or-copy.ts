import { copyFile, link, open } from 'node:fs/promises';

/** Makes `to` another name of the file `from` where that can be, else a copy that is on disk. Neither may be written afterwards. */
export async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch {
    // Another disk, or a file system without links; what is wrong with `from` itself, copying tells.
    await copyFile(from, to);
    const file = await open(to, 'r+');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }
}
