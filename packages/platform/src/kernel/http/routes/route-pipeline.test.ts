import { hash } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { errors } from '@agentplatform/contract';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import type { Authenticated, IamPrincipal } from '../../auth/index.ts';
import type { AuditRecord } from '../audit-record.ts';
import { served } from '../testing/serve-routes.ts';
import { onlyDeclared } from './declared.ts';
import { type Asked, type KnownCall, type Route, SIGNED } from './route.ts';
import type { RoutePipelineDeps } from './route-pipeline.ts';

const arn = 'arn:aws:iam::123456789012:user/mate';
const principal: IamPrincipal = { kind: 'iam', accountId: '123456789012', arn, accessKeyId: 'AKIAMATE', tags: {} };

const apps: FastifyInstance[] = [];
/** Everything that the stages told anybody, in order. */
let told: string[] = [];
let kept: AuditRecord[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
  told = [];
  kept = [];
});

const DEPS: Partial<RoutePipelineDeps> = {
  authenticator: {
    authenticate({ rawHeaders }): Authenticated {
      told.push('authenticate');
      if (!rawHeaders.includes('mate')) throw errors.invalidSignature('The signature does not fit.');
      return { principal, body: { kind: 'unsigned' } };
    },
  },
  rates: {
    take: () => {
      told.push('count');
      if (told.includes('enough')) throw errors.throttling('too many');
    },
    refused: () => void told.push('refused'),
  },
  authorize({ action, resource }) {
    told.push(`authorize ${action}`);
    if (resource === 'closed') throw errors.accessDenied('No policy allows it.');
    if (resource === 'broken') throw new TypeError('a defect of ours');
  },
  audit: (record) => void kept.push(record),
  needRecord: () => undefined,
};

const known = (ask: (call: KnownCall) => Asked, rest: object = {}): Route => ({
  method: 'POST',
  url: '/known',
  credentials: SIGNED,
  ask,
  ...rest,
});

async function serve(route: Route, deps = DEPS, admit = () => errors.throttling('crowded')) {
  const app = Fastify();
  apps.push(app);
  const crowded = told.includes('crowded');
  await app.register(served([{ name: 'doors', routes: [route] }], deps, crowded ? admit : () => undefined));
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  return async (path = '/known', headers: Record<string, string> = { 'x-user': 'mate' }, body?: string) => {
    const method = app.hasRoute({ method: 'GET', url: path }) ? 'GET' : 'POST';
    const answer = await fetch(`${origin}${path}`, { method, headers, body });
    return { status: answer.status, text: await answer.text() };
  };
}

