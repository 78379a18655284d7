import type { Paginator } from '@agentplatform/contract';
import type { Config } from './config.ts';
import { keptKey } from './kept-key.ts';
import { createJwtAuthenticator } from './kernel/auth/jwt.ts';
import { createOidcDiscovery } from './kernel/auth/oidc-discovery.ts';
import type { Clock } from './kernel/clock.ts';
import { type Outbound, refusalOf } from './kernel/outbound/index.ts';
import type { Secrets } from './kernel/secrets/index.ts';
import type { Database } from './kernel/storage/index.ts';
import { createIdentityService } from './services/identity/index.ts';

export interface IdentityParts {
  accountId: string;
  database: Database;
  secrets: Secrets;
  outbound: Outbound;
  paginator: Paginator;
  clock: Clock;
}

/** Identity, with a key of its own for workload access tokens. */
export async function openIdentity({ region, quotas }: Config, parts: IdentityParts) {
  const { accountId, secrets, outbound, clock } = parts;
  return createIdentityService({
    ...parts,
    // Apart from the runtimes': here callers choose the issuers, and could push what others' tokens need out of memory.
    jwt: createJwtAuthenticator({ discovery: createOidcDiscovery({ outbound, clock }), clock }),
    refusalOf: (url) => refusalOf(outbound, url),
    tokenKey: await keptKey(secrets, accountId, 'workload-tokens'),
    // What a session begins with a token it can end with it.
    tokenLifeMs: quotas.sessionLifetimeSeconds * 1000,
    region,
  });
}
