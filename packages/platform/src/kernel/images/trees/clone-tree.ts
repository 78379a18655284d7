import {
  chmodSync,
  copyFileSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../../system-error.ts';

const COPY_INSTEAD = new Set(['EMLINK', 'EXDEV', 'EPERM']);

/**
 * Makes `to` a copy of the directory `from` whose files are hard links to the same content where that can be. Both must stay read-only:
 * `Tree` replaces files and never writes into one, so layers may be unpacked over the clone. Synchronous.
 */
export function cloneTree(from: string, to: string, ownership: boolean): void {
  mkdirSync(to, { mode: 0o700 });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) cloneTree(source, target, ownership);
    else link(source, target, ownership);
  }
  copyMeta(from, to, ownership);
}

function link(source: string, target: string, ownership: boolean): void {
  try {
    linkSync(source, target);
  } catch (error) {
    // A file system bounds the links to one file, may know none, and never links to another one.
    if (!COPY_INSTEAD.has(errorCode(error) ?? '')) throw error;
    if (lstatSync(source).isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else copyFileSync(source, target);
    copyMeta(source, target, ownership);
  }
}

function copyMeta(source: string, target: string, ownership: boolean): void {
  const info = lstatSync(source);
  if (ownership) lchownSync(target, info.uid, info.gid);
  if (!info.isSymbolicLink()) chmodSync(target, info.mode & 0o7777);
  lutimesSync(target, info.atimeMs / 1000, info.mtimeMs / 1000);
}