describe('a route for known callers', () => {
  it('refuses who may do it nowhere, and what needs room on a full disk, before it reads a body', async () => {
    const route = known(() => ({ rights: 'known', answer: () => ({}) }), { action: 'doors:Store', stores: true });
    const spent: string[] = [];
    const ask = async (more: Partial<RoutePipelineDeps>) => {
      const app = Fastify();
      apps.push(app);
      await app.register(served([{ name: 'doors', routes: [route] }], { ...DEPS, ...more }, () => undefined));
      const url = new URL(`${await app.listen({ host: '127.0.0.1', port: 0 })}/known`);
      // A body that never comes whole: whoever waits for it gives no answer.
      const socket = connect(Number(url.port), url.hostname);
      socket.write(`POST /known HTTP/1.1\r\nhost: ${url.host}\r\nx-user: mate\r\ncontent-length: 1000\r\n\r\n{`);
      const [head] = (await once(socket, 'data', { signal: AbortSignal.timeout(30_000) })) as [Buffer];
      socket.destroy();
      return head.toString().split(' ')[1];
    };
    const refuseEarly: RoutePipelineDeps['refuseEarly'] = (_principal, action) => {
      spent.push(action);
      throw errors.accessDenied('No policy allows it.');
    };
    expect(await ask({ refuseEarly })).toBe('403');
    expect(spent).toEqual(['doors:Store']);
    const needRoom = () => {
      throw errors.unavailable('The disk has no room.');
    };
    expect(await ask({ needRoom })).toBe('503');
  });

  it('is answered after every stage, in their order, and counts once however much it asks for', async () => {
    const rights = [
      { action: 'doors:Open', resource: 'a' },
      { action: 'doors:Close', resource: 'b' },
    ];
    const ask = await serve(known(() => ({ rights, answer: () => void told.push('answer') })));
    expect(await ask()).toMatchObject({ status: 204 });
    expect(told).toEqual(['authenticate', 'count', 'authorize doors:Open', 'authorize doors:Close', 'answer']);
  });

  it('does nothing for whom no policy allows it, and keeps that', async () => {
    const rights = { action: 'doors:Open', resource: 'closed' };
    const ask = await serve(known(() => ({ rights, answer: () => void told.push('answer') })));
    expect(await ask()).toMatchObject({ status: 403 });
    expect(told).not.toContain('answer');
    expect(kept.map(({ operation, principal, status }) => [operation, principal, status])).toEqual([
      ['doors:Open', arn, 403],
    ]);
  });

  it('does no change that cannot be recorded, and answers a look all the same', async () => {
    const needRecord = (): void => {
      throw errors.unavailable('The audit trail cannot be written.');
    };
    const asked = async (action: string) => {
      const rights = { action, resource: 'a' };
      const ask = await serve(
        known(() => ({ rights, answer: () => void told.push(`did ${action}`) })),
        { ...DEPS, needRecord },
      );
      return (await ask()).status;
    };
    expect(await asked('doors:Open')).toBe(503);
    expect(await asked('doors:GetState')).toBe(204);
    expect(told).toEqual(expect.arrayContaining(['did doors:GetState']));
    expect(told).not.toContain('did doors:Open');
  });

  it('refuses strangers, whose address that counts for, and keeps that under its own name', async () => {
    const ask = await serve(known(() => ({ rights: 'known', answer: () => 'open' })));
    expect(await ask('/known', {})).toMatchObject({ status: 403 });
    await expect.poll(() => told).toEqual(['authenticate', 'refused']);
    expect(
      kept.map(({ operation, principal, status, errorCode }) => [operation, principal, status, errorCode]),
    ).toEqual([['doors', undefined, 403, 'InvalidSignatureException']]);
    // The control: of known callers the address has no part.
    told = [];
    expect(await ask()).toMatchObject({ status: 200, text: 'open' });
    expect(told).toEqual(['authenticate', 'count']);
  });

  it('refuses who had his share, by name', async () => {
    told.push('enough');
    const ask = await serve(known(() => ({ rights: 'known', answer: () => 'open' })));
    expect(await ask()).toMatchObject({ status: 429 });
    await expect
      .poll(() => kept.map(({ operation, principal, status }) => [operation, principal, status]))
      .toEqual([['doors', arn, 429]]);
    expect(told).not.toContain('refused');
  });

  it('sends no success before somebody has decided', async () => {
    const forgetful = await serve(known(() => ({ rights: 'later', answer: () => 'open' })));
    expect(await forgetful()).toMatchObject({ status: 500 });
    const careful = await serve(
      known((call) => ({
        rights: 'later',
        answer() {
          call.require('doors:Open', 'a');
          return 'open';
        },
      })),
    );
    expect(await careful()).toMatchObject({ status: 200, text: 'open' });
  });

  it('reads a body that only proves the signature before anybody is known by it', async () => {
    const authenticate = (): Authenticated => ({
      principal,
      body: {
        kind: 'undeclared',
        verify: (actual) => actual === hash('sha256', 'right'),
        mismatch: () => errors.invalidSignature('The body is another.'),
      },
    });
    const deps = { ...DEPS, authenticator: { authenticate } };
    const ask = await serve(
      known(({ body }) => ({ rights: 'known', answer: () => body.toString() })),
      deps,
    );
    expect(await ask('/known', {}, 'wrong')).toMatchObject({ status: 403 });
    await expect.poll(() => told).toEqual(['refused']);
    expect(await ask('/known', {}, 'right')).toMatchObject({ status: 200, text: 'right' });
    // Where nobody reads the body for it there is nobody.
    const streamed = await serve(
      known(() => ({ rights: 'known', answer: () => 'open' }), { body: 'streamed' }),
      deps,
    );
    expect(await streamed('/known', {}, 'right')).toMatchObject({ status: 400 });
  });

  it('takes an access key as user and password, and no other', async () => {
    const keys = { find: (id: string) => (id === 'AKIAMATE' ? { secretAccessKey: 'secret', principal } : undefined) };
    const route = known(({ principal }) => ({ rights: 'known', answer: () => principal.arn }), {
      credentials: { kind: 'access-key' },
    });
    const ask = await serve(route, { ...DEPS, keys });
    const basic = (pair: string) => ({ authorization: `Basic ${btoa(pair)}` });
    expect(await ask('/known', basic('AKIAMATE:secret'))).toEqual({ status: 200, text: arn });
    for (const pair of ['AKIAMATE:other', 'AKIAOTHER:secret', 'AKIAMATE', ':secret'])
      expect(await ask('/known', basic(pair))).toMatchObject({ status: 401 });
    expect(await ask('/known', {})).toMatchObject({ status: 401 });
  });
});

