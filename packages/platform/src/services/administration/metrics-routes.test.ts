import { errors } from '@agentplatform/contract';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import type { Authenticated } from '../../kernel/auth/index.ts';
import type { Authorize } from '../../kernel/http/index.ts';
import { served } from '../../kernel/http/testing/serve-routes.ts';
import { createMetrics } from '../../kernel/telemetry/index.ts';
import { isLocal, type MetricsDeps, metricsRoutes } from './metrics-routes.ts';

const asks = (remoteAddress: string | undefined, headers: Record<string, string>): boolean =>
  isLocal({ socket: { remoteAddress }, headers } as Parameters<typeof isLocal>[0]);

describe('who counts as the machine itself', () => {
  it.each([
    ['127.0.0.1', 'localhost:4100'],
    ['127.8.9.1', '127.0.0.1'],
    ['::1', '[::1]:4100'],
    ['::ffff:127.0.0.1', '127.0.0.1:4100'],
  ])('%s who names %s', (address, host) => expect(asks(address, { host })).toBe(true));

  it.each([
    ['10.0.0.7', { host: 'localhost:4100' }],
    ['::ffff:10.0.0.7', { host: '127.0.0.1' }],
    [undefined, { host: 'localhost' }],
    // A web page whose name was made to point at this machine.
    ['127.0.0.1', { host: 'evil.example:4100' }],
    ['127.0.0.1', { host: '127.0.0.1.evil.example' }],
    ['127.0.0.1', {}],
    // A proxy on this machine.
    ['127.0.0.1', { host: 'localhost', 'x-forwarded-for': '203.0.113.9' }],
    ['::1', { host: 'localhost', forwarded: 'for=203.0.113.9' }],
    ['::1', { host: 'localhost', via: '1.1 proxy' }],
  ])('not %s with %o', (address, headers) => expect(asks(address, headers)).toBe(false));
});

describe('/metrics', () => {
  const apps: FastifyInstance[] = [];
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });

  async function answer(access: MetricsDeps['access'], remoteAddress: string, allowed = false): Promise<number> {
    const app = Fastify();
    apps.push(app);
    app.setErrorHandler((_error, _request, reply) => reply.code(403).send());
    const principal = { kind: 'iam', accountId: '1', arn: 'a', accessKeyId: 'k', tags: {} } as const;
    const authenticate = (): Authenticated => {
      if (!allowed) throw errors.missingAuthentication('The request carries no credentials.');
      return { principal, body: { kind: 'unsigned' } };
    };
    const authorize: Authorize = ({ action }) => expect(action).toBe('agentplatform:ReadMetrics');
    const sets = [metricsRoutes({ metrics: createMetrics(), access })];
    await app.register(served(sets, { authenticator: { authenticate }, authorize }));
    const { statusCode, body } = await app.inject({ url: '/metrics', remoteAddress, headers: { host: 'localhost' } });
    if (statusCode === 200) expect(body).toContain('# HELP');
    return statusCode;
  }

  it('is for the machine itself, and for whoever may', async () => {
    expect(await answer('loopback', '127.0.0.1')).toBe(200);
    expect(await answer('loopback', '192.0.2.1')).toBe(403);
    expect(await answer('loopback', '192.0.2.1', true)).toBe(200);
  });

  it('is for everybody, or nobody, when the configuration says so', async () => {
    expect(await answer('public', '192.0.2.1')).toBe(200);
    expect(await answer('off', '127.0.0.1')).toBe(404);
  });
});
