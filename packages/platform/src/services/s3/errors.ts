import { ServiceError } from '@agentplatform/contract';
import { isObjectErrorCode, ObjectError, type ObjectErrorCode } from '../../kernel/objects/index.ts';
import { isDiskFull } from '../../kernel/system-error.ts';

/** The codes of the platform's own errors as an S3 client knows them. */
const BY_CODE: Record<string, ObjectErrorCode> = {
  AccessDeniedException: 'AccessDenied',
  MissingAuthenticationTokenException: 'AccessDenied',
  MissingAuthenticationToken: 'AccessDenied',
  UnrecognizedClientException: 'InvalidAccessKeyId',
  InvalidSignatureException: 'SignatureDoesNotMatch',
  IncompleteSignatureException: 'InvalidRequest',
  RequestEntityTooLargeException: 'EntityTooLarge',
  ThrottlingException: 'SlowDown',
  ServiceUnavailableException: 'SlowDown',
};

/** Whatever was thrown, as the client is to see it. Undefined when it is a fault of the platform's own. */
export function toObjectError(error: unknown): ObjectError | undefined {
  if (error instanceof ObjectError) return error;
  if (isDiskFull(error))
    return new ObjectError('InsufficientStorage', 'The disk of the server is full; free some space and try again.', {
      cause: error,
    });
  if (!(error instanceof ServiceError)) return undefined;
  const code = BY_CODE[error.code] ?? (isObjectErrorCode(error.code) ? error.code : undefined);
  if (code) return new ObjectError(code, error.wireMessage, { cause: error });
  return error.status < 500 ? new ObjectError('InvalidRequest', error.wireMessage, { cause: error }) : undefined;
}
