import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createPaginator, errors, type OperationName } from '@agentplatform/contract';
import { Closing } from './closing.ts';
import type { Config } from './config.ts';
import { writeConnectionFile } from './connection-file.ts';
import { operationCoverage } from './coverage.ts';
import { doctorRoutes } from './doctor-routes.ts';
import { identifiers } from './identifiers.ts';
import { loginWithAccessKey } from './kernel/auth/access-key-login.ts';
import { PROFILE, writeCredentialsFile } from './kernel/auth/iam/credentials-file.ts';
import { openIam } from './kernel/auth/iam/iam.ts';
import { iamRoutes } from './kernel/auth/iam/iam-routes.ts';
import { createSqlIamStore, iamMigrations } from './kernel/auth/iam/sql-iam-store.ts';
import { stsRoutes } from './kernel/auth/iam/sts-routes.ts';
import { createJwtAuthenticator } from './kernel/auth/jwt.ts';
import { createOidcDiscovery } from './kernel/auth/oidc-discovery.ts';
import { createAuthenticator } from './kernel/auth/sigv4.ts';
import { createSpool } from './kernel/auth/spool.ts';
import { systemClock } from './kernel/clock.ts';
import { every } from './kernel/every.ts';
import { createAdminGuard } from './kernel/http/admin-guard.ts';
import { type AuditRecord, auditText, nameOf, Pipeline, type PipelineDeps } from './kernel/http/pipeline.ts';
import { RateLimiter } from './kernel/http/rate-limiter.ts';
import { createHttpServer } from './kernel/http/server.ts';
import { toServiceError } from './kernel/http/service-errors.ts';
import { createImages, registerRegistry, repositoryArn } from './kernel/images/index.ts';
import { createJobs } from './kernel/jobs/index.ts';
import { createJournal, journalMigrations } from './kernel/journal/index.ts';
import { createChatModel, modelEndpoint } from './kernel/models/index.ts';
import { objectReader, s3Api } from './kernel/objects/index.ts';
import { createOutbound } from './kernel/outbound/index.ts';
import { createSandboxProvider, probeProviders } from './kernel/sandbox/index.ts';
import { configuredMasterKeys, createSecrets, openMasterKeyFile, secretMigrations } from './kernel/secrets/index.ts';
import { createSealer } from './kernel/secrets/sealer.ts';
import type { HandlersOf } from './kernel/service.ts';
import { LogArchive } from './kernel/sessions/log-archive.ts';
import { Sessions } from './kernel/sessions/sessions.ts';
import { createSqlSessionStore } from './kernel/sessions/sql-session-store.ts';
import { sessionMigrations } from './kernel/sessions/tables.ts';
import type { UsageSample } from './kernel/sessions/usage.ts';
import { applyUsageSamples } from './kernel/sessions/usage-store.ts';
import { IdempotencyStore, migrate, openDatabase, storageMigrations } from './kernel/storage/index.ts';
import { createLogger, createMetrics, logFormat } from './kernel/telemetry/index.ts';
import type { NotImplemented } from './not-implemented.ts';
import { openEmbedder } from './open-embedder.ts';
import { openObjects } from './open-objects.ts';
import { pageKey } from './page-key.ts';
import { auditMigrations, auditSink } from './services/audit/index.ts';
import {
  codeInterpreterMigrations,
  createCodeInterpreterService,
  subnetMap,
} from './services/code-interpreter/index.ts';
import { createMemoryService, memoryMigrations } from './services/memory/index.ts';
import {
  createResourcePoliciesService,
  ResourcePolicies,
  resourcePolicyMigrations,
} from './services/resource-policies/index.ts';
import { runtimeAdminRoutes } from './services/runtime/admin-routes.ts';
import { createRuntimeService } from './services/runtime/index.ts';
import { RegistryCredentialsStore, registryCredentialsRoutes } from './services/runtime/registry-credentials.ts';
import { createTagsService } from './services/tags/index.ts';

/** What the server prints when it serves; `connection.json` in the data directory holds the same. */
export interface Ready {
  ready: true;
  endpoint: string;
  credentialsFile: string;
  profile: string;
  region: string;
  accountId: string;
  defaultRoleArn: string;
  isolation: string;
}

export interface Platform {
  /** Takes requests from now on. Rejects with the system's error when the port is taken. */
  listen(): Promise<Ready>;
  /** Orderly end: requests under way finish within the grace, sessions end, what is in the journal reaches the database. */
  close(): Promise<void>;
}

const HOUR_MS = 3_600_000;

