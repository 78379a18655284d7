import { ServiceError } from '@agentplatform/contract';
import { CREDENTIALS_PATH, type SandboxCredentials } from '../../kernel/auth/index.ts';
import { addressKey, type RouteSet } from '../../kernel/http/index.ts';

/** What AWS SDKs ask a container's credentials of: one GET with the token as `Authorization`. */
export function sandboxCredentialsRoutes(credentials: Pick<SandboxCredentials, 'issue'>): RouteSet {
  return {
    name: 'sandbox-credentials',
    listeners: ['sandboxes'],
    routes: [
      {
        method: 'GET',
        url: CREDENTIALS_PATH,
        open: 'everybody',
        because: 'whoever asks shows the token of the sandbox at his address, which is all that they are issued by',
        async answer({ request: { headers, socket }, reply }) {
          const issued = await credentials.issue(headers.authorization ?? '', addressKey(socket.remoteAddress));
          reply.header('cache-control', 'no-store');
          return {
            RoleArn: issued.roleArn,
            AccessKeyId: issued.accessKeyId,
            SecretAccessKey: issued.secretAccessKey,
            Token: issued.sessionToken,
            Expiration: new Date(issued.expiresAt).toISOString(),
          };
        },
      },
    ],
    writeError(error, { reply }) {
      if (!(error instanceof ServiceError)) return undefined;
      // The names that the SDKs look for in an answer other than 200.
      return reply.code(error.status).send({ Code: error.code, Message: error.wireMessage });
    },
  };
}
