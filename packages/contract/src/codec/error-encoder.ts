import { ServiceError } from '../errors.ts';
import type { WireResponse } from './response-encoder.ts';

/** What a client learns of a failure inside the platform; the cause belongs into the log, under the request id. */
const hidden = 'The platform failed. Repeat the request; if it stays, look up the request id in the log.';

/**
 * The response that makes a client throw its own class for an error. Anything but a ServiceError becomes an
 * InternalServerException that tells nothing of its cause.
 */
export function encodeError(error: unknown): WireResponse {
  const known = error instanceof ServiceError ? error : new ServiceError('InternalServerException', hidden);
  const headers: Record<string, string> = {
    ...known.headers,
    'content-type': 'application/json',
    'x-amzn-errortype': known.code,
  };
  if (known.retryAfterSeconds !== undefined) headers['retry-after'] = String(Math.ceil(known.retryAfterSeconds));
  return { status: known.status, headers, body: JSON.stringify({ ...known.members, message: known.wireMessage }) };
}
