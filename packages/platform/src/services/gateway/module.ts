import { createJwtAuthenticator, createOidcDiscovery } from '../../kernel/auth/index.ts';
import { embedderOf } from '../../kernel/embeddings/index.ts';
import { originOf } from '../../kernel/http/index.ts';
import { objectReader } from '../../kernel/objects/index.ts';
import { refusalOf } from '../../kernel/outbound/index.ts';
import type { ServiceModule } from '../../service-module.ts';
import {
  createGatewayService,
  GATEWAY_SERVICE_OPERATIONS,
  type GatewayServiceOperation,
  gatewayMigrations,
  gatewayRetention,
  usageSink,
} from './index.ts';

/** Gateways, and the MCP endpoint of each. */
export const module: ServiceModule<
  'gateway',
  GatewayServiceOperation,
  'functions' | 'identity' | 'policy' | 'secrets'
> = {
  operations: GATEWAY_SERVICE_OPERATIONS,
  needs: ['functions', 'identity', 'policy', 'secrets'],
  migrations: gatewayMigrations,
  retention: gatewayRetention,
  sinks: { 'gateway-usage': usageSink },
  create(kernel, { functions, identity, policy, secrets }) {
    const { config, reach, outbound, clock } = kernel;
    const publicUrl = config.publicUrl?.replace(/\/$/, '');
    return createGatewayService({
      ...kernel,
      ...{ identity, secrets, functions, policy, outbound: outbound.apart() },
      jwt: createJwtAuthenticator({ discovery: createOidcDiscovery({ outbound: outbound.apart(), clock }), clock }),
      readObject: objectReader(kernel.objects),
      onModelUse: (use) => void kernel.journal.record('gateway-usage', use),
      roleMay: kernel.iam.roleMay,
      life: kernel.lease,
      roles: kernel.iam,
      keys: kernel.iam.keys,
      ownAddresses: () => [publicUrl, reach.endpoint].filter((one) => one !== undefined),
      ownEndpoint: () => reach.endpoint ?? '',
      ownDispatcher: kernel.ownOutbound.dispatcher,
      ...config.gateway,
      mostTargetBytes: config.quotas.gatewayBytesPerAccount,
      refusalOf: (url) => refusalOf(outbound, url),
      // A process of its own: what memory embeds waits for no tool, and neither holds up a call.
      openEmbedder: embedderOf(config, kernel, { threads: 1, textsAtOnce: 4, yields: true }),
      newIdSuffix: kernel.identifiers.suffix,
      // What runs in a sandbox reaches the platform by an address of its own, and no other.
      originOf: (req) => (req.socket.localPort === reach.sandboxPort ? originOf(req) : (publicUrl ?? originOf(req))),
      addressFor: ({ principal, origin }) =>
        principal.kind === 'iam' && principal.sandboxId !== undefined ? origin : (publicUrl ?? origin),
      publicUrl,
      version: VERSION,
    });
  },
};

/** Version of the platform that MCP clients are told. */
const VERSION = '0.1.0';
