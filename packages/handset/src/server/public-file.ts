import { readFile, realpath, stat } from 'node:fs/promises';
import path from 'node:path';

/** A file that may be served: its name below the folder and its content. */
export interface PublicFile {
  readonly name: string;
  readonly bytes: Buffer;
}

const MAX_FILE = 64 * 1024 * 1024;

/**
 * The name that a request path asks for, `index.html` for a folder; undefined for a path that no file may have:
 * parent folders, backslashes, drive letters, control characters, hidden files, broken escapes.
 */
export function requestedName(pathname: string): string | undefined {
  let decoded: string;
  try {
    decoded = decodeURIComponent(pathname);
  } catch {
    return undefined;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  if (!decoded.startsWith('/') || /[\\:\u0000-\u001f\u007f]/.test(decoded)) return undefined;
  const segments = decoded.slice(1).split('/');
  if (segments.some((segment) => segment.startsWith('.'))) return undefined;
  if (segments.slice(0, -1).includes('')) return undefined;
  return decoded.endsWith('/') ? `${decoded.slice(1)}index.html` : decoded.slice(1);
}

/** Read a file for a request path; undefined if there is none, it is outside `folder` (also by a link) or over 64 MB. */
export async function readPublicFile(folder: string, pathname: string): Promise<PublicFile | undefined> {
  const name = requestedName(pathname);
  if (name === undefined) return undefined;
  try {
    const base = await realpath(folder);
    const file = await realpath(path.join(base, ...name.split('/')));
    if (!file.startsWith(base + path.sep)) return undefined;
    const info = await stat(file);
    if (!info.isFile() || info.size > MAX_FILE) return undefined;
    return { name, bytes: await readFile(file) };
  } catch {
    return undefined;
  }
}
