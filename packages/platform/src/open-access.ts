import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { agentsWait, createAuthorize } from './authorize.ts';
import {
  type Authenticator,
  createAuthenticator,
  createSpool,
  createSqlIamStore,
  type Iam,
  openIam,
  type Spool,
} from './kernel/auth/index.ts';
import {
  type AuditRecord,
  AuditTrail,
  type Authorize,
  BodyMemory,
  OperationCalls,
  type PipelineDeps,
  RequestRates,
  TrustedAddresses,
} from './kernel/http/index.ts';
import { PeerForwarder, PeerTokens, peerAuthenticator } from './kernel/peers/index.ts';
import { createSealer, platformKey } from './kernel/secrets/index.ts';
import type { ServerLease } from './kernel/sessions/index.ts';
import type { Ground } from './open-ground.ts';
import { createServerLease } from './open-lease.ts';
import type { Storage } from './open-storage.ts';
import { createRefuseEarly } from './refuse-early.ts';
import { ResourcePolicies } from './services/resource-policies/index.ts';

/** Who may do what, and who is told of it. */
export interface Access {
  iam: Iam;
  accountId: string;
  roleExists(arn: string): Promise<boolean>;
  resourcePolicies: ResourcePolicies;
  lease: ServerLease;
  authenticator: Authenticator;
  authorize: Authorize;
  refuseEarly: PipelineDeps['refuseEarly'];
  audit(record: AuditRecord): void;
  needRecord(): void;
  rates: RequestRates;
  trusted: TrustedAddresses;
  /** What bodies take that are read whole. */
  bodies: BodyMemory;
  spool: Spool;
  /** Calls of one service to the operations of another. */
  calls: OperationCalls;
  /** Hands requests on to the server that has the session; absent where there is no other. */
  forward: PeerForwarder | undefined;
}

export async function openAccess(parts: Ground & Storage): Promise<Access> {
  const {
    config,
    database,
    changes,
    shared,
    masterKeys,
    provider,
    journal,
    identifiers,
    region,
    clock,
    room,
    log,
    closing,
  } = parts;
  const iam = await openIam({
    store: createSqlIamStore(database),
    sealer: createSealer(masterKeys),
    clock,
    random: randomBytes,
    region,
    ...(config.accountId ? { accountId: config.accountId } : {}),
    defaultRoleProviders: config.defaultRoleProviders,
    changes,
    sandboxLives: (id) => provider.has(id),
    onRenewed: (what) =>
      log.warn(
        { what },
        'what an earlier version or another configuration had made is as this one makes it: look at what agents may do',
      ),
    onRestored: (what) => log.warn({ what }, 'the account had lost what it cannot do without, and has it again'),
  });
  const resourcePolicies = await ResourcePolicies.open(database, changes);
  const lease = await createServerLease({
    database,
    dataDir: config.data,
    leaseSeconds: config.servers.leaseSeconds,
    clock,
    log,
  });
  closing.add(() => lease.close());
  const { authenticator, forward } = await openPeers(parts, iam, lease);
  const trail = new AuditTrail({
    record: (record) => void journal.record('audit', record),
    newRequestId: identifiers.request,
    clock,
  });
  closing.add(async () => trail.close());
  const audit = (record: AuditRecord): void => trail.take(record);
  const trusted = new TrustedAddresses(config.trustedAddresses);
  const rates = new RequestRates({
    ofPrincipal: config.quotas.requestsPerSecond,
    refusedOfAddress: config.quotas.refusalsPerSecond,
    trusted,
    clock,
  });
  const spool = await createSpool({ dir: join(config.data, 'spool'), needRoom: room.need });
  const authorize = agentsWait(createAuthorize(iam, resourcePolicies, changes), room);
  const { request: newRequestId } = identifiers;
  const bodies = new BodyMemory({ totalBytes: config.maxBodyBytesInMemory, trusted });
  const stages = { authenticator, authorize, rates, audit, needRecord: () => journal.need(), forward, bodies };
  const calls = new OperationCalls({ ...parts, ...stages, needRoom: room.need, newRequestId });
  return {
    ...{ iam, resourcePolicies, lease, trusted, spool, calls, ...stages },
    accountId: iam.accountId,
    roleExists: async (arn) => iam.admin.listRoles().some((role) => role.arn === arn),
    refuseEarly: createRefuseEarly(iam, resourcePolicies),
  };

  /** Only on a database that they share can there be other servers. */
  async function openPeers(
    { secrets }: Pick<Storage, 'secrets'>,
    { keys, accountId }: Iam,
    { serverId }: ServerLease,
  ): Promise<Pick<Access, 'authenticator' | 'forward'>> {
    const signatures = createAuthenticator({ keys, clock, region });
    if (!shared) return { authenticator: signatures, forward: undefined };
    const peers = new PeerTokens({ serverId, key: await platformKey(secrets, accountId, 'peers'), clock });
    const forward = new PeerForwarder(peers);
    closing.add(() => forward.close());
    return { authenticator: peerAuthenticator(signatures, peers), forward };
  }
}
