import { errors } from '@agentplatform/contract';
import type { FastifyRequest } from 'fastify';
import type { IamPrincipal } from '../auth/principal.ts';
import type { Authenticator } from '../auth/sigv4.ts';

export interface AdminGuardDeps {
  authenticator: Authenticator;
  /** Throws AccessDeniedException. */
  authorize(request: {
    principal: IamPrincipal;
    action: string;
    resource: string;
    conditions: Record<string, string | string[]>;
    sourceIp: string | undefined;
  }): void;
}

/** Establishes who calls one of the platform's own routes without a body, and that they may. Rejects with ServiceError. */
export type AdminGuard = (
  request: FastifyRequest,
  action: string,
  resource: (accountId: string) => string,
) => Promise<IamPrincipal>;

export function createAdminGuard({ authenticator, authorize }: AdminGuardDeps): AdminGuard {
  return async ({ raw }, action, resource) => {
    const { principal, body } = await authenticator.authenticate({
      method: raw.method ?? '',
      rawUrl: raw.url ?? '/',
      rawHeaders: raw.rawHeaders,
      service: 'bedrock-agentcore',
    });
    // A signature whose body was not looked at proves nothing yet.
    if (body.kind === 'undeclared') throw errors.invalidInput('This route takes no body.');
    authorize({
      principal,
      action,
      resource: resource(principal.accountId),
      conditions: {},
      sourceIp: raw.socket.remoteAddress,
    });
    return principal;
  };
}
