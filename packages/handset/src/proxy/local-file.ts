import path from 'node:path';

/** Reads a file of the application by its name below public/; undefined if there is none. */
export type ReadFile = (name: string) => Uint8Array | undefined;

/** The file below public/ that a reference in a page or in a sheet of `folder` means; undefined if it means anything else. */
export function localFile(
  reference: string,
  folder: string,
  read: ReadFile,
): { readonly name: string; readonly bytes: Uint8Array } | undefined {
  const bare = reference.split(/[?#]/, 1)[0] ?? '';
  if (bare === '' || /^([a-z][a-z0-9+.-]*:|\/\/)/i.test(bare)) return undefined;
  try {
    const name = path.posix.join(bare.startsWith('/') ? '' : folder, decodeURIComponent(bare)).replace(/^\//, '');
    const bytes = name.startsWith('../') ? undefined : read(name);
    return bytes && { name, bytes };
  } catch {
    return undefined;
  }
}
