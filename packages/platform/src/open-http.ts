import { operationCoverage } from './coverage.ts';
import {
  createHttpServer,
  type HttpServer,
  type Listener,
  type PassService,
  Pipeline,
  passThrough,
  RoutePipeline,
  SocketPipeline,
} from './kernel/http/index.ts';
import type { Kernel } from './open-kernel.ts';
import { openSandboxEndpoint } from './open-sandbox-endpoint.ts';
import type { Services } from './open-services.ts';

/** What the platform is reached by; the server listens later. */
export interface Front {
  server: HttpServer;
  sockets: SocketPipeline;
}

/** Opens the listener of sandboxes, and makes that of everybody. */
export async function openHttp(kernel: Kernel, services: Services): Promise<Front> {
  const { config, clock, log, room, rates, trusted, unhandled, identifiers, closing } = kernel;
  const pipeline = new Pipeline({
    ...kernel,
    handlers: services.operations(),
    needRoom: room.need,
    cover: operationCoverage(process.env),
    maxBodyBytes: (operation) => (operation === 'InvokeAgentRuntime' ? config.invocation.maxPayloadBytes : undefined),
    newRequestId: identifiers.request,
  });
  const sockets = new SocketPipeline({ ...kernel, services: services.sockets, newRequestId: identifiers.request });
  const routes = new RoutePipeline({
    ...kernel,
    keys: kernel.iam.keys,
    needRoom: room.need,
    newRequestId: identifiers.request,
  });
  const routesOf = (listener: Listener) => ({
    sets: services.routes.filter(({ listeners = ['everybody'] }) => listeners.includes(listener)),
    pipeline: routes,
  });
  const listener = {
    pipeline,
    upgrade: sockets.upgrade,
    maxConnections: config.maxConnections,
    caps: { perAddress: config.maxConnectionsPerAddress, trusted },
    headMs: config.requestHeadSeconds * 1000,
    admit: rates.admit,
    probeMs: config.connectionProbeSeconds * 1000,
    clock,
    unhandled,
    log,
  };
  const passed = (service: PassService) =>
    passThrough(service, {
      ...kernel,
      newRequestId: identifiers.request,
      maxSpooledBytes: config.invocation.maxPayloadBytes,
    });
  const server = await createHttpServer({
    ...listener,
    // Of a sandbox all count, signed or not.
    signedPass: true,
    routes: routesOf('everybody'),
    passes: services.passes.map(passed),
  });
  const endpoint = await openSandboxEndpoint({
    ...listener,
    perSandbox: {
      connections: config.sandbox.maxConnections,
      requestsPerSecond: config.sandbox.requestsPerSecond,
    },
    routes: routesOf('sandboxes'),
    passes: services.passes.filter(({ sandboxes }) => sandboxes).map(passed),
  });
  kernel.reach.sandboxPort = endpoint.port;
  closing.add(endpoint.close);
  return { server, sockets };
}
