import { access } from 'node:fs/promises';

/** Whether there is nothing at `path`. What cannot be told, e.g. of a disk that answers with errors, counts as there. */
export function isGone(path: string): Promise<boolean> {
  return access(path).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT' || error.code === 'ENOTDIR',
  );
}
