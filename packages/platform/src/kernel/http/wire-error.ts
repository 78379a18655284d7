import { encodeError } from '@agentplatform/contract';
import type { FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import { toServiceError } from './service-errors.ts';

/** Answers what was thrown as the wire does; what is a defect of ours is logged. */
export function writeWireError(error: unknown, reply: FastifyReply, log: Logger): FastifyReply {
  logDefect(error, reply, log);
  const { status, headers, body } = encodeError(toServiceError(error) ?? error);
  return reply.code(status).headers(headers).send(body);
}

/** Logs what was thrown, if it is a defect of ours and not of a client who went away: whatever is told to stop for that fails somehow. */
export function logDefect(error: unknown, { raw: res, request }: FastifyReply, log: Logger): void {
  const known = toServiceError(error);
  if (known && known.status !== 500) return;
  // Not the address itself: that of a consent is a secret.
  const about = { err: error, url: request.routeOptions.url };
  // Told by the answer, not by the request: one that was read to its end counts as destroyed.
  if (!known && res.destroyed) log.info(about, 'a request failed after its client had left');
  else log.error(about, 'a request failed for a reason inside the platform');
}
