import type { FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import {
  type Asked,
  INERT_HEADERS,
  type KnownCall,
  type KnownRoute,
  type OpenCall,
  type RouteSet,
} from '../../kernel/http/index.ts';
import { type Bases, type ImageStore, type ImageUsage, repositoryArn } from '../../kernel/images/index.ts';
import { asRegistryError, RegistryError } from './errors.ts';
import { RegistryHandlers } from './handlers.ts';
import type { RegistryAction, RegistryLogin } from './login.ts';
import { isBase, parseRegistryPath, type RegistryRoute } from './route.ts';
import { type UploadLimits, Uploads } from './uploads.ts';

export const DEFAULT_REGISTRY_LIMITS: UploadLimits = {
  uploadBytes: 2 * 1024 ** 3,
  uploadsPerAccount: 32,
  uploads: 256,
  uploadIdleMs: 15 * 60_000,
  stallMs: 60_000,
};

export interface RegistryServerDeps {
  store: ImageStore;
  bases: Bases;
  usage: ImageUsage;
  clock: Clock;
  log: Logger;
  /** Throws while the disk has no room for anything new. */
  needRoom(): void;
  limits?: Partial<UploadLimits>;
}

/** What brings something new; a deletion gives room. */
const WRITES = new Set(['POST', 'PUT', 'PATCH']);

/**
 * Serves the OCI distribution API (pull, push, tags, delete) below `/v2/` on the platform's image store. Each account has
 * names of its own; `base/…` is everybody's to read: the base images of this machine, made when first asked for.
 */
export class RegistryServer {
  readonly routes: RouteSet;
  readonly #deps: RegistryServerDeps;
  readonly #uploads: Uploads;
  readonly #handlers: RegistryHandlers;

  constructor(deps: RegistryServerDeps) {
    const limits = { ...DEFAULT_REGISTRY_LIMITS, ...deps.limits };
    this.#deps = deps;
    this.#uploads = new Uploads(deps, limits);
    this.#handlers = new RegistryHandlers(deps, this.#uploads);
    const common: Omit<KnownRoute, 'url'> = {
      method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      credentials: { kind: 'access-key' },
      body: 'streamed',
      ask: (call) => this.#ask(call),
    };
    this.routes = {
      name: 'container-registry',
      routes: [
        { ...common, url: '/v2' },
        { ...common, url: '/v2/*' },
      ],
      headers: () => ({ 'docker-distribution-api-version': 'registry/2.0', ...INERT_HEADERS }),
      writeError: (error, call) => writeError(error, call, deps.log),
    };
  }

  /** Ends uploads under way. */
  close(): Promise<void> {
    return this.#uploads.close();
  }

  #ask(call: KnownCall): Asked {
    const { accountId: account, principal, request, reply, query, hold } = call;
    const [path = ''] = request.raw.url?.split('?') ?? [];
    const route = parseRegistryPath(path);
    const login: RegistryLogin = {
      principal: principal.arn,
      require: (action, repository) => call.require(`agentplatform:${action}`, repositoryArn(account, repository)),
    };
    const action = `agentplatform:${actionOf(route, request.method)}`;
    const free = route.kind === 'version' || isBase(route.name);
    return {
      rights: free ? 'known' : { action, resource: repositoryArn(account, route.name) },
      answer: () => {
        if (WRITES.has(request.method)) this.#deps.needRoom();
        return this.#handlers.handle(route, { account, login, query, request, reply, hold });
      },
    };
  }
}

function actionOf(route: RegistryRoute, method: string): RegistryAction {
  if (method === 'GET' || method === 'HEAD') return route.kind === 'upload' ? 'PushImage' : 'PullImage';
  return method === 'DELETE' && route.kind === 'manifest' ? 'DeleteImage' : 'PushImage';
}

function writeError(thrown: unknown, { request, reply }: OpenCall, log: Logger): FastifyReply {
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
