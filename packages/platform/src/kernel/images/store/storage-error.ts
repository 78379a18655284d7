import { errorCode, isDiskFull } from '../../system-error.ts';
import { ImageError } from '../images.ts';

const UNWRITABLE = new Set(['EROFS', 'EMFILE', 'ENFILE', 'EIO']);

/** Gives a failure of the server's own disk its own reason, so that nobody searches for the fault in the image. */
export function storageError(error: unknown): unknown {
  const code = errorCode(error) ?? '';
  if (error instanceof ImageError || !(isDiskFull(error) || UNWRITABLE.has(code))) return error;
  const why = isDiskFull(error)
    ? 'The disk that holds the image store is full'
    : `The image store cannot be written (${code})`;
  return new ImageError('storage', `${why}; free space in the data directory and try again.`, { cause: error });
}
