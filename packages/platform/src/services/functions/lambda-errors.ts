import { errors, ownErrors, type ServiceError } from '@agentplatform/contract';
import type { FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import { logDefect, type OpenCall, toServiceError } from '../../kernel/http/index.ts';
import { functionErrors } from './error-kinds.ts';

const lambda = ownErrors(functionErrors);

/** The platform's own errors as clients of Lambda know them. */
const WORDS: Readonly<Record<string, (message: string) => ServiceError>> = {
  ValidationException: lambda.InvalidParameterValueException,
  ConflictException: lambda.ResourceConflictException,
  ThrottlingException: lambda.TooManyRequestsException,
  ServiceQuotaExceededException: lambda.CodeStorageExceededException,
  RequestEntityTooLargeException: lambda.RequestTooLargeException,
};
/** Those that are Lambda's `ServiceException`, each with its own status. */
const FAILURES: ReadonlySet<string> = new Set(['InternalServerException', 'ServiceUnavailableException']);

/** Answers what was thrown as Lambda does: the code in a header, the message under both names that its errors have for it. */
export function writeLambdaError(error: unknown, { reply, requestId }: OpenCall, log: Logger): FastifyReply {
  logDefect(error, reply, log.child({ requestId }));
  const known = toServiceError(error);
  const failure = known ?? errors.internal('The platform failed.');
  const { wireMessage, retryAfterSeconds } = failure;
  const { code, status } = WORDS[failure.code]?.(wireMessage) ?? failure;
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds));
  return reply
    .code(status)
    .type('application/json')
    .header('x-amzn-errortype', FAILURES.has(code) ? 'ServiceException' : code)
    .send(JSON.stringify({ Type: status < 500 ? 'User' : 'Service', message: wireMessage, Message: wireMessage }));
}
