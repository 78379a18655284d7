import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeError, errors } from '@agentplatform/contract';
import { Hash } from '@smithy/core/serde';
import { SignatureV4 } from '@smithy/signature-v4';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fakeSealer } from '../../kernel/auth/iam/testing/fake-sealer.ts';
import { createAuthenticator, createMemoryIamStore, createSpool, type Iam, openIam } from '../../kernel/auth/index.ts';
import { systemClock } from '../../kernel/clock.ts';
import type { Authorize } from '../../kernel/http/index.ts';
import { served } from '../../kernel/http/testing/serve-routes.ts';
import { ToldChanges } from '../../kernel/storage/testing/told-changes.ts';
import { iamRoutes } from './iam-routes.ts';

interface Keys {
  accessKeyId: string;
  secretAccessKey: string;
}

let dir: string;
let iam: Iam;
let app: FastifyInstance;
let root: Keys;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'iam-routes-'));
  const deps = { store: createMemoryIamStore(), sealer: fakeSealer(), clock: systemClock, random: randomBytes };
  iam = await openIam({ ...deps, changes: new ToldChanges(), region: 'us-east-1' });
  root = (await iam.rootCredentials()) ?? { accessKeyId: '', secretAccessKey: '' };
  const authenticator = createAuthenticator({ keys: iam.keys, clock: systemClock, region: 'us-east-1' });
  app = Fastify({ forceCloseConnections: true });
  app.setErrorHandler((error, _request, reply) => {
    const { status, headers, body } = encodeError(error);
    return reply.code(status).headers(headers).send(body);
  });
  const authorize: Authorize = ({ principal, action, resource }) => {
    const { allowed, reason } = iam.authorizer.authorize({ principal, action, resource, context: {} });
    if (!allowed) throw errors.accessDenied(`${reason}.`);
  };
  await app.register(served([iamRoutes(iam)], { authenticator, authorize, spool: await createSpool({ dir }) }));
  await app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await app.close();
  await rm(dir, { recursive: true });
});

async function call(
  method: string,
  path: string,
  body?: unknown,
  keys = root,
): Promise<{ status: number; body: unknown }> {
  const host = `127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const signer = new SignatureV4({
    service: 'bedrock-agentcore',
    region: 'us-east-1',
    credentials: keys,
    sha256: Hash.bind(null, 'sha256'),
  });
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
  const request = {
    method,
    protocol: 'http:',
    hostname: '127.0.0.1',
    path: `/_platform/iam${path}`,
    query: {},
    headers: { host, ...(text === undefined ? {} : { 'content-type': 'application/json' }) },
    body: text,
  };
  const { headers } = await signer.sign(request);
  const { host: _, ...rest } = headers;
  const answer = await fetch(`http://${host}${request.path}`, { method, headers: rest, body: text });
  const raw = await answer.text();
  return { status: answer.status, body: raw === '' ? undefined : JSON.parse(raw) };
}

const allow = (Action: string | string[], Resource = '*'): object => ({
  Version: '2012-10-17',
  Statement: { Effect: 'Allow', Action, Resource },
});

