import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify';
import type { Clock } from '../clock.ts';
import type { Metrics } from '../telemetry/index.ts';
import type { Pipeline } from './pipeline.ts';

/** One thing that must work before the server takes requests, e.g. the database. */
export interface ReadinessCheck {
  name: string;
  check(): Promise<{ ok: boolean; reason?: string }>;
}

export interface HttpServerDeps {
  pipeline: Pipeline;
  /** Everything that is no operation of the contract: the S3 subset, the OCI registry, the platform's own administration. */
  plugins: FastifyPluginAsync[];
  readiness: ReadinessCheck[];
  /** What `/healthz` shows beside its status. */
  about: Record<string, unknown>;
  metrics: Metrics | undefined;
  clock: Clock;
}

export interface HttpServer {
  /** Rejects with the system's error, e.g. `EADDRINUSE`. */
  listen(host: string, port: number): Promise<{ origin: string; port: number }>;
  /** Takes no new connection, lets requests under way finish for so long, then cuts them. */
  close(graceMs: number): Promise<void>;
}

/** Requests that take longer to arrive than this are cut, in ms: room for the largest payload on a slow line. */
const REQUEST_TIMEOUT_MS = 15 * 60_000;
const KEEP_ALIVE_MS = 75_000;

/** The one listener: health, readiness and metrics, the plugins, and for every other path the pipeline. */
export async function createHttpServer(deps: HttpServerDeps): Promise<HttpServer> {
  const app = Fastify({
    logger: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: 4096 },
  });
  healthRoutes(app, deps);
  for (const plugin of deps.plugins) await app.register(plugin);
  await app.register(async (scope) => {
    // The pipeline reads bodies itself: it knows which to stream and which to verify first.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    scope.all('/*', (request, reply) => {
      reply.hijack();
      void deps.pipeline.handle(request.raw, reply.raw);
    });
  });

  return {
    async listen(host, port) {
      await app.listen({ host, port, listenTextResolver: () => '' });
      const { port: bound, family, address } = app.server.address() as AddressInfo;
      const name = family === 'IPv6' ? `[${address}]` : address;
      return { origin: `http://${name}:${bound}`, port: bound };
    },
    async close(graceMs) {
      const cancel = deps.clock.after(graceMs, () => app.server.closeAllConnections());
      try {
        await app.close();
      } finally {
        cancel();
      }
    },
  };
}

function healthRoutes(app: FastifyInstance, { readiness, about, metrics }: HttpServerDeps): void {
  app.get('/healthz', async () => ({ status: 'ok', ...about }));
  app.get('/readyz', async (_request, reply) => {
    const results = await Promise.all(readiness.map(async ({ name, check }) => [name, await check()] as const));
    const ready = results.every(([, result]) => result.ok);
    return reply
      .code(ready ? 200 : 503)
      .send({ status: ready ? 'ready' : 'not ready', checks: Object.fromEntries(results) });
  });
  if (!metrics) return;
  app.get('/metrics', async (_request, reply) => {
    const { contentType, body } = await metrics.render();
    return reply.type(contentType).send(body);
  });
}
