import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { isSignedFor } from '../../kernel/auth/signed-for.ts';
import { INERT_HEADERS } from '../../kernel/http/inert.ts';
import { ObjectError } from '../../kernel/objects/errors.ts';
import { S3Context, type S3Deps } from './context.ts';
import { toObjectError } from './errors.ts';
import { parseTarget } from './request.ts';
import { findRoute } from './routes.ts';
import { writeXml } from './xml.ts';

export interface S3ApiOptions extends S3Deps {
  /**
   * Path under which the store is served; clients take `http://host:port` and this as their endpoint, path-style. A request that
   * is signed for S3 is served without it, too, so that `AWS_ENDPOINT_URL` alone is enough for an S3 client. Shorter than
   * S3 lets the name of a bucket be (`/` and at most two characters): it can never be one.
   */
  prefix: string;
  log: Logger;
}

/** S3's REST interface to an object store: the operations in `routes.ts`, errors as XML, bodies streamed both ways. */
export function s3Api(options: S3ApiOptions): FastifyPluginAsync {
  const { prefix, log } = options;
  return async (app) => {
    // Bodies are read by the handlers, whatever type they claim.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    app.setErrorHandler((error, request, reply) => sendError(error, request, reply, log));
    const method = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE'];
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      reply.headers({
        'x-amz-request-id': randomBytes(8).toString('hex').toUpperCase(),
        server: 'agentplatform',
        ...INERT_HEADERS,
      });
      const url = request.raw.url ?? '';
      const target = parseTarget(url, isBelow(url, prefix) ? prefix : '');
      const authenticated = await options.authenticate(request.raw);
      // Such a signature proves nothing before the body was read, and not every handler reads one. S3 wants the header, too.
      if (authenticated.body.kind === 'undeclared') {
        throw new ObjectError('InvalidRequest', 'Missing required header for this request: x-amz-content-sha256');
      }
      const handle = findRoute(request.method, target);
      return handle(new S3Context(options, request.raw, reply, target, authenticated));
    };
    app.route({ method, url: prefix, handler });
    app.route({ method, url: `${prefix}/*`, handler });
    app.addConstraintStrategy(signedFor);
    app.route({ method, url: '/*', handler, constraints: { [signedFor.name]: 's3' } });
  };
}

function isBelow(url: string, prefix: string): boolean {
  return url.startsWith(prefix) && ['/', '?', ''].includes(url.charAt(prefix.length));
}

/** Routes of requests that are signed for a service; all others pass them by. */
const signedFor = {
  name: 'signedFor',
  storage() {
    const routes = new Map<unknown, never>();
    return {
      get: (service: unknown) => routes.get(service) ?? null,
      set: (service: unknown, route: never) => void routes.set(service, route),
    };
  },
  deriveConstraint: (request: IncomingMessage) => (isSignedFor('s3', request) ? 's3' : undefined),
  mustMatchWhenDerived: false,
};

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply, log: Logger): FastifyReply {
  const known = toObjectError(error);
  if (!known) log.error({ err: error, url: request.url }, 'the object store failed');
  const failure = known ?? new ObjectError('InternalError', 'We encountered an internal error. Please try again.');
  // What is left of a body that nobody read must not be taken for the next request.
  if (!request.raw.readableEnded && request.raw.headers['content-length'] !== '0') reply.header('connection', 'close');
  for (const name of ['content-length', 'content-range', 'etag', 'last-modified']) reply.removeHeader(name);
  reply.code(failure.status);
  if (request.method === 'HEAD' || failure.status === 304) return reply.removeHeader('content-type').send();
  const RequestId = String(reply.getHeader('x-amz-request-id') ?? '');
  const about = { Code: failure.code, Message: failure.message, Resource: request.url.split('?')[0], RequestId };
  return reply.header('content-type', 'application/xml').send(writeXml('Error', about, { namespace: false }));
}
