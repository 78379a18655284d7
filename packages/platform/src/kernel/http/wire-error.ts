import { encodeError } from '@agentplatform/contract';
import type { FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import { toServiceError } from './service-errors.ts';

/** Answers what was thrown as the wire does; what is a defect of ours is logged. */
export function writeWireError(error: unknown, reply: FastifyReply, log: Logger): FastifyReply {
  const { status, headers, body } = encodeError(toServiceError(error) ?? error);
  if (status >= 500) log.error({ err: error }, 'a request failed for a reason inside the platform');
  return reply.code(status).headers(headers).send(body);
}
