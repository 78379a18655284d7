import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import { INERT_HEADERS } from '../../kernel/http/inert.ts';
import type { Bases } from '../../kernel/images/bases.ts';
import type { ImageStore } from '../../kernel/images/image-store.ts';
import { asRegistryError, RegistryError } from './errors.ts';
import { type Exchange, RegistryHandlers } from './handlers.ts';
import type { RegistryAction, RegistryLogin } from './login.ts';
import { isBase, parseRegistryPath, type RegistryRoute } from './route.ts';
import { type UploadLimits, Uploads } from './uploads.ts';
import { RegistryUsage, type UsageLimits } from './usage.ts';

export type RegistryServerLimits = UploadLimits & UsageLimits;

export const DEFAULT_REGISTRY_LIMITS: RegistryServerLimits = {
  uploadBytes: 2 * 1024 ** 3,
  uploadsPerAccount: 32,
  uploads: 256,
  accountBytes: 50 * 1024 ** 3,
  accountParts: 100_000,
  uploadIdleMs: 15 * 60_000,
  stallMs: 60_000,
};

export interface RegistryServerDeps {
  store: ImageStore;
  bases: Bases;
  clock: Clock;
  log: Logger;
  /** Throws while the disk has no room for anything new. */
  needRoom(): void;
  /** Judges HTTP Basic credentials (an access key id and its secret); undefined refuses. */
  authenticate(user: string, password: string, sourceIp: string | undefined): Promise<RegistryLogin | undefined>;
  limits?: Partial<RegistryServerLimits>;
}

const CHALLENGE = { 'www-authenticate': 'Basic realm="agentplatform", charset="UTF-8"' };
/** What brings something new; a deletion gives room. */
const WRITES = new Set(['POST', 'PUT', 'PATCH']);
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/**
 * Serves the OCI distribution API (pull, push, tags, delete) below `/v2/` on the platform's image store. Each account has
 * names of its own; `base/…` is everybody's to read: the base images of this machine, made when first asked for.
 */
export async function registerRegistry(app: FastifyInstance, deps: RegistryServerDeps): Promise<void> {
  const limits = { ...DEFAULT_REGISTRY_LIMITS, ...deps.limits };
  const usage = new RegistryUsage(deps.store, deps.clock, limits);
  const uploads = new Uploads({ ...deps, usage }, limits);
  const handlers = new RegistryHandlers(deps, uploads, usage);
  await app.register(async (scope) => {
    // Bodies go to the handlers as they come, whatever they are called.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    scope.addHook('onClose', () => uploads.close());
    scope.addHook('onSend', async (_request, reply) => {
      reply.headers({ 'docker-distribution-api-version': 'registry/2.0', ...INERT_HEADERS });
    });
    scope.setErrorHandler((error, request, reply) => sendError(error, request, reply, deps.log));
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      const login = await authenticate(request, deps);
      const [path = '', query] = request.raw.url?.split('?') ?? [];
      const route = parseRegistryPath(path);
      if (route.kind !== 'version' && !isBase(route.name)) login.require(actionOf(route, request.method), route.name);
      if (WRITES.has(request.method)) deps.needRoom();
      const exchange: Exchange = { account: login.accountId, login, query: new URLSearchParams(query), request, reply };
      return handlers.handle(route, exchange);
    };
    scope.route({ method: [...METHODS], url: '/v2', handler });
    scope.route({ method: [...METHODS], url: '/v2/*', handler });
  });
}

function actionOf(route: RegistryRoute, method: string): RegistryAction {
  if (method === 'GET' || method === 'HEAD') return route.kind === 'upload' ? 'PushImage' : 'PullImage';
  return method === 'DELETE' && route.kind === 'manifest' ? 'DeleteImage' : 'PushImage';
}

async function authenticate(request: FastifyRequest, deps: RegistryServerDeps): Promise<RegistryLogin> {
  const match = /^Basic ([A-Za-z0-9+/=_-]{1,8192})$/i.exec(request.headers.authorization ?? '');
  const pair = Buffer.from(match?.[1] ?? '', 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  const { remoteAddress } = request.raw.socket;
  const login =
    colon > 0 ? await deps.authenticate(pair.slice(0, colon), pair.slice(colon + 1), remoteAddress) : undefined;
  if (login) return login;
  throw new RegistryError(
    'UNAUTHORIZED',
    'log in with an access key id as user and its secret access key as password',
    { headers: CHALLENGE },
  );
}

function sendError(thrown: unknown, request: FastifyRequest, reply: FastifyReply, log: Logger): FastifyReply {
  const error = asRegistryError(thrown);
  // What is left of a body that nobody wants is not read.
  if (!request.raw.complete) reply.header('connection', 'close');
  if (error instanceof RegistryError) {
    if (error.code === 'UNAVAILABLE') log.error({ err: thrown }, 'the registry cannot serve');
    return reply.code(error.status).headers(error.headers).type('application/json').send(JSON.stringify(error.body()));
  }
  // Read to its end, a request counts as destroyed; one that was cut off fails with that.
  if (!request.raw.errored) log.error({ err: error }, 'registry request failed');
  return reply
    .code(500)
    .type('application/json')
    .send(JSON.stringify({ errors: [{ code: 'UNKNOWN', message: 'the registry failed; its log says why' }] }));
}
