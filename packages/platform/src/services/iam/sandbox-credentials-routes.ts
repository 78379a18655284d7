import { ServiceError } from '@agentplatform/contract';
import type { FastifyPluginAsync } from 'fastify';
import { CREDENTIALS_PATH, type SandboxCredentials } from '../../kernel/auth/iam/sandbox-credentials.ts';
import { addressKey } from '../../kernel/http/address-key.ts';

/** What AWS SDKs ask a container's credentials of: one GET with the token as `Authorization`. */
export function sandboxCredentialsRoutes(credentials: SandboxCredentials): FastifyPluginAsync {
  return async (app) => {
    app.setErrorHandler((error, _request, reply) => {
      if (!(error instanceof ServiceError)) throw error;
      // The names that the SDKs look for in an answer other than 200.
      return reply.code(error.status).send({ Code: error.code, Message: error.wireMessage });
    });
    app.get(CREDENTIALS_PATH, async ({ headers, socket }, reply) => {
      const issued = await credentials.issue(headers.authorization ?? '', addressKey(socket.remoteAddress));
      reply.header('cache-control', 'no-store');
      return {
        RoleArn: issued.roleArn,
        AccessKeyId: issued.accessKeyId,
        SecretAccessKey: issued.secretAccessKey,
        Token: issued.sessionToken,
        Expiration: new Date(issued.expiresAt).toISOString(),
      };
    });
  };
}
