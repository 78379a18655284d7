import { ImageError } from './images.ts';

export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

const FULL = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EMFILE', 'ENFILE', 'EIO']);

/** Gives a failure of the server's own disk its own reason, so that nobody searches for the fault in the image. */
export function storageError(error: unknown): unknown {
  const code = errorCode(error);
  if (code === undefined || !FULL.has(code) || error instanceof ImageError) return error;
  const why =
    code === 'ENOSPC' || code === 'EDQUOT'
      ? 'The disk that holds the image store is full'
      : `The image store cannot be written (${code})`;
  return new ImageError('storage', `${why}; free space in the data directory and try again.`, { cause: error });
}

/** `undefined` instead of an error when the file or directory does not exist. */
export async function orMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}
