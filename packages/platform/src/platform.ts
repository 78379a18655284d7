import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createPaginator, type OperationName } from '@agentplatform/contract';
import { announce, type Ready } from './announce.ts';
import { agentsWait, createAuthorize } from './authorize.ts';
import { Closing } from './closing.ts';
import type { Config } from './config.ts';
import { operationCoverage } from './coverage.ts';
import { makeDataDirectory } from './data-directory.ts';
import { auditedAuthorize, decisionAudit } from './decision-audit.ts';
import { httpPlugins } from './http-plugins.ts';
import { identifiers } from './identifiers.ts';
import { journalSinks } from './journal-sinks.ts';
import { keptKey } from './kept-key.ts';
import { openIam } from './kernel/auth/iam/iam.ts';
import { SandboxCredentials } from './kernel/auth/iam/sandbox-credentials.ts';
import { createSqlIamStore } from './kernel/auth/iam/sql-iam-store.ts';
import { createJwtAuthenticator } from './kernel/auth/jwt.ts';
import { createOidcDiscovery } from './kernel/auth/oidc-discovery.ts';
import { createAuthenticator } from './kernel/auth/sigv4.ts';
import { createSpool } from './kernel/auth/spool.ts';
import { systemClock } from './kernel/clock.ts';
import { DiskRoom } from './kernel/disk-room.ts';
import { every } from './kernel/every.ts';
import { createAdminGuard } from './kernel/http/admin-guard.ts';
import type { AuditRecord } from './kernel/http/audit-record.ts';
import { AuditTrail } from './kernel/http/audit-trail.ts';
import { Pipeline } from './kernel/http/pipeline.ts';
import { RateLimiter } from './kernel/http/rate-limiter.ts';
import { RequestRates } from './kernel/http/request-rates.ts';
import { createHttpServer } from './kernel/http/server.ts';
import { toServiceError } from './kernel/http/service-errors.ts';
import { TrustedAddresses } from './kernel/http/trusted-addresses.ts';
import { createImages } from './kernel/images/index.ts';
import { createJobs } from './kernel/jobs/index.ts';
import { createJournal } from './kernel/journal/index.ts';
import { objectReader } from './kernel/objects/index.ts';
import { createOutbound, refusalOf } from './kernel/outbound/index.ts';
import { PeerForwarder, PeerTokens, peerAuthenticator } from './kernel/peers/index.ts';
import { createSandboxProvider, LiveSandboxes, probeProviders } from './kernel/sandbox/index.ts';
import { configuredMasterKeys, createSecrets, openMasterKeyFile } from './kernel/secrets/index.ts';
import { createSealer } from './kernel/secrets/sealer.ts';
import type { HandlersOf } from './kernel/service.ts';
import { LogArchive } from './kernel/sessions/log-archive.ts';
import { Sessions } from './kernel/sessions/sessions.ts';
import { createSqlSessionStore } from './kernel/sessions/sql-session-store.ts';
import { IdempotencyStore, migrate, openDatabase, Retention, vacuum } from './kernel/storage/index.ts';
import { createLogger, createMetrics, logFormat } from './kernel/telemetry/index.ts';
import { Unhandled } from './kernel/unhandled.ts';
import type { Life } from './life.ts';
import { migrations } from './migrations.ts';
import type { NotImplemented } from './not-implemented.ts';
import { type Door, openDoor } from './open-door.ts';
import { openFileSystems } from './open-file-systems.ts';
import { openIdentity } from './open-identity.ts';
import { createServerLease, reachable } from './open-lease.ts';
import { openMemory } from './open-memory.ts';
import { openObjects } from './open-objects.ts';
import { openTls } from './open-tls.ts';
import { createRefuseEarly } from './refuse-early.ts';
import { retentionRules } from './retention.ts';
import { runtimeTokens } from './runtime-tokens.ts';
import { sandboxOptions } from './sandbox-options.ts';
import { codeInterpreterSettings, runtimeSettings } from './service-settings.ts';
import { createCodeInterpreterService } from './services/code-interpreter/index.ts';
import { createResourcePoliciesService, ResourcePolicies } from './services/resource-policies/index.ts';
import { createRuntimeService } from './services/runtime/index.ts';
import { RegistryCredentialsStore } from './services/runtime/registry-credentials.ts';
import { createTagsService } from './services/tags/index.ts';
import { roomToPool, sessionOptions } from './session-options.ts';
import { memoryQuotas, objectLimits } from './storage-quotas.ts';
import { auditOfStream } from './stream-audit.ts';
import { watchMetrics } from './watch-metrics.ts';

