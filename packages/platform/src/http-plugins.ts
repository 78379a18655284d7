import type { FastifyPluginAsync } from 'fastify';
import type { Logger } from 'pino';
import type { DecisionAudit } from './decision-audit.ts';
import { type DoctorDeps, doctorRoutes } from './doctor-routes.ts';
import { loginWithAccessKey } from './kernel/auth/access-key-login.ts';
import type { Iam } from './kernel/auth/iam/iam.ts';
import { iamRoutes } from './kernel/auth/iam/iam-routes.ts';
import { stsRoutes } from './kernel/auth/iam/sts-routes.ts';
import type { Authenticator } from './kernel/auth/sigv4.ts';
import type { Spool } from './kernel/auth/spool.ts';
import type { Clock } from './kernel/clock.ts';
import type { DiskRoom } from './kernel/disk-room.ts';
import type { AdminGuard } from './kernel/http/admin-guard.ts';
import { healthRoutes, type ReadinessCheck } from './kernel/http/health-routes.ts';
import { type MetricsDeps, metricsRoutes } from './kernel/http/metrics-routes.ts';
import type { PipelineDeps } from './kernel/http/pipeline.ts';
import { type ImagesRoom, registerRegistry, repositoryArn } from './kernel/images/index.ts';
import { type ObjectStore, s3Api } from './kernel/objects/index.ts';
import type { LogArchive } from './kernel/sessions/log-archive.ts';
import type { Sessions } from './kernel/sessions/sessions.ts';
import type { SharedPlaces } from './kernel/shared-places/index.ts';
import type { Metrics } from './kernel/telemetry/index.ts';
import type { Life } from './life.ts';
import { runtimeAdminRoutes } from './services/runtime/admin-routes.ts';
import { baseImageRoutes } from './services/runtime/base-image-routes.ts';
import type { RuntimePort } from './services/runtime/index.ts';
import { type RegistryCredentialsStore, registryCredentialsRoutes } from './services/runtime/registry-credentials.ts';

/** The parts that the doors beside the contract open on. */
export interface HttpParts {
  iam: Iam;
  authenticator: Authenticator;
  authorize: PipelineDeps['authorize'];
  audit: DecisionAudit;
  guard: AdminGuard;
  spool: Spool;
  images: ImagesRoom;
  /** What one account may keep in the registry. */
  imageQuotas: { accountBytes: number; accountParts: number };
  objects: ObjectStore;
  registryCredentials: RegistryCredentialsStore;
  runtimes: RuntimePort['runtimes'];
  sessions: Sessions;
  archive: LogArchive;
  readiness: readonly ReadinessCheck[];
  metrics: Metrics;
  metricsAccess: MetricsDeps['access'];
  /** What isolation the machine offers. */
  probe: DoctorDeps['probe'];
  sharedPlaces: Pick<SharedPlaces, 'report'>;
  life: Life;
  room: Pick<DiskRoom, 'need' | 'report'>;
  newRequestId(): string;
  region: string;
  clock: Clock;
  log: Logger;
}

export type SignedParts = Pick<
  HttpParts,
  'iam' | 'authenticator' | 'authorize' | 'audit' | 'spool' | 'objects' | 'newRequestId' | 'region' | 'log'
>;

/** Largest object in one request to the embedded store: S3's own limit of a single PUT. */
const MAX_OBJECT_BYTES = 5 * 2 ** 30;

/** What AWS SDKs sign for beside the contract's own operations: S3 and STS. */
export function signedPlugins({
  iam,
  authenticator,
  authorize,
  audit,
  spool,
  objects,
  newRequestId,
  region,
  log,
}: SignedParts): FastifyPluginAsync[] {
  return [
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
    stsRoutes({ iam, authenticator, audit, spool, newRequestId }),
  ];
}

/** Everything that is served and is no operation of the contract, in the order in which it is registered. */
export function httpPlugins(parts: HttpParts): FastifyPluginAsync[] {
  const { iam, authenticator, authorize, guard, spool, images, region, clock, log } = parts;
  return [
    healthRoutes({ readiness: parts.readiness, clock, log }),
    metricsRoutes({ metrics: parts.metrics, access: parts.metricsAccess, guard }),
    (app) =>
      registerRegistry(app, {
        store: images.store,
        bases: images.bases,
        limits: parts.imageQuotas,
        clock,
        log,
        needRoom: parts.room.need,
        async authenticate(id, secret, sourceIp) {
          const principal = await loginWithAccessKey(iam.keys, id, secret);
          if (!principal) return undefined;
          const { accountId } = principal;
          const require = (action: string, repository: string): void => {
            authorize({
              principal,
              action: `agentplatform:${action}`,
              resource: repositoryArn(accountId, repository),
              conditions: {},
              sourceIp,
            });
          };
          return { accountId, principal: principal.arn, require };
        },
      }),
    ...signedPlugins(parts),
    iamRoutes({ iam, authenticator, authorize, spool }),
    registryCredentialsRoutes(parts.registryCredentials, guard),
    baseImageRoutes({ images, credentials: parts.registryCredentials, guard, authorize }),
    doctorRoutes({
      guard,
      probe: parts.probe,
      codeRuntimes: () => images.codeRuntimes(),
      sharedPlaces: () => parts.sharedPlaces.report(),
      life: parts.life,
      disk: () => parts.room.report(),
    }),
    runtimeAdminRoutes({
      runtimes: parts.runtimes,
      sessions: parts.sessions,
      archive: parts.archive,
      guard,
      region,
    }),
  ];
}
