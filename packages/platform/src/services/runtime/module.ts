import { createJwtAuthenticator, createOidcDiscovery } from '../../kernel/auth/index.ts';
import { RateLimiter } from '../../kernel/http/index.ts';
import { objectReader } from '../../kernel/objects/index.ts';
import { refusalOf } from '../../kernel/outbound/index.ts';
import type { Kernel } from '../../open-kernel.ts';
import type { ServiceModule } from '../../service-module.ts';
import { runtimeAdminRoutes } from './admin-routes.ts';
import { baseImageRoutes } from './base-image-routes.ts';
import { createRuntimeService, type RuntimePort, type RuntimeServiceDeps } from './index.ts';
import { RUNTIME_OPERATIONS, type RuntimeOperation } from './operations.ts';
import { RegistryCredentialsStore, registryCredentialsRoutes } from './registry-credentials.ts';
import { runtimeTokens } from './runtime-tokens.ts';
import { explainStart, RUNTIME_SESSIONS } from './session-kind.ts';

declare module '../../service-module.ts' {
  interface Ports {
    runtime: RuntimePort;
  }
}

/** Of WebSockets: a look every 30 s whether the peer is there, and time to answer. */
const STREAMS = { pingIntervalMs: 30_000, handshakeMs: 30_000 };

/** Agent runtimes, with their WebSockets and what the CLI asks of them. */
export const module: ServiceModule<'runtime', RuntimeOperation, 'identity' | 'secrets'> = {
  operations: RUNTIME_OPERATIONS,
  needs: ['identity', 'secrets'],
  create(kernel, { identity, secrets }) {
    const { outbound, clock, identifiers, config, images, sessions, archive, region } = kernel;
    const credentials = new RegistryCredentialsStore(kernel.secrets);
    const jwt = createJwtAuthenticator({
      discovery: createOidcDiscovery({ outbound: outbound.apart(), clock }),
      clock,
    });
    const invocations = new RateLimiter(config.quotas.invocationsPerSecond, clock);
    const service = createRuntimeService({
      ...kernel,
      ...settings(kernel),
      identity,
      agentSecrets: secrets.agents,
      artifacts: {
        readObject: objectReader(kernel.objects),
        registryCredentials: (accountId, uri) => credentials.forImage(accountId, uri),
        temporaryDirectory: kernel.temporaryDir,
        maxZipBytes: config.images.maxZipBytes,
      },
      readSecret: async (arn, caller) => (await secrets.read(arn, undefined, caller)).value,
      fileSystems: {
        ...kernel.fileSystems,
        roleMay: (role, action, resource) => kernel.iam.roleMay(role, action, resource),
      },
      refusalOf: (url) => refusalOf(outbound, url),
      verifyToken: runtimeTokens(jwt, identity),
      takeInvocation: (endpoint) => invocations.take(endpoint),
      newIdSuffix: identifiers.suffix,
      newSessionId: identifiers.session,
      newRequestId: identifiers.request,
    });
    const { sockets, endpoints, mcp } = service.port;
    return {
      ...service,
      sockets: { read: (req) => endpoints.sockets.read(req) ?? sockets.read(req) },
      passes: [endpoints.requests, mcp],
      drain: () => sockets.close(),
      routes: [
        registryCredentialsRoutes(credentials),
        baseImageRoutes({ images, credentials }),
        runtimeAdminRoutes({ runtimes: service.port.runtimes, sessions, archive, region }),
      ],
      sessionKind: { name: RUNTIME_SESSIONS, planOf: service.port.planOf, explain: explainStart },
      imagesInUse: service.port.imagesInUse,
    };
  },
};

/** The settings of agent runtimes; times in milliseconds. */
function settings({ config, network, reach, sandboxCredentials, provider, ownOutbound }: Kernel) {
  return {
    defaults: config.session,
    quotas: config.quotas,
    pooled: config.pool.maxPerVersion,
    sandbox: {
      limits: config.sandbox.limits,
      network,
      endpoint: () => reach.endpoint,
      roleEnvironment: (role) => sandboxCredentials.environment(role),
      egress: { resolve: (host) => ownOutbound.resolve(host), ownPorts: () => ownPorts(config, reach) },
      roleFiles: (role) => sandboxCredentials.environmentWithFile(role),
      hasCredentials: (id) => sandboxCredentials.gave(id),
      keepsSnapshots: () => provider.keepsSnapshots(),
    },
    limits: {
      timeoutMs: config.invocation.timeoutSeconds * 1000,
      streamTimeoutMs: config.invocation.streamTimeoutSeconds * 1000,
      eventBytes: config.invocation.maxEventBytes,
    },
    streams: { ...STREAMS, maxMessageBytes: config.invocation.maxMessageBytes },
  } satisfies Partial<RuntimeServiceDeps>;
}

/** Ports of this machine by which the platform is reached. */
function ownPorts({ port, tls }: Kernel['config'], { endpoint, sandboxPort }: Kernel['reach']): number[] {
  const listening = endpoint === undefined ? [] : [Number(new URL(endpoint).port)];
  return [port, tls.port, ...listening, ...(sandboxPort === undefined ? [] : [sandboxPort])];
}
