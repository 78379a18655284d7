import { errorCode, isDiskFull } from '../system-error.ts';

/** Every failure of an object store, by its S3 code, with the status it has on the wire. */
const STATUS = {
  AccessDenied: 403,
  BadDigest: 400,
  BucketAlreadyExists: 409,
  BucketAlreadyOwnedByYou: 409,
  BucketNotEmpty: 409,
  EntityTooLarge: 400,
  EntityTooSmall: 400,
  IncompleteBody: 400,
  InsufficientStorage: 507,
  InternalError: 500,
  InvalidAccessKeyId: 403,
  InvalidArgument: 400,
  InvalidBucketName: 400,
  InvalidPart: 400,
  InvalidPartOrder: 400,
  InvalidRange: 416,
  InvalidRequest: 400,
  KeyTooLongError: 400,
  MalformedXML: 400,
  MethodNotAllowed: 405,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchUpload: 404,
  NoSuchVersion: 404,
  NotImplemented: 501,
  NotModified: 304,
  PreconditionFailed: 412,
  QuotaExceeded: 403,
  RequestTimeTooSkewed: 403,
  SignatureDoesNotMatch: 403,
  SlowDown: 503,
  TooManyBuckets: 400,
} as const;

export type ObjectErrorCode = keyof typeof STATUS;

export class ObjectError extends Error {
  readonly code: ObjectErrorCode;
  readonly status: number;

  constructor(code: ObjectErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ObjectError';
    this.code = code;
    this.status = STATUS[code];
  }
}

export function isObjectErrorCode(code: string): code is ObjectErrorCode {
  return Object.hasOwn(STATUS, code);
}

/** What the file system says, in the words of S3. */
export function mapFileError(error: unknown): unknown {
  if (error instanceof ObjectError) return error;
  if (isDiskFull(error)) {
    const message = 'The object store has no space left on its disk; free some and try again.';
    return new ObjectError('InsufficientStorage', message, { cause: error });
  }
  if (errorCode(error) === 'ENAMETOOLONG')
    return new ObjectError('KeyTooLongError', 'The key is too long.', { cause: error });
  return error;
}

/** Whether the file system has no such file; a name too long for it has none either. */
export function isMissing(error: unknown): boolean {
  return errorCode(error) === 'ENOENT' || errorCode(error) === 'ENAMETOOLONG';
}
