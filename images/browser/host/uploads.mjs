// Files that a person hands to a page: kept on the session's disk, whose quota is that of the sandbox.
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

const UPLOADS = '/home/agent/uploads';

/** Stores the body under that name, in a folder of its own, and gives its path. Throws with `status` 400 for what is no file's name. */
export async function takeFile(name, body) {
  if (name === '' || name === '.' || name === '..' || name.includes('/') || name.includes('\0') || name.length > 200)
    throw Object.assign(new Error('An upload is named by its file name alone.'), { status: 400 });
  await mkdir(UPLOADS, { recursive: true });
  const folder = await mkdtemp(join(UPLOADS, 'f-'));
  const path = join(folder, name);
  try {
    await pipeline(body, createWriteStream(path));
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  return path;
}
