import { ObjectError, type ObjectErrorCode } from '../../objects/index.ts';
import { isDiskFull } from '../../system-error.ts';
import { type Errno, TreeError } from './tree.ts';

const CODES: Partial<Record<ObjectErrorCode, Errno>> = {
  AccessDenied: 'EACCES',
  EntityTooLarge: 'EFBIG',
  InsufficientStorage: 'ENOSPC',
  KeyTooLongError: 'ENAMETOOLONG',
  NoSuchKey: 'ENOENT',
  PreconditionFailed: 'EEXIST',
};

/** What a program is told of a failure of the object store; EIO for all that no file system has a word for. */
export function treeErrorOf(error: unknown): TreeError {
  if (error instanceof TreeError) return error;
  if (error instanceof ObjectError) return new TreeError(CODES[error.code] ?? 'EIO', { cause: error });
  return new TreeError(isDiskFull(error) ? 'ENOSPC' : 'EIO', { cause: error });
}
