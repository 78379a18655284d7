import { errors } from '@agentplatform/contract';
import type { FastifyRequest } from 'fastify';
import type { IamPrincipal } from '../auth/principal.ts';
import { readSigned, type SignedRequestDeps } from '../auth/signed-request.ts';
import type { PipelineDeps } from './pipeline.ts';

export interface AdminCall {
  principal: IamPrincipal;
  accountId: string;
  /** The verified body; empty when there is none. */
  body: Buffer;
}

/** Establishes who calls one of the platform's own routes and that they may do `action` on the resource. Rejects with ServiceError. */
export type AdminGuard = (
  request: FastifyRequest,
  action: string,
  resource: (accountId: string) => string,
) => Promise<AdminCall>;

const MAX_BODY_BYTES = 64 * 1024;

/** The guard of routes whose plugin leaves the body unread (`adminScope`). */
export function createAdminGuard(deps: SignedRequestDeps & Pick<PipelineDeps, 'authorize'>): AdminGuard {
  return async ({ raw }, action, resource) => {
    const { principal, body } = await readSigned(raw, 'bedrock-agentcore', MAX_BODY_BYTES, deps);
    deps.authorize({
      principal,
      action,
      resource: resource(principal.accountId),
      conditions: {},
      sourceIp: raw.socket.remoteAddress,
    });
    return { principal, accountId: principal.accountId, body };
  };
}

/** The members of a JSON body, none when it is no object. Throws ValidationException, which shows `example`, when it is no JSON. */
export function readMembers(body: Buffer, example: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw errors.validation(`The body must be JSON: ${example}.`);
  }
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
