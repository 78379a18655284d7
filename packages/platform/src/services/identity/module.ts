import { createJwtAuthenticator, createOidcDiscovery } from '../../kernel/auth/index.ts';
import { objectReader } from '../../kernel/objects/index.ts';
import { refusalOf } from '../../kernel/outbound/index.ts';
import { platformKey } from '../../kernel/secrets/index.ts';
import type { ServiceModule } from '../../service-module.ts';
import {
  createIdentityService,
  IDENTITY_OPERATIONS,
  type IdentityOperation,
  type IdentityPort,
  identityMigrations,
  identityRetention,
} from './index.ts';

declare module '../../service-module.ts' {
  interface Ports {
    identity: IdentityPort;
  }
}

/** Identity, with a key of its own for workload access tokens. */
export const module: ServiceModule<'identity', IdentityOperation, 'secrets'> = {
  operations: IDENTITY_OPERATIONS,
  needs: ['secrets'],
  migrations: identityMigrations,
  retention: (database) => identityRetention(database),
  async create(kernel, ports) {
    const { accountId, config, secrets, outbound, clock } = kernel;
    return createIdentityService({
      ...kernel,
      stored: ports.secrets,
      // Apart from the runtimes': here callers choose the issuers, and could push what others' tokens need out of memory.
      jwt: createJwtAuthenticator({ discovery: createOidcDiscovery({ outbound: outbound.apart(), clock }), clock }),
      outbound,
      readObject: objectReader(kernel.objects),
      serverId: kernel.lease.serverId,
      publicUrl: () => config.publicUrl ?? kernel.reach.endpoint ?? `http://127.0.0.1:${config.port}`,
      random: Math.random,
      newIdSuffix: kernel.identifiers.suffix,
      roleExists: kernel.roleExists,
      roleMay: kernel.iam.roleMay,
      refusalOf: (url) => refusalOf(outbound, url),
      tokenKey: await platformKey(secrets, accountId, 'workload-tokens'),
      linkKey: await platformKey(secrets, accountId, 'grant-links'),
      // What a session begins with a token it can end with it.
      tokenLifeMs: config.quotas.sessionLifetimeSeconds * 1000,
    });
  },
};
