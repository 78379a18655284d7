import type { FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import { INERT_HEADERS, type KnownRoute, type OpenCall, type RouteSet } from '../../kernel/http/index.ts';
import { ObjectError } from '../../kernel/objects/index.ts';
import { arnOf, S3Context, type S3Deps } from './context.ts';
import { toObjectError } from './errors.ts';
import { findOperation } from './operations.ts';
import { parseTarget } from './request.ts';
import { writeXml } from './xml.ts';

export interface S3RoutesDeps extends S3Deps {
  /**
   * Path under which the store is served; clients take `http://host:port` and this as their endpoint, path-style. A request that
   * is signed for S3 is served without it, too, so that `AWS_ENDPOINT_URL` alone is enough for an S3 client. Shorter than
   * S3 lets the name of a bucket be (`/` and at most two characters): it can never be one.
   */
  prefix: string;
  log: Logger;
}

/** S3's REST interface to an object store: the operations in `operations.ts`, errors as XML, bodies streamed both ways. */
export function s3Routes(deps: S3RoutesDeps): RouteSet {
  const { prefix, log } = deps;
  const common: Omit<KnownRoute, 'url'> = {
    method: ['GET', 'HEAD', 'PUT', 'POST', 'DELETE'],
    credentials: { kind: 'signature', service: 's3' },
    body: 'streamed',
    ask(call) {
      const { raw, method } = call.request;
      const url = raw.url ?? '';
      const target = parseTarget(url, isBelow(url, prefix) ? prefix : '');
      const { action, handle } = findOperation(method, target);
      return {
        rights: action === 'each' ? 'later' : { action, resource: arnOf(target.bucket ? target : { bucket: '*' }) },
        answer: () => handle(new S3Context(deps, call, target)),
      };
    },
  };
  return {
    name: 's3',
    listeners: ['everybody', 'sandboxes'],
    routes: [
      { ...common, url: prefix },
      { ...common, url: `${prefix}/*` },
      { ...common, url: '/*', onlySignedFor: 's3' },
    ],
    headers: ({ requestId }) => ({ 'x-amz-request-id': requestId, server: 'agentplatform', ...INERT_HEADERS }),
    writeError: (error, call) => writeError(error, call, log),
  };
}

function isBelow(url: string, prefix: string): boolean {
  return url.startsWith(prefix) && ['/', '?', ''].includes(url.charAt(prefix.length));
}

function writeError(error: unknown, { request, reply, requestId }: OpenCall, log: Logger): FastifyReply {
  const known = toObjectError(error);
  if (!known) log.error({ err: error, url: request.url }, 'the object store failed');
  const failure = known ?? new ObjectError('InternalError', 'We encountered an internal error. Please try again.');
  // What is left of a body that nobody read must not be taken for the next request.
  if (!request.raw.readableEnded && request.raw.headers['content-length'] !== '0') reply.header('connection', 'close');
  for (const name of ['content-length', 'content-range', 'etag', 'last-modified']) reply.removeHeader(name);
  reply.code(failure.status);
  if (request.method === 'HEAD' || failure.status === 304) return reply.removeHeader('content-type').send();
  const about = {
    Code: failure.code,
    Message: failure.message,
    Resource: request.url.split('?')[0],
    RequestId: requestId,
  };
  return reply.header('content-type', 'application/xml').send(writeXml('Error', about, { namespace: false }));
}
