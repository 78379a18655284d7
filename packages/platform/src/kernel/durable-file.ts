import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { orMissing } from './system-error.ts';

/** Makes the names in a directory durable, without which a rename or a new file is not; one that is gone meanwhile needs nothing. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await orMissing(open(path, 'r'));
  try {
    await directory?.sync();
  } finally {
    await directory?.close();
  }
}

/**
 * Writes a file, of mode 0600, whole or not at all and durably, in place of the one that is there. One writer at a time: it is
 * first written to `draft`, which must be on the same disk; `<path>.new` when not given.
 */
export async function replaceFile(path: string, content: string, draft = `${path}.new`): Promise<void> {
  try {
    // Mode bits count only for a file that is made, and what a crash has left might have others.
    await rm(draft, { force: true });
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
  await syncDirectory(dirname(path));
}
