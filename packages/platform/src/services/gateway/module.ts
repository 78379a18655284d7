import { createJwtAuthenticator, createOidcDiscovery } from '../../kernel/auth/index.ts';
import { originOf } from '../../kernel/http/index.ts';
import { objectReader } from '../../kernel/objects/index.ts';
import { refusalOf } from '../../kernel/outbound/index.ts';
import type { ServiceModule } from '../../service-module.ts';
import { createGatewayService, type GatewayServiceOperation, gatewayMigrations } from './index.ts';

/** Gateways, and the MCP endpoint of each. */
export const module: ServiceModule<'gateway', GatewayServiceOperation, 'functions' | 'identity' | 'secrets'> = {
  needs: ['functions', 'identity', 'secrets'],
  migrations: gatewayMigrations,
  create(kernel, { functions, identity, secrets }) {
    const { config, reach, outbound, clock } = kernel;
    const publicUrl = config.publicUrl?.replace(/\/$/, '');
    return createGatewayService({
      ...kernel,
      ...{ functions, identity, secrets, outbound: outbound.apart() },
      jwt: createJwtAuthenticator({ discovery: createOidcDiscovery({ outbound: outbound.apart(), clock }), clock }),
      readObject: objectReader(kernel.objects),
      roleMay: kernel.iam.roleMay,
      life: kernel.lease,
      refusalOf: (url) => refusalOf(outbound, url),
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

/** Of the platform, as MCP clients are told. */
const VERSION = '0.1.0';
