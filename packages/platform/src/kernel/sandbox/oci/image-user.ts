import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SandboxError } from '../sandbox.ts';

export interface ImageUser {
  uid: number;
  gid: number;
  /** Home directory inside; undefined when the image names none. */
  home: string | undefined;
  /** The image named no user, so the platform's own unprivileged one is used. */
  isDefault: boolean;
}

/** Neither an account of common images nor of hosts. */
const DEFAULT_ID = 10_001;
const MAX_ID = 65_535;
const MAX_FILE = 1024 * 1024;

/**
 * Resolves `user` of an image config (OCI image specification: `uid`, `uid:gid`, `name`, `name:group` …) against the image's own
 * passwd and group files. Throws SandboxError `refused` for a name that the image does not know or an id above 65535.
 */
export async function resolveImageUser(rootfs: string, user: string): Promise<ImageUser> {
  if (user === '') return { uid: DEFAULT_ID, gid: DEFAULT_ID, home: undefined, isDefault: true };
  const [name = '', group, ...rest] = user.split(':');
  if (rest.length > 0 || name === '') throw unknown(user, 'is not of the form user or user:group');
  const accounts = await readTable(rootfs, 'etc/passwd');
  const account = accounts.find((entry) => (isId(name) ? entry[2] === name : entry[0] === name));
  const uid = isId(name) ? Number(name) : Number(account?.[2]);
  if (!Number.isInteger(uid)) throw unknown(user, `names the user ${name}, which is not in its /etc/passwd`);
  let gid = Number(account?.[3] ?? 0);
  if (group !== undefined) {
    const found = isId(group) ? group : (await readTable(rootfs, 'etc/group')).find((entry) => entry[0] === group)?.[2];
    if (found === undefined || !isId(found))
      throw unknown(user, `names the group ${group}, which is not in its /etc/group`);
    gid = Number(found);
  }
  if (!(uid <= MAX_ID && gid <= MAX_ID)) throw unknown(user, `is above the highest id, ${MAX_ID}`);
  return { uid, gid, home: account?.[5] || undefined, isDefault: false };
}

function unknown(user: string, problem: string): SandboxError {
  return new SandboxError(
    'refused',
    `The image's user "${user.slice(0, 100)}" ${problem}. Set USER to an id of 0 to ${MAX_ID} or to a name in the image.`,
  );
}

function isId(text: string): boolean {
  return /^\d{1,10}$/.test(text);
}

/** Rows of a colon-separated file of the image. A link is not followed, nor one to its directory: its target would be looked up on the host. */
async function readTable(rootfs: string, path: string): Promise<string[][]> {
  const directory = await lstat(join(rootfs, dirname(path))).catch(() => undefined);
  if (!directory?.isDirectory()) return [];
  const file = await open(join(rootfs, path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (!file) return [];
  try {
    const stat = await file.stat();
    if (!stat.isFile() || stat.size > MAX_FILE) return [];
    return (await file.readFile('utf8')).split('\n').map((line) => line.split(':'));
  } finally {
    await file.close();
  }
}
