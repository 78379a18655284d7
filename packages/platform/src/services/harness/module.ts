import { join } from 'node:path';
import { errors } from '@agentplatform/contract';
import { createJwtAuthenticator, createOidcDiscovery } from '../../kernel/auth/index.ts';

import { RateLimiter } from '../../kernel/http/index.ts';
import { createTopics } from '../../kernel/notifications/index.ts';
import { objectReader } from '../../kernel/objects/index.ts';
import { refusalOf } from '../../kernel/outbound/index.ts';
import type { ServiceModule } from '../../service-module.ts';
import {
  createHarnessService,
  HARNESS_OPERATIONS,
  type HarnessOperation,
  harnessMigrations,
  harnessRetention,
} from './index.ts';
import { explainStart, HARNESS_SESSIONS } from './session-kind.ts';

/** Harnesses, in the sandboxes that the configuration describes. */
export const module: ServiceModule<'harness', HarnessOperation, 'functions' | 'identity' | 'memory' | 'secrets'> = {
  operations: HARNESS_OPERATIONS,
  needs: ['functions', 'identity', 'memory', 'secrets'],
  migrations: harnessMigrations,
  retention: (database, { sessionsMs }) => [harnessRetention(database, sessionsMs)],
  create(kernel, { functions, identity, memory, secrets }) {
    const { config, outbound, clock, identifiers, iam, network } = kernel;
    const jwt = createJwtAuthenticator({
      discovery: createOidcDiscovery({ outbound: outbound.apart(), clock }),
      clock,
    });
    const rates = new RateLimiter(config.quotas.invocationsPerSecond, clock);
    const service = createHarnessService({
      ...kernel,
      ...{ identity, network, outbound: outbound.apart(), functions, memory, quotas: config.quotas },
      roles: { roles: iam, keys: iam.keys },
      ownEndpoint: () => kernel.reach.endpoint ?? '',
      topics: createTopics({
        webhooks: config.notifications.webhooks ?? new Map(),
        ...(config.notifications.key === undefined ? {} : { key: config.notifications.key }),
        outbound: kernel.ownOutbound,
        ...{ clock, newId: identifiers.request },
      }),
      newUuid: identifiers.request,
      limits: config.sandbox.limits,
      pooled: config.pool.maxPerVersion,
      timeoutMs: config.models.timeoutSeconds * 1000,
      dataDir: config.data,
      cacheDir: join(kernel.cache.path, 'harness'),
      prepare: config.harness.prepare === 'on',
      readSecret: async (arn, caller) => (await secrets.read(arn, undefined, caller)).value,
      readObject: objectReader(kernel.objects),
      refusalOf: (url) => refusalOf(outbound, url),
      roleEnvironment: (role) => kernel.sandboxCredentials.environment(role),
      newIdSuffix: identifiers.suffix,
      takeInvocation: (endpoint) => rates.take(endpoint),
      async verifyToken({ harness, definition, certificateAuthority }, token, headers) {
        const { accountId, arn: resource } = harness;
        const configuration = definition.authorizerConfiguration?.customJWTAuthorizer;
        if (!configuration)
          throw errors.accessDenied(
            'Authorization method mismatch: this harness accepts signed requests, but the request has a bearer token.',
            { remedy: 'Sign the request, or give the harness a customJWTAuthorizer.' },
          );
        const principal = await jwt.authenticate(token, { accountId, resource, configuration, certificateAuthority });
        const allowed = configuration.allowedWorkloadConfiguration;
        if (allowed) await identity.requireWorkload(allowed, headers, accountId);
        return principal;
      },
    });
    const { planOf, imagesInUse, tokens } = service.port;
    const metrics = [
      {
        name: 'harness_model_input_tokens',
        help: 'Tokens that harnesses gave to models.',
        label: 'model',
        read: () => tokens.input,
      },
      {
        name: 'harness_model_output_tokens',
        help: 'Tokens that harnesses got from models.',
        label: 'model',
        read: () => tokens.output,
      },
    ];
    return { ...service, metrics, sessionKind: { name: HARNESS_SESSIONS, planOf, explain: explainStart }, imagesInUse };
  },
};
