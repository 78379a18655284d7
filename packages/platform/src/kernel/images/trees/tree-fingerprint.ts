import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A digest over names, kinds, modes, owners, sizes, times and inodes of all that is in a directory: other when a file was written,
 * replaced, added or removed since. The content itself is not read, which would take as long as unpacking it. Synchronous.
 */
export function treeFingerprint(root: string): string {
  const hash = createHash('sha256');
  const visit = (path: string, name: string): void => {
    const info = lstatSync(path);
    const { mode, uid, gid } = info;
    const file = info.isFile() ? [info.size, info.mtimeMs, info.ino] : [];
    const link = info.isSymbolicLink() ? [readlinkSync(path)] : [];
    hash.update(`${JSON.stringify([name, mode, uid, gid, ...file, ...link])}\n`);
    if (info.isDirectory()) for (const inner of readdirSync(path).sort()) visit(join(path, inner), `${name}/${inner}`);
  };
  visit(root, '');
  return hash.digest('hex');
}
