import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { encodeError, errors, matchRoute, type RouteMatch } from '@agentplatform/contract';
import Fastify from 'fastify';
import type { Logger } from 'pino';
import { isSignedFor } from '../auth/index.ts';
import type { Clock } from '../clock.ts';
import type { Unhandled } from '../unhandled.ts';
import type { ConnectionCaps } from './connection-caps.ts';
import { type Http2Side, serveHttp2 } from './http2/serve-http2.ts';
import { lingerAfterAnswer } from './linger.ts';
import type { PassPlugin } from './pass-through.ts';
import type { Pipeline } from './pipeline.ts';
import type { Admit } from './request-rates.ts';
import { onlyDeclared } from './routes/declared.ts';
import type { RouteSet } from './routes/route.ts';
import type { RoutePipeline } from './routes/route-pipeline.ts';
import { unservedService } from './unserved-services.ts';
import { refuseUpgrade, type UpgradeHandler } from './upgrade.ts';
import { writeWireError } from './wire-error.ts';

export interface HttpServerDeps {
  pipeline: Pipeline;
  /** Everything that is no operation of the contract, and serves it. */
  routes: { sets: readonly RouteSet[]; pipeline: RoutePipeline };
  /** The handlers that pass every request below a path through. */
  passes?: readonly PassPlugin[];
  /** Takes the requests that ask for WebSocket; without it the offer is passed over. */
  upgrade?: UpgradeHandler | undefined;
  /** At once, on each port; one more is closed as it comes, before it costs a file that others need. */
  maxConnections: number;
  /** Of these, what one address may have. */
  caps: ConnectionCaps;
  /** How long the head of a request may take to come, counted from the beginning of its connection for the first. */
  headMs: number;
  admit: Admit;
  /** Whether an operation of the contract is served although `admit` refuses, where a signature over its head says who sent it. */
  signedPass?: boolean;
  /** How long nothing may come on a connection until the other side is asked whether it is there. */
  probeMs: number;
  clock: Clock;
  /** Told of each request, so that an error that nobody catches ends that one alone. */
  unhandled: Unhandled;
  log: Logger;
}

export interface HttpServer {
  /** Rejects with the system's error, e.g. `EADDRINUSE`. */
  listen(host: string, port: number): Promise<{ origin: string; port: number }>;
  /** The same over TLS, once `listen` has resolved; `renew` gives later connections another certificate. */
  listenSecurely(
    host: string,
    port: number,
    credential: TlsCredential,
  ): Promise<{ port: number; renew(credential: TlsCredential): void }>;
  /** Takes no new connection, lets requests under way finish for so long, then cuts them. */
  close(graceMs: number): Promise<void>;
}

/** PEM. */
interface TlsCredential {
  certificate: string;
  key: string;
}

/** Among the protocols that a client offers. */
const WEBSOCKET = /(?:^|,)\s*websocket\s*(?:,|$)/i;

/** In ms. A request may take so long to arrive: room for the largest payload on a slow line. */
const TIMEOUTS = { requestTimeout: 15 * 60_000, keepAliveTimeout: 75_000 };

/** What a client may agree on over TLS, the best first. */
const ALPNProtocols = ['h2', 'http/1.1'];

/** How often it is looked at which connections have had their time, in ms. */
const CHECK_MS = 5000;

/**
 * The one listener. Requests to operations of the contract go straight to the pipeline, which reads their bodies itself; the
 * rest (declared routes, unknown paths) is Fastify's.
 */