describe('the audit trail of routes', () => {
  it('keeps what was changed and what was refused, and not every look', async () => {
    const ask = await serve(
      known((call) => ({
        rights: 'later',
        answer: () => call.require(call.query.get('action') ?? '', call.query.get('resource') ?? ''),
      })),
    );
    const asked = async (action: string, resource: string): Promise<number> =>
      (await ask(`/known?action=${action}&resource=${resource}`)).status;
    expect(await asked('iam:CreateUser', 'open')).toBe(204);
    expect(await asked('s3:GetObject', 'open')).toBe(204);
    expect(await asked('agentplatform:ReadMetrics', 'open')).toBe(204);
    expect(await asked('s3:GetObject', 'closed')).toBe(403);
    expect(await asked('iam:PutUserPolicy', 'broken')).toBe(500);

    expect(kept.map(({ operation, status, errorCode }) => [operation, status, errorCode])).toEqual([
      ['iam:CreateUser', 200, undefined],
      ['s3:GetObject', 403, 'AccessDeniedException'],
      ['iam:PutUserPolicy', 500, undefined],
    ]);
    expect(kept[0]).toMatchObject({ principal: arn, resource: 'open', sourceIp: '127.0.0.1', requestId: 'request-1' });
  });
});

describe('a route that is open', () => {
  const open: Route = { method: 'GET', url: '/open', open: 'everybody', because: 'a test', answer: () => 'open' };
  const SOME = { action: 'doors:Look', resource: '*' };

  it('asks nobody who he is', async () => {
    const ask = await serve(open);
    expect(await ask('/open', {})).toEqual({ status: 200, text: 'open' });
    expect(told).toEqual([]);
  });

  it('asks those whom it is not open to', async () => {
    const route: Route = {
      ...open,
      open: ({ headers }) => headers['x-near'] === '1',
      others: { credentials: SIGNED, rights: SOME },
    };
    const ask = await serve(route);
    expect(await ask('/open', { 'x-near': '1' })).toMatchObject({ status: 200 });
    expect(await ask('/open', {})).toMatchObject({ status: 403 });
    expect(await ask('/open')).toMatchObject({ status: 200 });
    // Without others nobody else comes in.
    const alone = await serve({ ...route, others: undefined });
    expect(await alone('/open', { 'x-near': '1' })).toMatchObject({ status: 200 });
    expect(await alone('/open')).toMatchObject({ status: 403 });
  });

  it('is limited by address like all others, unless it says that it is not', async () => {
    told.push('crowded');
    expect(await (await serve(open))('/open', {})).toMatchObject({ status: 429 });
    expect(await (await serve({ ...open, unlimited: true }))('/open', {})).toMatchObject({ status: 200 });
  });
});

describe('a route beside the declared ones', () => {
  it('cannot be registered', async () => {
    const app = Fastify();
    apps.push(app);
    onlyDeclared(app);
    expect(() => app.get('/undeclared', async () => 'open')).toThrow(/GET \/undeclared is not a declared route/);
    await expect(
      Promise.resolve(app.register(async (scope) => void scope.post('/deeper', async () => 'open'))),
    ).rejects.toThrow(/\/deeper is not a declared route/);
  });

  it('but declared ones can, with the HEAD that comes with a GET', async () => {
    const app = Fastify();
    apps.push(app);
    onlyDeclared(app);
    const route: Route = { method: 'GET', url: '/open', open: 'everybody', because: 'a test', answer: () => 'open' };
    await app.register(served([{ name: 'doors', routes: [route] }]));
    expect((await app.inject({ method: 'HEAD', url: '/open' })).statusCode).toBe(200);
    expect((await app.inject({ method: 'GET', url: '/open' })).body).toBe('open');
  });

  it('has to say who may, in its type', () => {
    // @ts-expect-error neither credentials nor open
    const silent: Route = { method: 'GET', url: '/silent', answer: () => 'open' };
    // @ts-expect-error a known route that asks for nothing
    const careless: Route = { method: 'GET', url: '/careless', credentials: SIGNED, ask: () => ({ answer: () => 1 }) };
    expect([silent.url, careless.url]).toEqual(['/silent', '/careless']);
  });
});
