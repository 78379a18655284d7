import type { FastifyPluginAsync } from 'fastify';
import { loginWithAccessKey } from './kernel/auth/access-key-login.ts';
import { repositoryArn } from './kernel/images/index.ts';
import type { Kernel } from './open-kernel.ts';
import { doctorRoutes } from './services/administration/doctor-routes.ts';
import { healthRoutes } from './services/administration/health-routes.ts';
import { metricsRoutes } from './services/administration/metrics-routes.ts';
import { registerRegistry } from './services/container-registry/server.ts';
import { iamRoutes } from './services/iam/iam-routes.ts';
import { stsRoutes } from './services/iam/sts-routes.ts';
import { s3Api } from './services/s3/plugin.ts';

/** What S3 and STS are served from, with the gate that audits their decisions. */
export type SignedParts = Pick<
  Kernel,
  'iam' | 'authenticator' | 'gate' | 'spool' | 'objects' | 'identifiers' | 'region' | 'log'
>;

/** Largest object in one request to the embedded store: S3's own limit of a single PUT. */
const MAX_OBJECT_BYTES = 5 * 2 ** 30;

/** What AWS SDKs sign for beside the contract's own operations: S3 and STS. */
export function signedPlugins({
  iam,
  authenticator,
  gate: { authorize, audit },
  spool,
  objects,
  identifiers,
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
    stsRoutes({ iam, authenticator, audit, spool, newRequestId: identifiers.request }),
  ];
}

/** Everything that is served and is no operation of the contract, in the order in which it is registered. */
export function httpPlugins(kernel: Kernel): FastifyPluginAsync[] {
  const { config, changes, iam, authenticator, gate, spool, images, database, room, fileSystems, clock, log } = kernel;
  const { authorize, guard } = gate;
  const readiness = [
    { name: 'database', check: () => database.health() },
    { name: 'changes', check: () => changes.health() },
    // Whoever deletes must reach the server then.
    { name: 'disk', advisory: true, check: async () => ({ ok: !room.low, reason: 'it is nearly full' }) },
  ];
  return [
    healthRoutes({ readiness, clock, log }),
    metricsRoutes({ metrics: kernel.metrics, access: config.metrics, guard }),
    (app) =>
      registerRegistry(app, {
        store: images.store,
        bases: images.bases,
        limits: {
          accountBytes: config.quotas.imageBytesPerAccount,
          accountParts: config.quotas.imagePartsPerAccount,
        },
        clock,
        log,
        needRoom: room.need,
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
    ...signedPlugins(kernel),
    iamRoutes({ iam, authenticator, authorize, spool }),
    doctorRoutes({
      guard,
      probe: kernel.probe,
      codeRuntimes: () => images.codeRuntimes(),
      sharedPlaces: () => fileSystems.places.report(),
      life: kernel.life,
      disk: () => room.report(),
    }),
  ];
}
