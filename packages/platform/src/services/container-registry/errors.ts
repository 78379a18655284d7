import { ServiceError } from '@agentplatform/contract';
import { ImageError } from '../../kernel/images/index.ts';
import { isDiskFull } from '../../kernel/system-error.ts';

/** Error codes of the OCI distribution spec with the status that carries each. */
const STATUS = {
  BLOB_UNKNOWN: 404,
  BLOB_UPLOAD_INVALID: 400,
  BLOB_UPLOAD_UNKNOWN: 404,
  DIGEST_INVALID: 400,
  MANIFEST_BLOB_UNKNOWN: 404,
  MANIFEST_INVALID: 400,
  MANIFEST_UNKNOWN: 404,
  NAME_INVALID: 400,
  NAME_UNKNOWN: 404,
  SIZE_INVALID: 413,
  UNAUTHORIZED: 401,
  DENIED: 403,
  UNSUPPORTED: 405,
  TOOMANYREQUESTS: 429,
  RANGE_INVALID: 416,
  UNAVAILABLE: 503,
} as const;

export type RegistryErrorCode = keyof typeof STATUS;

/** An answer of the registry API other than success; `headers` go out with it. */
export class RegistryError extends Error {
  readonly code: RegistryErrorCode;
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(
    code: RegistryErrorCode,
    message: string,
    options: { status?: number; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.name = 'RegistryError';
    this.code = code;
    this.status = options.status ?? STATUS[code];
    this.headers = options.headers ?? {};
  }

  body(): { errors: { code: string; message: string }[] } {
    return { errors: [{ code: this.code, message: this.message }] };
  }
}

const CHALLENGE = { 'www-authenticate': 'Basic realm="agentplatform", charset="UTF-8"' };

/** What an `ImageError`, or a refusal by policy, means to a client of the registry; `onInvalid` is what was being read. */
export function asRegistryError(error: unknown, onInvalid: RegistryErrorCode = 'MANIFEST_INVALID'): unknown {
  if (error instanceof ServiceError && error.status === 401)
    return new RegistryError('UNAUTHORIZED', error.wireMessage, { headers: CHALLENGE });
  if (error instanceof ServiceError && error.status === 403) return new RegistryError('DENIED', error.wireMessage);
  if (error instanceof ServiceError && error.status === 429)
    return new RegistryError('TOOMANYREQUESTS', error.wireMessage);
  if (error instanceof ServiceError && error.status === 503) return new RegistryError('UNAVAILABLE', error.wireMessage);
  if (isDiskFull(error))
    return new RegistryError('UNAVAILABLE', 'the disk of the server is full; free space and push again');
  if (!(error instanceof ImageError)) return error;
  switch (error.reason) {
    case 'not-found':
      return new RegistryError('MANIFEST_UNKNOWN', error.message);
    case 'too-large':
      return new RegistryError('SIZE_INVALID', error.message);
    case 'invalid':
    case 'architecture':
      return new RegistryError(onInvalid, error.message);
    case 'corrupt':
      return new RegistryError('MANIFEST_BLOB_UNKNOWN', error.message);
    case 'unauthorized':
    case 'quota':
      return new RegistryError('DENIED', error.message);
    case 'unreachable':
    case 'runtime-unavailable':
      return new RegistryError('MANIFEST_UNKNOWN', error.message);
    case 'storage':
      return new RegistryError('UNAVAILABLE', error.message);
  }
}