describe('the administration over HTTP', () => {
  it('makes a user with a key and a policy, who may then do just that', async () => {
    expect(await call('POST', '/users', { userName: 'ann', tags: { team: 'red' } })).toMatchObject({
      status: 200,
      body: { userName: 'ann', arn: `arn:aws:iam::${iam.accountId}:user/ann`, policies: [] },
    });
    const key = await call('POST', '/users/ann/access-keys');
    const ann = key.body as Keys;
    expect(ann.secretAccessKey).toHaveLength(40);
    expect((await call('GET', '/caller', undefined, ann)).body).toMatchObject({
      arn: expect.stringMatching(/user\/ann$/),
    });
    expect((await call('GET', '/users/ann', undefined, ann)).status).toBe(403);
    const own = allow(['iam:GetUser', 'iam:ListAccessKeys'], `arn:aws:iam::${iam.accountId}:user/ann`);
    expect((await call('PUT', '/users/ann/policies/own', { policyDocument: own })).status).toBe(204);
    expect((await call('GET', '/users/ann/policies/own')).body).toEqual({ policyName: 'own', policyDocument: own });
    expect((await call('GET', '/users/ann/policies')).body).toEqual({ policies: ['own'] });
    expect((await call('GET', '/users/ann', undefined, ann)).body).toMatchObject({
      policies: ['own'],
      tags: { team: 'red' },
    });
    const listed = await call('GET', '/users/ann/access-keys', undefined, ann);
    expect(JSON.stringify(listed.body)).not.toMatch(/secret/i);
    // Nothing more than that: not another's, not more for oneself, not root's keys.
    for (const [method, path, body] of [
      ['GET', '/users', undefined],
      ['POST', '/users', { userName: 'eve' }],
      ['POST', '/access-keys', undefined],
      ['PUT', '/users/ann/policies/more', { policyDocument: allow('*') }],
      ['DELETE', '/roles/default', undefined],
    ] as const) {
      expect(await call(method, path, body, ann), path).toMatchObject({ status: 403 });
    }
    expect((await call('PATCH', `/users/ann/access-keys/${ann.accessKeyId}`, { active: false })).status).toBe(200);
    expect((await call('GET', '/caller', undefined, ann)).status).toBe(403);
    expect((await call('DELETE', `/users/ann/access-keys/${ann.accessKeyId}`)).status).toBe(204);
    expect((await call('DELETE', '/users/ann/policies/own')).status).toBe(204);
    expect((await call('DELETE', '/users/ann')).status).toBe(204);
    expect((await call('GET', '/users/ann')).status).toBe(404);
  });

  it('makes a role, changes whom it trusts and what it may, and deletes it', async () => {
    const trust = (service: string): object => ({
      Statement: { Effect: 'Allow', Principal: { Service: service }, Action: 'sts:AssumeRole' },
    });
    const made = await call('POST', '/roles', {
      roleName: 'r',
      trustPolicy: trust('a.amazonaws.com'),
      maxSessionSeconds: 7_200,
    });
    expect(made).toMatchObject({ status: 200, body: { roleName: 'r', maxSessionSeconds: 7_200 } });
    const roleArn = `arn:aws:iam::${iam.accountId}:role/r`;
    expect(() => iam.issueRoleCredentials({ roleArn, sessionName: 'ss' })).toThrow(/not authorized/);
    const changed = await call('PUT', '/roles/r/trust-policy', {
      trustPolicy: trust('bedrock-agentcore.amazonaws.com'),
    });
    expect(changed.body).toMatchObject({ trustPolicy: trust('bedrock-agentcore.amazonaws.com') });
    expect(iam.issueRoleCredentials({ roleArn, sessionName: 'ss' }).arn).toMatch(/assumed-role\/r\/ss$/);
    expect((await call('PUT', '/roles/r/policies/p', { policyDocument: JSON.stringify(allow('a:B')) })).status).toBe(
      204,
    );
    expect((await call('GET', '/roles')).body).toMatchObject({ roles: [{ roleName: 'default' }, { policies: ['p'] }] });
    expect((await call('DELETE', '/roles/r')).status).toBe(204);
  });

  it('refuses a policy that is nested without end, and takes one that is not', async () => {
    const deep = (levels: number) =>
      `{"kind":"identity","policyDocument":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`;
    expect(await call('POST', '/validate', deep(10_000))).toMatchObject({ status: 400 });
    expect(await call('POST', '/validate', deep(1))).toMatchObject({ status: 400 });
    const Statement = { Effect: 'Allow', Action: 's3:*', Resource: '*' };
    expect(await call('POST', '/validate', { policyDocument: { Statement } })).toMatchObject({ status: 200 });
  });

  it('says what is wrong', async () => {
    const message = async (...args: Parameters<typeof call>): Promise<string> => {
      const { status, body } = await call(...args);
      return `${status} ${(body as { message?: string } | undefined)?.message}`;
    };
    expect(await message('POST', '/users', '{')).toMatch(/^400 The body is not JSON/);
    expect(await message('POST', '/users', '[]')).toMatch(/^400 .*JSON object/);
    expect(await message('POST', '/users', {})).toMatch(/^400 userName must be a string/);
    expect(await message('POST', '/users', { userName: 'a/b' })).toMatch(/^400 userName must be 1 to 64/);
    expect(await message('POST', '/users', { userName: 'ann', tags: [] })).toMatch(/^400 tags must be an object/);
    expect(await message('POST', '/roles', { roleName: 'r' })).toMatch(/^400 trustPolicy must be a policy document/);
    expect(await message('PUT', '/roles/default/policies/p', { policyDocument: {} })).toMatch(
      /^400 .*Statement must hold/,
    );
    expect(await message('PUT', '/roles/none/policies/p', { policyDocument: allow('*') })).toMatch(/^404 /);
    expect(await message('PATCH', '/access-keys/AKIA', { active: 'no' })).toMatch(/^400 active must be true or false/);
    expect(await message('POST', '/validate', { policyDocument: allow('x') })).toMatch(/^400 .*Action has "x"/);
    expect((await call('POST', '/validate', { policyDocument: allow('a:B') })).body).toEqual({
      valid: true,
      statements: 1,
    });
    expect(await message('POST', '/users', `{"userName":"${'x'.repeat(70_000)}"}`)).toMatch(/^413 /);
    expect(await message('GET', '/users', undefined, { ...root, secretAccessKey: 'x' })).toMatch(
      /^403 The request signature/,
    );
  });
});