export async function createHttpServer(deps: HttpServerDeps): Promise<HttpServer> {
  const { pipeline } = deps;
  const common: ServerOptions = {
    // An offer of any other protocol is passed over, as HTTP allows.
    shouldUpgradeCallback: ({ headers }) => deps.upgrade !== undefined && WEBSOCKET.test(headers.upgrade ?? ''),
    // A client that is gone without a word would keep its session at work for as long as an answer may go on.
    keepAlive: true,
    keepAliveInitialDelay: deps.probeMs,
    headersTimeout: deps.headMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, deps.headMs),
  };
  const handle: RequestListener = (req, res) => {
    const over = deps.unhandled.during(() => giveUp(res), () => {
      const route = routeOf(req);
      if (route) void pipeline.handle(req, res, route, deps.admit(req, route.operation), deps.signedPass);
      else app.routing(req, res);
    }, [req, res]);
    res.once('close', over);
  };
  const app = Fastify({
    logger: false,
    serverFactory: (_fastify, options) => createServer({ ...(options as ServerOptions), ...common }, handle),
    ...TIMEOUTS,
    forceCloseConnections: 'idle',
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: 4096 },
  });
  const http2 = [prepare(app.server, deps)];
  onlyDeclared(app);
  // Nobody reads the body of a request to an unknown path.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  // A route may refuse a body that is still on its way, and end the connection; of unknown paths nobody else looks at the address.
  app.addHook('onRequest', (request, _reply, done) => {
    if (!request.raw.complete) lingerAfterAnswer(request.raw, deps.clock);
    done(request.is404 ? deps.admit(request.raw) : undefined);
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (!unservedService(request.raw)) return done();
    reply.hijack();
    void pipeline.refuse(request.raw, reply.raw);
  });
  app.setErrorHandler((error, _request, reply) => writeWireError(error, reply, deps.log));
  await app.register(deps.routes.pipeline.plugin(deps.routes.sets, deps.admit));
  for (const pass of deps.passes ?? []) await app.register(pass(deps.admit));
  app.setNotFoundHandler((request, reply) => {
    reply.hijack();
    void pipeline.refuse(request.raw, reply.raw);
  });

  let secure: SecureServer | undefined;
  return {
    async listenSecurely(host, port, credential) {
      const server = createSecureServer(
        { ...pems(credential), ...TIMEOUTS, ...common, handshakeTimeout: deps.headMs, ALPNProtocols },
        handle,
      );
      http2.push(prepare(server, deps));
      server.listen(port, host);
      await once(server, 'listening');
      secure = server;
      const { port: bound } = server.address() as AddressInfo;
      return { port: bound, renew: (newer) => server.setSecureContext(pems(newer)) };
    },
    async listen(host, port) {
      await app.listen({ host, port, listenTextResolver: () => '' });
      const { port: bound, family, address } = app.server.address() as AddressInfo;
      const name = family === 'IPv6' ? `[${address}]` : address;
      return { origin: `http://${name}:${bound}`, port: bound };
    },
    async close(graceMs) {
      const cancel = deps.clock.after(graceMs, () => {
        app.server.closeAllConnections();
        secure?.closeAllConnections();
        for (const side of http2) side.destroy();
      });
      try {
        for (const side of http2) side.close();
        const over = secure?.listening ? once(secure, 'close') : undefined;
        secure?.close();
        secure?.closeIdleConnections();
        await Promise.all([app.close(), over]);
      } finally {
        cancel();
      }
    },
  };
}

/** What both listeners have in common beside their options. */
function prepare(server: Server | SecureServer, deps: HttpServerDeps): Http2Side {
  const { maxConnections, caps, admit, upgrade, unhandled, headMs, probeMs, clock } = deps;
  server.maxConnections = maxConnections;
  const idleMs = TIMEOUTS.keepAliveTimeout;
  const http2 = serveHttp2(server, { caps, maxStreams: maxConnections, headMs, idleMs, probeMs, unhandled, clock });
  if (!upgrade) return http2;
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    const refusal = admit(req);
    if (refusal) return refuseUpgrade(socket, refusal, randomUUID());
    const over = unhandled.during(
      () => socket.destroy(),
      () => upgrade(req, socket, head),
      [socket],
    );
    socket.once('close', over);
  });
  return http2;
}

/** Ends a request in whose course something went wrong that nobody had expected: told, where its answer has not begun. */
function giveUp(res: ServerResponse): void {
  if (res.headersSent) return void res.destroy();
  const { status, headers, body } = encodeError(errors.internal('The platform failed.'));
  res.writeHead(status, headers).end(body);
}

function pems({ certificate, key }: TlsCredential): { cert: string; key: string } {
  return { cert: certificate, key };
}

function routeOf(req: IncomingMessage): RouteMatch | undefined {
  // A bucket may be called what a path of the contract begins with, such as "runtimes".
  if (isSignedFor('s3', req) || unservedService(req)) return undefined;
  const url = req.url ?? '/';
  const at = url.indexOf('?');
  return matchRoute(req.method ?? '', at < 0 ? url : url.slice(0, at));
}