export interface Platform {
  /** Takes requests from now on. Rejects with the system's error when the port is taken. */
  listen(): Promise<Ready>;
  /** Orderly end: requests under way finish within the grace, sessions end, what is in the journal reaches the database. */
  close(): Promise<void>;
}

const HOUR_MS = 3_600_000;

/** How old what is known of a runtime may be that another server changed. */
const REFRESH_MS = 5_000;

/** Of WebSockets: a look every 30 s whether the peer is there, and time to answer. */
const STREAMS = { pingIntervalMs: 30_000, handshakeMs: 30_000 };

/** Builds the platform, part by part, each from those above it. Nothing else constructs parts. */
export async function createPlatform(config: Config, life: Life): Promise<Platform> {
  const clock = systemClock;
  const log = createLogger({ level: config.log.level, format: logFormat(config.log.format) });
  const closing = new Closing();
  try {
    return await build();
  } catch (error) {
    await closing.run();
    throw error;
  }

  async function build(): Promise<Platform> {
    const { data, region } = config;
    const cache = config.cache ?? join(data, 'cache');
    await makeDataDirectory(data);

    const { reserveBytes, reservePercent } = config.disk;
    const reserve = { bytes: reserveBytes, percent: reservePercent };
    const room = await DiskRoom.open({ path: data, reserve, clock, log });
    closing.add(async () => room.close());

    // What sandboxes reach of the platform; open before the first of them is made.
    let door: Door | undefined;
    let endpoint: string | undefined;

    // Isolation first: without it nothing else is worth starting.
    const isolation = sandboxOptions(config, { door: () => door?.port, clock, log });
    const chosen = await createSandboxProvider({ ...isolation, provider: config.sandbox.provider });
    const { report } = chosen;
    const provider = new LiveSandboxes(chosen.provider);
    closing.add(() => provider.close());

    // Storage
    const database = await openDatabase({
      dataDir: data,
      clock,
      log,
      cacheDir: join(cache, 'database'),
      prepared: migrations,
      ...(config.databaseUrl ? { url: config.databaseUrl } : {}),
    });
    closing.add(() => database.close());
    await migrate(database, migrations, log);
    const masterKeys = config.secrets.key
      ? configuredMasterKeys(config.secrets.key)
      : await openMasterKeyFile(config.secrets.keyFile ?? join(data, 'keys'));
    const secrets = createSecrets({ database, keys: masterKeys, clock });
    const journal = await createJournal({
      dir: join(data, 'journal'),
      database,
      clock,
      log,
      sinks: journalSinks,
    });
    closing.add(() => journal.close());

    // Who may do what
    const iam = await openIam({
      store: createSqlIamStore(database),
      sealer: createSealer(masterKeys),
      clock,
      random: randomBytes,
      region,
      ...(config.accountId ? { accountId: config.accountId } : {}),
      // Alone on an embedded database nobody else can have changed anything.
      sandboxLives: (id) => provider.has(id),
      refreshSeconds: config.databaseUrl ? 5 : 0,
      onRefreshError: (error) => log.warn({ err: error }, 'access management could not be refreshed'),
      onRenewed: (what) =>
        log.warn({ what }, 'what an earlier version had made is as this version makes it: agents may do less'),
      onRestored: (what) => log.warn({ what }, 'the account had lost what it cannot do without, and has it again'),
    });
    closing.add(async () => iam.stop());
    const resourcePolicies = await ResourcePolicies.open(database);
    const lease = await createServerLease({
      database,
      dataDir: data,
      leaseSeconds: config.servers.leaseSeconds,
      clock,
      log,
    });
    closing.add(() => lease.close());
    const signatures = createAuthenticator({ keys: iam.keys, clock, region });
    // Only on a database that they share can there be other servers.
    const peers =
      database.kind === 'postgres'
        ? new PeerTokens({ serverId: lease.serverId, key: await keptKey(secrets, iam.accountId, 'peers'), clock })
        : undefined;
    const authenticator = peers ? peerAuthenticator(signatures, peers) : signatures;
    const forward = peers && new PeerForwarder(peers);
    if (forward) closing.add(() => forward.close());
    const authorize = agentsWait(createAuthorize(iam, resourcePolicies), room);
    const trail = new AuditTrail({
      record: (record) => void journal.record('audit', record),
      newRequestId: identifiers.request,
      clock,
    });
    closing.add(async () => trail.close());
    const audit = (record: AuditRecord): void => trail.take(record);
    const auditDecision = decisionAudit({ audit, newRequestId: identifiers.request, clock });
    const spool = await createSpool({ dir: join(data, 'spool'), needRoom: room.need });
    const trusted = new TrustedAddresses(config.trustedAddresses);
    const rates = new RequestRates({
      ofPrincipal: config.quotas.requestsPerSecond,
      refusedOfAddress: config.quotas.refusalsPerSecond,
      trusted,
      clock,
    });
    // Of the doors beside the contract's operations, which the pipeline audits.
    const atDoors = { authenticator, authorize: auditedAuthorize(rates.counted(authorize), auditDecision), spool };
    const guard = createAdminGuard(atDoors);

    // Images, objects and sandboxes
    const metrics = createMetrics();
    const outbound = createOutbound({ allowPrivate: config.outbound.allowPrivateEgress, clock });
    closing.add(() => outbound.close());
    // To what the configuration itself names: on private addresses, too, and out of users' reach.
    const ownOutbound = createOutbound({ anywhere: true, clock });
    closing.add(() => ownOutbound.close());
    const discovery = createOidcDiscovery({ outbound: outbound.apart(), clock });
    const jwt = createJwtAuthenticator({ discovery, clock });
    const images = await createImages({
      dataDir: data,
      clock,
      log,
      outbound: outbound.apart(),
      cacheDir: cache,
      sharedDir: config.cache && join(config.cache, 'images'),
      limits: {
        imageBytes: config.images.maxImageBytes,
        zipBytes: config.images.maxZipBytes,
        zipUnpackedBytes: config.images.maxUnzippedBytes,
      },
    });
    closing.add(() => images.close());
    const { objects, close: closeObjects } = await openObjects(config, iam.accountId, {
      clock,
      limits: objectLimits(config, room.report().total),
      needRoom: room.need,
    });
    closing.add(async () => closeObjects());
    const registryCredentials = new RegistryCredentialsStore(secrets);
    const archive = new LogArchive(join(data, 'logs'), log);
    const fileSystems = await openFileSystems(config, { accountId: iam.accountId, objects, clock, log });
    closing.add(() => fileSystems.close());
    const sandboxCredentials = new SandboxCredentials({
      roles: iam,
      findSandbox: (id) => provider.find(id),
      key: await keptKey(secrets, iam.accountId, 'sandbox-credentials'),
      ttlSeconds: config.sandbox.credentialsSeconds,
      clock,
    });
    const sessions = new Sessions({
      provider,
      store: createSqlSessionStore(database),
      hold: lease,
      shared: database.kind === 'postgres',
      roomToPool: () => roomToPool() && !room.low,
      needRoom: room.need,
      recordUsage: (sample) => void journal.record('usage', sample),
      recordStart: (outcome, seconds) => metrics.sandboxStart(report.provider, outcome).observe(seconds),
      keepLog: (row, endedAt, text) => archive.keep(row, endedAt, text),
      clock,
      newSandboxId: identifiers.sandbox,
      log,
      options: sessionOptions(config),
    });
    closing.add(() => sessions.close());

    // Services
    const paginator = createPaginator(await keptKey(secrets, iam.accountId, 'page-tokens'));
    const roleExists = async (arn: string): Promise<boolean> => iam.admin.listRoles().some((role) => role.arn === arn);
    const invocations = new RateLimiter(config.quotas.invocationsPerSecond, clock);
    const temporary = join(data, 'tmp');
    await rm(temporary, { recursive: true, force: true });
    await mkdir(temporary, { mode: 0o700 });
    const { accountId } = iam;
    const identity = await openIdentity(config, { accountId, database, secrets, outbound, paginator, clock });
    const settings = runtimeSettings(config);
    const runtime = createRuntimeService({
      ...settings,
      sandbox: {
        ...settings.sandbox,
        endpoint: () => endpoint,
        roleEnvironment: (role) => sandboxCredentials.environment(role),
      },
      database,
      images,
      sessions,
      identity: identity.port,
      artifacts: {
        readObject: objectReader(objects),
        registryCredentials: (accountId, uri) => registryCredentials.forImage(accountId, uri),
        temporaryDirectory: temporary,
        maxZipBytes: config.images.maxZipBytes,
      },
      roleExists,
      fileSystems: { ...fileSystems, roleMay: (role, action, resource) => iam.roleMay(role, action, resource) },
      refusalOf: (url) => refusalOf(outbound, url),
      verifyToken: runtimeTokens(jwt),
      takeInvocation: (endpoint) => invocations.take(endpoint),
      paginator,
      clock,
      newIdSuffix: identifiers.suffix,
      newSessionId: identifiers.session,
      log,
    });
    const codeInterpreter = createCodeInterpreterService({
      ...codeInterpreterSettings(config),
      database,
      images,
      sessions,
      roleExists,
      roleEnvironment: (role) => sandboxCredentials.environment(role),
      paginator,
      clock,
      newIdSuffix: identifiers.suffix,
      newSessionId: () => identifiers.session().replaceAll('-', ''),
      cacheDir: cache,
      log,
    });
    const tags = createTagsService({ database });
    const jobs = createJobs({ database, log });
    closing.add(() => jobs.stop());
    const memory = openMemory(config, {
      quotas: memoryQuotas(config, room.report().total),
      database,
      objects,
      outbound: ownOutbound,
      jobs,
      paginator,
      clock,
      log,
    });
    // Served or named in not-implemented.ts: the compiler sees to it.
    const handlers: HandlersOf<Exclude<OperationName, NotImplemented>> = {
      ...runtime.operations,
      ...identity.operations,
      ...tags.operations,
      ...codeInterpreter.operations,
      ...createResourcePoliciesService(resourcePolicies).operations,
      ...memory.operations,
    };

    // HTTP
    const idempotency = new IdempotencyStore({ database, clock, newId: identifiers.request });
    const pipeline = new Pipeline({
      handlers,
      authenticator,
      authorize,
      refuseEarly: createRefuseEarly(iam, resourcePolicies),
      spool,
      idempotency,
      metrics,
      audit,
      rates,
      needRoom: room.need,
      forward,
      cover: operationCoverage(process.env),
      maxBodyBytes: (operation) => (operation === 'InvokeAgentRuntime' ? config.invocation.maxPayloadBytes : undefined),
      clock,
      newRequestId: identifiers.request,
      region,
      log,
    });
    const unhandled = new Unhandled(log);
    watchMetrics(metrics, { sessions, journal, room, unhandled, life });
    const streams = runtime.port.createStreams({
      authenticator,
      authorize,
      count: (principal, sourceIp) => rates.take(principal, sourceIp),
      toError: toServiceError,
      record: (stream) => {
        audit(auditOfStream(stream, clock.now()));
        if (stream.error && !stream.principal) rates.refused(stream.req);
      },
      forward,
      newRequestId: identifiers.request,
      streams: { ...STREAMS, maxMessageBytes: config.invocation.maxMessageBytes },
    });
    const listener = {
      pipeline,
      upgrade: streams.upgrade,
      maxConnections: config.maxConnections,
      caps: { perAddress: config.maxConnectionsPerAddress, trusted },
      headMs: config.requestHeadSeconds * 1000,
      admit: rates.admit,
      rates,
      probeMs: config.connectionProbeSeconds * 1000,
      clock,
      unhandled,
      log,
    };
    const server = await createHttpServer({
      ...listener,
      // Of a sandbox all count, signed or not.
      signedPass: true,
      plugins: httpPlugins({
        ...atDoors,
        iam,
        audit: auditDecision,
        guard,
        images,
        imageQuotas: {
          accountBytes: config.quotas.imageBytesPerAccount,
          accountParts: config.quotas.imagePartsPerAccount,
        },
        objects,
        registryCredentials,
        runtimes: runtime.port.runtimes,
        sessions,
        archive,
        readiness: [
          { name: 'database', check: () => database.health() },
          // Whoever deletes must reach the server then.
          { name: 'disk', advisory: true, check: async () => ({ ok: !room.low, reason: 'it is nearly full' }) },
        ],
        room,
        metrics,
        metricsAccess: config.metrics,
        probe: () => probeProviders(isolation),
        sharedPlaces: fileSystems.places,
        life,
        newRequestId: identifiers.request,
        region,
        clock,
        log,
      }),
    });

    door = await openDoor({
      ...listener,
      perSandbox: {
        connections: config.sandbox.maxConnections,
        requestsPerSecond: config.sandbox.requestsPerSecond,
      },
      credentials: sandboxCredentials,
      signed: {
        ...atDoors,
        iam,
        audit: auditDecision,
        objects,
        newRequestId: identifiers.request,
        region,
        log,
      },
    });
    closing.add(door.close);
    closing.add(
      every(
        clock,
        HOUR_MS,
        'collect unused images',
        async () =>
          images.collect(
            new Set([...(await runtime.port.imagesInUse()), ...(await codeInterpreter.port.imagesInUse())]),
          ),
        log,
      ),
    );
    const retention = new Retention({ rules: retentionRules(config, { database, archive }), clock, log });
    closing.add(() => retention.stop());
    closing.add(every(clock, HOUR_MS, 'forget old client tokens', () => idempotency.sweep(), log));
    if (database.kind === 'pglite')
      closing.add(every(clock, HOUR_MS, 'clear dead rows away', () => vacuum(database), log));
    if (forward)
      closing.add(every(clock, REFRESH_MS, 'look for changes by other servers', () => runtime.port.refresh(), log));
    await lease.open();
    lease.start(
      () => sessions.giveUp(),
      (serverId, epoch) => forward?.abandon(serverId, epoch),
    );
    await sessions.recover(async (row) => (await runtime.port.planOf(row)) ?? (await codeInterpreter.port.planOf(row)));
    await fileSystems.storage?.recover(new Set(sessions.all().map((session) => session.row.sandboxId)));
    closing.add(
      every(clock, HOUR_MS, 'forget unused session storage', async () => fileSystems.storage?.collect(), log),
    );
    sessions.start();
    room.relieveBy(() => sessions.evictLargest());
    await runtime.start();
    closing.add(() => codeInterpreter.stop());
    closing.add(() => runtime.stop());
    await jobs.start();
    await memory.start();
    retention.start();
    closing.add(() => memory.stop());

    return {
      async listen() {
        // A start that fails says so itself; from here on there are others who would lose the server.
        unhandled.guard();
        const { origin } = await server.listen(config.host, config.port);
        const address = config.servers.address ?? reachable(origin);
        endpoint = `http://${address}`;
        await lease.announce(address);
        closing.add(() => server.close(config.shutdownGraceSeconds * 1000));
        closing.add(() => streams.close());
        const secure = config.tls.on
          ? await openTls(server, { data, region, host: config.host, port: config.tls.port, clock, log })
          : undefined;
        if (secure) closing.add(secure.close);
        const { isolation } = report;
        const { restarts, lastEnd } = life;
        const ready = await announce(data, iam, { endpoint: origin, region, isolation, tls: secure?.tls, restarts });
        if (restarts > 0) log.warn({ restarts, lastEnd }, 'the server had ended unasked and was started again');
        log.info({ endpoint: origin, isolation: report.isolation }, 'serving');
        return ready;
      },
      close: () => closing.run(),
    };
  }
}