/** A message as large as a chunk of a streamed answer may be, a look every 30 s whether the peer is there, and time to answer. */
const STREAMS = { maxMessageBytes: 10 * 2 ** 20, pingIntervalMs: 30_000, handshakeMs: 30_000 };

/** Largest object in one request to the embedded store: S3's own limit of a single PUT. */
const MAX_OBJECT_BYTES = 5 * 2 ** 30;

/** What the journal carries to the database. */
interface Journaled {
  usage: UsageSample;
  audit: AuditRecord;
}

/** Builds the platform, part by part, each from those above it. Nothing else constructs parts. */
export async function createPlatform(config: Config): Promise<Platform> {
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
    await mkdir(data, { recursive: true, mode: 0o700 });

    // Isolation first: without it nothing else is worth starting.
    const sandboxOptions = {
      dataDir: data,
      runtime: config.sandbox.ociRuntime,
      cniDir: config.sandbox.cniDir,
      disk: config.sandbox.disk,
      poolSize: config.sandbox.preparedNetworks,
      creates: { running: config.sandbox.maxConcurrentStarts, waiting: config.sandbox.maxQueuedStarts },
      clock,
      log,
    };
    const { provider, report } = await createSandboxProvider({ ...sandboxOptions, provider: config.sandbox.provider });
    closing.add(() => provider.close());

    // Storage
    const database = await openDatabase({
      dataDir: data,
      clock,
      log,
      cacheDir: join(cache, 'database'),
      ...(config.databaseUrl ? { url: config.databaseUrl } : {}),
    });
    closing.add(() => database.close());
    await migrate(
      database,
      [
        ...storageMigrations,
        ...secretMigrations,
        ...iamMigrations,
        ...journalMigrations,
        ...sessionMigrations,
        ...auditMigrations,
        ...codeInterpreterMigrations,
        ...resourcePolicyMigrations,
        ...memoryMigrations,
      ],
      log,
    );
    const masterKeys = config.secrets.key
      ? configuredMasterKeys(config.secrets.key)
      : await openMasterKeyFile(config.secrets.keyFile ?? join(data, 'keys'));
    const secrets = createSecrets({ database, keys: masterKeys, clock });
    const journal = await createJournal<Journaled>({
      dir: join(data, 'journal'),
      database,
      clock,
      log,
      sinks: {
        usage: {
          parse: (sample) => sample as UsageSample,
          apply: (tx, records) =>
            applyUsageSamples(
              tx,
              records.map((record) => record.data),
            ),
        },
        audit: auditSink,
      },
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
      refreshSeconds: config.databaseUrl ? 5 : 0,
      onRefreshError: (error) => log.warn({ err: error }, 'access management could not be refreshed'),
    });
    closing.add(async () => iam.stop());
    const resourcePolicies = await ResourcePolicies.open(database);
    const authenticator = createAuthenticator({ keys: iam.keys, clock, region });
    const authorize: PipelineDeps['authorize'] = ({ principal, action, resource, conditions, sourceIp }) => {
      const context = sourceIp === undefined ? conditions : { ...conditions, 'aws:SourceIp': sourceIp };
      // What manages a resource's policy is not subject to it: a mistake in one must not lock its owner out.
      const resourcePolicy = /:(Put|Get|Delete)ResourcePolicy$/.test(action)
        ? undefined
        : resourcePolicies.of(resource);
      const request = {
        principal,
        action,
        resource,
        context,
        ...(resourcePolicy === undefined ? {} : { resourcePolicy }),
      };
      const { allowed, reason } = iam.authorizer.authorize(request);
      if (!allowed)
        throw errors.accessDenied(`${reason}.`, {
          remedy: 'Ask for a policy that allows it: agentcore iam put-policy.',
        });
    };
    const spool = await createSpool({ dir: join(data, 'spool') });
    const guard = createAdminGuard({ authenticator, authorize, spool });

    // Images, objects and sandboxes
    const metrics = createMetrics();
    const outbound = createOutbound({ allowPrivate: config.outbound.allowPrivateEgress, clock });
    closing.add(() => outbound.close());
    const jwt = createJwtAuthenticator({ discovery: createOidcDiscovery({ outbound, clock }), clock });
    const images = await createImages({
      dataDir: data,
      clock,
      log,
      outbound,
      cacheDir: cache,
      limits: {
        imageBytes: config.images.maxImageBytes,
        zipBytes: config.images.maxZipBytes,
        zipUnpackedBytes: config.images.maxUnzippedBytes,
      },
    });
    closing.add(() => images.close());
    const objects = await openObjects(config, iam.accountId, clock);
    const registryCredentials = new RegistryCredentialsStore(secrets);
    const archive = new LogArchive(join(data, 'logs'), log);
    const sessions = new Sessions({
      provider,
      store: createSqlSessionStore(database),
      recordUsage: (sample) => void journal.record('usage', sample),
      recordStart: (outcome, seconds) => metrics.sandboxStart(report.provider, outcome).observe(seconds),
      keepLog: (row, endedAt, text) => archive.keep(row, endedAt, text),
      clock,
      newSandboxId: identifiers.sandbox,
      log,
      options: {
        pingIntervalMs: config.session.pingIntervalSeconds * 1000,
        pingTimeoutMs: config.session.pingTimeoutSeconds * 1000,
        pingFailures: config.session.pingFailures,
        usageIntervalMs: config.session.usageIntervalSeconds * 1000,
        startTimeoutMs: config.sandbox.startTimeoutSeconds * 1000,
        teardownTimeoutMs: config.session.teardownSeconds * 1000,
        maxConcurrentStarts: config.sandbox.maxConcurrentStarts,
        maxQueuedStarts: config.sandbox.maxQueuedStarts,
      },
    });
    closing.add(() => sessions.close());

    // Services
    const paginator = createPaginator(await pageKey(secrets, iam.accountId));
    const roleExists = async (arn: string): Promise<boolean> => iam.admin.listRoles().some((role) => role.arn === arn);
    const invocations = new RateLimiter(config.quotas.invocationsPerSecond, clock);
    const temporary = join(data, 'tmp');
    await rm(temporary, { recursive: true, force: true });
    await mkdir(temporary, { mode: 0o700 });
    const runtime = createRuntimeService({
      database,
      images,
      sessions,
      artifacts: {
        readObject: objectReader(objects),
        registryCredentials: (accountId, uri) => registryCredentials.forImage(accountId, uri),
        temporaryDirectory: temporary,
      },
      roleExists,
      verifyToken: ({ runtime: { accountId }, version }, token) => {
        const configuration = version.definition.authorizerConfiguration?.customJWTAuthorizer;
        if (configuration) return jwt.authenticate(token, { accountId, configuration });
        throw errors.accessDenied(
          'Authorization method mismatch: this agent runtime takes signed requests, the request has a bearer token.',
          { remedy: 'Sign the request, or give the runtime a customJWTAuthorizer.' },
        );
      },
      takeInvocation: (endpoint) => invocations.take(endpoint),
      paginator,
      clock,
      newIdSuffix: identifiers.suffix,
      newSessionId: identifiers.session,
      region,
      defaults: config.session,
      quotas: config.quotas,
      sandbox: {
        limits: config.sandbox.limits,
        network: { egress: config.sandbox.egress, allowCidrs: config.sandbox.allowPrivateEgress, hostPorts: [] },
      },
      limits: {
        timeoutMs: config.invocation.timeoutSeconds * 1000,
        streamTimeoutMs: config.invocation.streamTimeoutSeconds * 1000,
      },
      log,
    });
    const codeInterpreter = createCodeInterpreterService({
      database,
      images,
      sessions,
      roleExists,
      paginator,
      clock,
      newIdSuffix: identifiers.suffix,
      newSessionId: () => identifiers.session().replaceAll('-', ''),
      region,
      limits: config.sandbox.limits,
      networks: {
        builtIn: config.codeInterpreter.builtInNetwork,
        public: { egress: config.sandbox.egress, allowCidrs: config.sandbox.allowPrivateEgress, hostPorts: [] },
        subnets: subnetMap(config.codeInterpreter.subnets ?? ''),
      },
      cacheDir: cache,
      dataDir: data,
      image: config.codeInterpreter.image,
      warmSessions: config.codeInterpreter.warmSessions,
      executionSeconds: config.codeInterpreter.executionSeconds,
      log,
    });
    const tags = createTagsService({ database });
    const jobs = createJobs({ database, log });
    closing.add(() => jobs.stop());
    const embedder = await openEmbedder(config, log);
    const memory = createMemoryService({
      database,
      ...(embedder ? { embedder } : {}),
      ...(config.models.url === undefined
        ? {}
        : { chat: createChatModel(modelEndpoint(config.models.url, config.models)) }),
      jobs,
      paginator,
      clock,
      log,
      region,
      newIdSuffix: identifiers.suffix,
      newUuid: identifiers.request,
      extractionDelayMs: config.memory.extractionDelaySeconds * 1000,
    });
    // Served or named in not-implemented.ts: the compiler sees to it.
    const handlers: HandlersOf<Exclude<OperationName, NotImplemented>> = {
      ...runtime.operations,
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
      spool,
      idempotency,
      metrics,
      audit: (record) => void journal.record('audit', record),
      cover: operationCoverage(process.env),
      maxBodyBytes: (operation) => (operation === 'InvokeAgentRuntime' ? config.invocation.maxPayloadBytes : undefined),
      clock,
      newRequestId: identifiers.request,
      region,
      log,
    });
    metrics.watch('sessions', 'Live sessions by state.', () => sessions.counts(), 'state');
    metrics.watch(
      'journal_lag_records',
      'Journal records that the database does not have yet.',
      () => journal.stats().durableSeq - journal.stats().appliedSeq,
    );
    metrics.watch(
      'journal_dropped_records',
      'Journal records that were dropped for want of room since the start.',
      () => journal.stats().dropped,
    );
    const streams = runtime.port.createStreams({
      authenticator,
      authorize,
      toError: toServiceError,
      record: ({ requestId, operation, principal, resource, status, error, req }) =>
        void journal.record('audit', {
          at: clock.now(),
          requestId,
          operation,
          accountId: principal?.accountId,
          principal: principal && auditText(nameOf(principal)),
          resource: auditText(resource),
          status,
          errorCode: error?.name,
          sourceIp: req.socket.remoteAddress,
          userAgent: auditText(req.headers['user-agent'], 256),
        }),
      newRequestId: identifiers.request,
      streams: STREAMS,
    });
    const server = await createHttpServer({
      pipeline,
      upgrade: streams.upgrade,
      plugins: [
        (app) =>
          registerRegistry(app, {
            store: images.store,
            bases: images.bases,
            clock,
            log,
            async authenticate(id, secret, sourceIp) {
              const principal = await loginWithAccessKey(iam.keys, id, secret);
              if (!principal) return undefined;
              const { accountId } = principal;
              const require = (action: string, repository: string): void =>
                authorize({
                  principal,
                  action: `agentplatform:${action}`,
                  resource: repositoryArn(accountId, repository),
                  conditions: {},
                  sourceIp,
                });
              return { accountId, require };
            },
          }),
        s3Api({
          prefix: '/s3',
          store: objects,
          authenticate: ({ method = '', url = '/', rawHeaders }) =>
            authenticator.authenticate({ method, rawUrl: url, rawHeaders, service: 's3' }),
          authorize: (request) => authorize({ ...request, conditions: {} }),
          spool,
          maxObjectBytes: MAX_OBJECT_BYTES,
          region,
          log,
        }),
        iamRoutes({ iam, authenticator, spool }),
        stsRoutes({ iam, authenticator, spool, newRequestId: identifiers.request }),
        registryCredentialsRoutes(registryCredentials, guard),
        doctorRoutes({ guard, probe: () => probeProviders(sandboxOptions), codeRuntimes: () => images.codeRuntimes() }),
        runtimeAdminRoutes({ runtimes: runtime.port.runtimes, sessions, archive, guard, region }),
      ],
      readiness: [{ name: 'database', check: () => database.health() }],
      about: { isolation: report.isolation },
      metrics: config.metrics ? metrics : undefined,
      clock,
      log,
    });

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
    closing.add(every(clock, HOUR_MS, 'forget old client tokens', () => idempotency.sweep(), log));
    await sessions.recover(async (row) => (await runtime.port.planOf(row)) ?? (await codeInterpreter.port.planOf(row)));
    sessions.start();
    await runtime.start();
    closing.add(() => codeInterpreter.stop());
    closing.add(() => runtime.stop());
    await jobs.start();
    await memory.start();
    closing.add(() => memory.stop());

    return {
      async listen() {
        const credentials = await iam.rootCredentials();
        const credentialsFile = credentials
          ? await writeCredentialsFile(data, { ...credentials, region })
          : join(data, 'credentials');
        const { origin } = await server.listen(config.host, config.port);
        closing.add(() => server.close(config.shutdownGraceSeconds * 1000));
        closing.add(() => streams.close());
        const ready: Ready = {
          ready: true,
          endpoint: origin,
          credentialsFile,
          profile: PROFILE,
          region,
          accountId: iam.accountId,
          defaultRoleArn: iam.defaultRoleArn,
          isolation: report.isolation,
        };
        await writeConnectionFile(data, ready);
        log.info({ endpoint: origin, isolation: report.isolation }, 'serving');
        return ready;
      },
      close: () => closing.run(),
    };
  }
}
