import { type ErrorCode, errors } from '@agentplatform/contract';
import type { FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import { logDefect, type OpenCall, toServiceError } from '../../kernel/http/index.ts';

/** The codes of the platform's own errors as clients of Lambda know them, with their status where it is another. */
const CODES: Partial<Record<ErrorCode, { code: string; status?: number }>> = {
  ValidationException: { code: 'InvalidParameterValueException' },
  ConflictException: { code: 'ResourceConflictException' },
  ThrottlingException: { code: 'TooManyRequestsException' },
  ServiceQuotaExceededException: { code: 'CodeStorageExceededException', status: 400 },
  RequestEntityTooLargeException: { code: 'RequestTooLargeException' },
  InternalServerException: { code: 'ServiceException' },
  ServiceUnavailableException: { code: 'ServiceException' },
};

/** Answers what was thrown as Lambda does: the code in a header, the message under both names that its errors have for it. */
export function writeLambdaError(error: unknown, { reply, requestId }: OpenCall, log: Logger): FastifyReply {
  logDefect(error, reply, log.child({ requestId }));
  const known = toServiceError(error);
  const { code, status, wireMessage, retryAfterSeconds } = known ?? errors.internal('The platform failed.');
  const wire = { code, status, ...CODES[code] };
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds));
  return reply
    .code(wire.status)
    .type('application/json')
    .header('x-amzn-errortype', wire.code)
    .send(JSON.stringify({ Type: wire.status < 500 ? 'User' : 'Service', message: wireMessage, Message: wireMessage }));
}
