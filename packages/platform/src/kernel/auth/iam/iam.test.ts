import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../fake-clock.ts';
import { ToldChanges } from '../../storage/testing/told-changes.ts';
import type { IamPrincipal } from '../principal.ts';
import { type Iam, type IamDeps, openIam } from './iam.ts';
import { createMemoryIamStore, IAM_TOPIC, type IamStore } from './iam-store.ts';
import { fakeSealer } from './testing/fake-sealer.ts';

let store: IamStore;
let clock: FakeClock;
let sealer: ReturnType<typeof fakeSealer>;
let iam: Iam;
let changes: ToldChanges;
const open = (over: Partial<IamDeps> = {}): Promise<Iam> =>
  openIam({ store, sealer, clock, random: randomBytes, region: 'us-east-1', changes, ...over });
beforeEach(async () => {
  store = createMemoryIamStore();
  clock = new FakeClock();
  sealer = fakeSealer();
  changes = new ToldChanges();
  iam = await open();
});

const find = async (accessKeyId: string, token?: string, from = iam): Promise<IamPrincipal | undefined> =>
  (await from.keys.find(accessKeyId, token))?.principal;
const policy = (Action: string | string[], Resource: string | string[] = '*', rest: object = {}): string =>
  JSON.stringify({ Version: '2012-10-17', Statement: { Effect: 'Allow', Action, Resource, ...rest } });
const INVOKE = 'bedrock-agentcore:InvokeAgentRuntime';
const ANY = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:runtime/a';

async function user(name: string, document?: string): Promise<IamPrincipal> {
  await iam.admin.createUser({ userName: name, tags: { team: name } });
  if (document) await iam.admin.putPolicy({ kind: 'user', name }, 'p', document);
  const key = await iam.admin.createAccessKey(name);
  const principal = await find(key.accessKeyId);
  if (!principal) throw new Error('no principal');
  return principal;
}
const can = (principal: IamPrincipal, action = INVOKE, resource = ANY, rest: object = {}): boolean =>
  iam.authorizer.authorize({ principal, action, resource, ...rest }).allowed;

describe('first boot', () => {
  it('makes an account, its root key and the default role, once', async () => {
    expect(iam.accountId).toMatch(/^[1-9]\d{11}$/);
    expect(iam.defaultRoleArn).toBe(`arn:aws:iam::${iam.accountId}:role/default`);
    const root = await iam.rootCredentials();
    expect(root?.secretAccessKey).toHaveLength(40);
    const principal = await find(root?.accessKeyId ?? '');
    expect(principal?.arn).toBe(`arn:aws:iam::${iam.accountId}:root`);
    expect(principal && can(principal, 'anything:AtAll', '*')).toBe(true);
    const again = await open();
    expect([again.accountId, await again.rootCredentials()]).toEqual([iam.accountId, root]);
  });

  it('takes the configured account id, and refuses another later', async () => {
    store = createMemoryIamStore();
    expect((await open({ accountId: '111122223333' })).accountId).toBe('111122223333');
    await expect(open({ accountId: '999999999999' })).rejects.toThrow(/belongs to account 111122223333/);
    await expect(open({ accountId: '12' })).rejects.toThrow(/12 digits/);
  });

  it('of two servers at once makes one account', async () => {
    store = createMemoryIamStore();
    const [a, b] = await Promise.all([open(), open()]);
    expect(a.accountId).toBe(b.accountId);
    expect(await a.rootCredentials()).toEqual(await b.rootCredentials());
  });

  it('stores no secret in the clear', async () => {
    const root = await iam.rootCredentials();
    const session = iam.issueRoleCredentials({ roleArn: iam.defaultRoleArn, sessionName: 'agent' });
    const stored = JSON.stringify(await store.load());
    expect(stored).not.toContain(root?.secretAccessKey);
    expect(stored).not.toContain(session.secretAccessKey);
  });

  it('seals everything anew when the key of the sealer changes', async () => {
    await user('ann');
    const before = await iam.rootCredentials();
    sealer.generation = 2;
    expect(await iam.reseal()).toBe(3);
    const sealed = JSON.stringify(await store.load()).match(/"\d\|iam/g);
    expect(sealed).toEqual(['"2|iam', '"2|iam', '"2|iam']);
    expect(await (await open()).rootCredentials()).toEqual(before);
  });
});

describe('what the account cannot do without', () => {
  const conflict = (remedy: RegExp) => ({ code: 'ConflictException', remedy: expect.stringMatching(remedy) });

  it('has an active root key: the last one is neither switched off nor deleted', async () => {
    const { admin } = iam;
    const { accessKeyId: first } = await iam.rootCredentials();
    await expect(admin.setAccessKeyActive(undefined, first, false)).rejects.toMatchObject(conflict(/create-key/));
    await expect(admin.deleteAccessKey(undefined, first)).rejects.toMatchObject(conflict(/create-key/));
    const { accessKeyId: second } = await admin.createAccessKey(undefined);
    await admin.setAccessKeyActive(undefined, first, false);
    await admin.setAccessKeyActive(undefined, first, false);
    await expect(admin.deleteAccessKey(undefined, second)).rejects.toMatchObject(conflict(/create-key/));
    await admin.setAccessKeyActive(undefined, second, true);
    await admin.deleteAccessKey(undefined, first);
    expect((await iam.rootCredentials()).accessKeyId).toBe(second);
  });

  it('leaves the last key of a user to whoever manages them', async () => {
    await user('ann');
    const [key] = iam.admin.listAccessKeys('ann');
    await iam.admin.setAccessKeyActive('ann', key?.accessKeyId ?? '', false);
    await iam.admin.deleteAccessKey('ann', key?.accessKeyId ?? '');
  });

  it('has the role that it announces', async () => {
    await expect(iam.admin.deleteRole('default')).rejects.toMatchObject(conflict(/delete-policy/));
  });

  it('gets back at boot what it has lost, and says so once', async () => {
    const { accessKeyId } = await iam.rootCredentials();
    const { revision, records } = await store.load();
    const key = records.find((record) => record.name === accessKeyId);
    if (key?.kind !== 'access-key') throw new Error('the root has a key');
    await store.commit(revision, [
      { put: { ...key, data: { ...key.data, active: false } } },
      { remove: { kind: 'role', name: 'default' } },
    ]);
    const told: string[] = [];
    const again = await open({ onRestored: (what) => told.push(what) });
    expect(told).toEqual(['an active access key of its root', 'the role "default"']);
    expect(again.accountId).toBe(iam.accountId);
    const root = await again.rootCredentials();
    expect(root.accessKeyId).not.toBe(accessKeyId);
    expect((await find(root.accessKeyId, undefined, again))?.arn).toBe(`arn:aws:iam::${iam.accountId}:root`);
    expect(await find(accessKeyId, undefined, again)).toBeUndefined();
    expect(again.roleMay(again.defaultRoleArn, INVOKE, ANY)).toBe(true);
    expect(await (await open({ onRestored: (what) => told.push(what) })).rootCredentials()).toEqual(root);
    expect(told).toHaveLength(2);
  });

  it('has the rights of today where it had those that an earlier version gave it, and keeps what somebody has changed', async () => {
    const names: string[] = [
      'bedrock-agentcore:CreateEvent',
      'bedrock-agentcore:GetEvent',
      'bedrock-agentcore:ListEvents',
      'bedrock-agentcore:ListSessions',
      'bedrock-agentcore:ListActors',
      'bedrock-agentcore:*MemoryRecord*',
      'bedrock-agentcore:GetResource*',
      'bedrock-agentcore:InvokeAgentRuntime',
      'bedrock-agentcore:InvokeAgentRuntimeWithWebSocketStream',
      'bedrock-agentcore:InvokeBrowser*',
      'bedrock-agentcore:InvokeCodeInterpreter',
      'bedrock-agentcore:InvokeGateway',
      'bedrock-agentcore:InvokeHarness',
      'bedrock-agentcore:*BrowserSession*',
      'bedrock-agentcore:*BrowserStream*',
      'bedrock-agentcore:*CodeInterpreterSession*',
      'bedrock-agentcore:StopRuntimeSession',
      'bedrock:Invoke*',
    ];
    const former = (Action: string[]): string =>
      JSON.stringify({
        Version: '2012-10-17',
        Statement: [{ Sid: 'UseDataPlane', Effect: 'Allow', Action, Resource: '*' }],
      });
    const STOP = 'bedrock-agentcore:StopRuntimeSession';
    const after = async (document: string): Promise<{ stop: boolean; told: string[] }> => {
      await iam.admin.putPolicy({ kind: 'role', name: 'default' }, 'data-plane', document);
      const told: string[] = [];
      const again = await open({ onRenewed: (what) => told.push(what) });
      return { stop: again.roleMay(again.defaultRoleArn, STOP, ANY), told };
    };
    expect(await after(former([...names, 'bedrock-agentcore:ListTagsForResource']))).toEqual({ stop: true, told: [] });
    expect(await after(former(names))).toEqual({
      stop: false,
      told: ['the policy "data-plane" of the role "default"'],
    });
    await open({ onRenewed: (what) => expect.fail(what) });
  });

  it('has the credential providers that the configuration says, back and forth, and what somebody has changed stays', async () => {
    const home = `arn:aws:bedrock-agentcore:us-east-1:${iam.accountId}`;
    const [one, other] = ['one', 'other'].map((name) => `${home}:token-vault/default/apikeycredentialprovider/${name}`);
    const beside = [`${home}:token-vault/default`, `${home}:workload-identity-directory/default/workload-identity/a`];
    const may = (from: Iam, resource = '', given: string[] = []) =>
      from.roleMay(from.defaultRoleArn, 'bedrock-agentcore:GetResourceApiKey', resource, given);
    expect([...beside, other].map((arn) => may(iam, arn))).toEqual([true, true, true]);
    const told: string[] = [];
    const given = await open({ defaultRoleProviders: 'given', onRenewed: (what) => told.push(what) });
    expect(beside.map((arn) => may(given, arn))).toEqual([true, true]);
    expect([one, other, `${one}2`].map((arn) => may(given, arn, [one ?? '']))).toEqual([true, false, false]);
    expect(given.roleMay(given.defaultRoleArn, INVOKE, ANY)).toBe(true);
    expect(may(await open({ onRenewed: (what) => told.push(what) }), other)).toBe(true);
    expect(told).toHaveLength(2);
    await iam.admin.putPolicy({ kind: 'role', name: 'default' }, 'data-plane', policy('bedrock-agentcore:*'));
    expect(may(await open({ defaultRoleProviders: 'given', onRenewed: (what) => expect.fail(what) }), other)).toBe(
      true,
    );
    store = createMemoryIamStore();
    const fresh = await open({ accountId: iam.accountId, defaultRoleProviders: 'given' });
    expect([one, other].map((arn) => may(fresh, arn, [one ?? '']))).toEqual([true, false]);
  });

  it('is nothing to tell of at first boot', async () => {
    store = createMemoryIamStore();
    await open({ onRestored: (what) => expect.fail(what) });
  });
});

describe('access keys', () => {
  it('answer without a Promise once they were used', async () => {
    const key = await iam.admin.createAccessKey(undefined);
    expect(iam.keys.find(key.accessKeyId, undefined)).toBeInstanceOf(Promise);
    await iam.keys.find(key.accessKeyId, undefined);
    expect(iam.keys.find(key.accessKeyId, undefined)).toMatchObject({ secretAccessKey: key.secretAccessKey });
  });

  it('end at once when made inactive, deleted, or their user is', async () => {
    await iam.admin.createUser({ userName: 'ann' });
    const one = await iam.admin.createAccessKey('ann');
    const two = await iam.admin.createAccessKey('ann');
    await expect(iam.admin.createAccessKey('ann')).rejects.toMatchObject({ code: 'ServiceQuotaExceededException' });
    await find(one.accessKeyId);
    await iam.admin.setAccessKeyActive('ann', one.accessKeyId, false);
    expect(await find(one.accessKeyId)).toBeUndefined();
    await iam.admin.setAccessKeyActive('ann', one.accessKeyId, true);
    expect(await find(one.accessKeyId)).toBeDefined();
    await iam.admin.deleteAccessKey('ann', one.accessKeyId);
    expect(await find(one.accessKeyId)).toBeUndefined();
    await iam.admin.deleteUser('ann');
    expect(await find(two.accessKeyId)).toBeUndefined();
    expect(await find('AKIANOBODY')).toBeUndefined();
    expect(await find(one.accessKeyId, 'a token')).toBeUndefined();
  });

  it('of one user cannot be touched as those of another', async () => {
    await user('ann');
    await iam.admin.createUser({ userName: 'eve' });
    const [key] = iam.admin.listAccessKeys('ann');
    expect(key).not.toHaveProperty('sealedSecret');
    await expect(iam.admin.deleteAccessKey('eve', key?.accessKeyId ?? '')).rejects.toMatchObject({ status: 404 });
    await expect(iam.admin.deleteAccessKey(undefined, key?.accessKeyId ?? '')).rejects.toMatchObject({ status: 404 });
  });

  it('made on another server are known here once the change feed tells', async () => {
    const other = await open();
    await user('ann');
    const [key] = iam.admin.listAccessKeys('ann');
    expect(await find(key?.accessKeyId ?? '', undefined, other)).toBeUndefined();
    await changes.tell(IAM_TOPIC, 'true');
    expect(await find(key?.accessKeyId ?? '', undefined, other)).toBeDefined();
  });

  it('count for nothing while it is not known what others have changed', async () => {
    const { accessKeyId } = await iam.rootCredentials();
    expect(await find(accessKeyId)).toBeDefined();
    changes.lost = true;
    await expect(find(accessKeyId)).rejects.toMatchObject({ status: 503 });
    changes.lost = false;
    expect(await find(accessKeyId)).toBeDefined();
  });
});

describe('authorization', () => {
  it('follows the policies of the user from one request to the next', async () => {
    const ann = await user('ann');
    expect(can(ann)).toBe(false);
    await iam.admin.putPolicy({ kind: 'user', name: 'ann' }, 'p', policy('bedrock-agentcore:*'));
    expect(can(ann)).toBe(true);
    expect(can(ann, 'iam:CreateUser', '*')).toBe(false);
    const deny = JSON.stringify({ Statement: { Sid: 'Never', Effect: 'Deny', Action: INVOKE, Resource: ANY } });
    await iam.admin.putPolicy({ kind: 'user', name: 'ann' }, 'q', deny);
    expect(can(ann)).toBe(false);
    expect(iam.authorizer.authorize({ principal: ann, action: INVOKE, resource: ANY }).reason).toBe(
      `${ann.arn} asks for ${INVOKE} on ${ANY}: an identity policy denies it (statement Never)`,
    );
    await iam.admin.deletePolicy({ kind: 'user', name: 'ann' }, 'q');
    expect(can(ann)).toBe(true);
    await iam.admin.deleteUser('ann');
    expect(can(ann)).toBe(false);
  });

  it('knows the keys of the principal, of the time and of the request', async () => {
    const resource = 'arn:aws:bedrock-agentcore:*:*:memory/*';
    const own = { StringEquals: { 'bedrock-agentcore:actorId': '$' + '{aws:username}' } };
    const ann = await user('ann', policy('bedrock-agentcore:*', resource, { Condition: own }));
    const memory = 'arn:aws:bedrock-agentcore:us-east-1:1:memory/m';
    const as = (actor: string, more: object = {}) =>
      can(ann, 'bedrock-agentcore:CreateEvent', memory, { context: { 'bedrock-agentcore:actorId': actor, ...more } });
    expect([as('ann'), as('bob'), as('bob', { 'aws:username': 'bob' }), as('bob', { 'AWS:USERNAME': 'bob' })]).toEqual([
      true,
      false,
      false,
      false,
    ]);
    const dated = { DateLessThan: { 'aws:CurrentTime': new Date(clock.now() + 1_000).toISOString() } };
    const tagged = { StringEquals: { 'aws:PrincipalTag/Team': 'bob', 'aws:PrincipalAccount': iam.accountId } };
    const bob = await user('bob', policy('*', '*', { Condition: { ...dated, ...tagged } }));
    expect(can(bob)).toBe(true);
    await clock.advance(1_000);
    expect(can(bob)).toBe(false);
  });

  it('adds what the resource policy allows and takes what it denies, from root too', async () => {
    const ann = await user('ann');
    const bob = await user('bob', policy('*'));
    const root = await find((await iam.rootCredentials())?.accessKeyId ?? '');
    const resourcePolicy = (Effect: string, Principal: unknown): object => ({
      resourcePolicies: [JSON.stringify({ Statement: { Effect, Principal, Action: '*', Resource: ANY } })],
    });
    expect(can(ann, INVOKE, ANY, resourcePolicy('Allow', { AWS: ann.arn }))).toBe(true);
    expect(can(ann, INVOKE, ANY, resourcePolicy('Allow', { AWS: bob.arn }))).toBe(false);
    // The account as principal leaves it to the account's own policies.
    expect(can(ann, INVOKE, ANY, resourcePolicy('Allow', { AWS: iam.accountId }))).toBe(false);
    expect(can(bob, INVOKE, ANY, resourcePolicy('Deny', { AWS: iam.accountId }))).toBe(false);
    expect(root && can(root, INVOKE, ANY, resourcePolicy('Deny', '*'))).toBe(false);
    expect(root && can(root, INVOKE, ANY, { resourcePolicies: ['not json'] })).toBe(false);
  });

  it('lets a bearer whom the resource accepted in, unless the resource policy denies', () => {
    const bearer = {
      kind: 'oauth',
      accountId: iam.accountId,
      acceptedBy: ANY,
      issuer: 'i',
      vouchedBy: 'i',
      subject: 's',
      claims: {},
      token: 't',
      digest: 'd',
    } as const;
    const deny = JSON.stringify({ Statement: { Effect: 'Deny', Principal: '*', Action: '*', Resource: '*' } });
    expect(iam.authorizer.authorize({ principal: bearer, action: INVOKE, resource: ANY }).allowed).toBe(true);
    expect(
      iam.authorizer.authorize({ principal: bearer, action: INVOKE, resource: ANY, resourcePolicies: [deny] }).allowed,
    ).toBe(false);
    // Of another resource, with a longer name or none, it is nobody.
    const may = (resource: string, acceptedBy: string | undefined): boolean =>
      iam.authorizer.authorize({ principal: { ...bearer, acceptedBy }, action: INVOKE, resource }).allowed;
    expect(may(`${ANY}/runtime-endpoint/DEFAULT`, ANY)).toBe(true);
    expect(may(`${ANY}2`, ANY)).toBe(false);
    expect(may(ANY, `${ANY}/runtime-endpoint/DEFAULT`)).toBe(false);
    expect(may(ANY, undefined)).toBe(false);
  });
});

describe('role sessions', () => {
  const session = { sessionName: 'agent-1' };

  it('are issued to the platform for roles that trust it, with tags, and end at their time', async () => {
    const issued = iam.issueRoleCredentials({
      ...session,
      roleArn: iam.defaultRoleArn,
      tags: { run: '7' },
      ttlSeconds: 900,
    });
    const arn = `arn:aws:sts::${iam.accountId}:assumed-role/default/agent-1`;
    expect(issued).toMatchObject({ arn, expiresAt: clock.now() + 900_000 });
    expect(issued.accessKeyId).toMatch(/^ASIA[A-Z2-7]{16}$/);
    const principal = await find(issued.accessKeyId, issued.sessionToken);
    expect(principal).toMatchObject({ arn, tags: { run: '7' } });
    expect(principal && can(principal)).toBe(true);
    expect(principal && can(principal, 'bedrock-agentcore:CreateMemory', '*')).toBe(false);
    expect(principal && can(principal, 'iam:CreateUser', '*')).toBe(false);
    // An agent that was talked into it must not get into other sessions by its own role.
    const others = ['InvokeAgentRuntimeCommand', 'InvokeAgentRuntimeCommandShell', 'InvokeAgentRuntimeForUser'];
    const tokens = ['GetWorkloadAccessToken', 'GetWorkloadAccessTokenForJWT', 'GetWorkloadAccessTokenForUserId'];
    for (const action of [...others, ...tokens])
      expect(principal && can(principal, `bedrock-agentcore:${action}`), action).toBe(false);
    // Another server with the same store reads it without having issued it.
    expect(await find(issued.accessKeyId, issued.sessionToken, await open())).toMatchObject({ arn });
    await clock.advance(899_999);
    expect(await find(issued.accessKeyId, issued.sessionToken)).toBeDefined();
    await clock.advance(1);
    await expect(find(issued.accessKeyId, issued.sessionToken)).rejects.toMatchObject({
      code: 'ExpiredTokenException',
    });
  });

  it('are known by their token alone, and no byte of it can be changed', async () => {
    const { accessKeyId, sessionToken } = iam.issueRoleCredentials({ ...session, roleArn: iam.defaultRoleArn });
    expect(await find(accessKeyId, sessionToken)).toBeDefined();
    expect(await find(accessKeyId, undefined)).toBeUndefined();
    expect(await find('ASIAOTHER', sessionToken)).toBeUndefined();
    const bytes = Buffer.from(sessionToken, 'base64');
    for (let i = 0; i < bytes.length; i++) {
      const altered = Buffer.from(bytes);
      altered[i] = (altered[i] ?? 0) ^ 1;
      expect(await find(accessKeyId, altered.toString('base64'))).toBeUndefined();
    }
    for (const token of ['', 'x', `${sessionToken} `, `${sessionToken}=`, sessionToken.slice(4), 'A'.repeat(10_000)]) {
      expect(await find(accessKeyId, token)).toBeUndefined();
    }
    store = createMemoryIamStore();
    expect(await find(accessKeyId, sessionToken, await open({ accountId: iam.accountId }))).toBeUndefined();
  });

  it('that were issued to a sandbox end with it, and so does what is assumed with them', async () => {
    const live = new Set(['sandbox-1']);
    iam = await open({ sandboxLives: (id) => live.has(id) });
    const roleArn = iam.defaultRoleArn;
    await iam.admin.putPolicy({ kind: 'role', name: 'default' }, 'assume', policy('sts:AssumeRole', roleArn));
    const issued = iam.issueRoleCredentials({ ...session, roleArn, sandboxId: 'sandbox-1' });
    const principal = await find(issued.accessKeyId, issued.sessionToken);
    if (!principal) throw new Error('no principal');
    const chained = iam.assumeRole(principal, { ...session, roleArn });
    const free = iam.issueRoleCredentials({ ...session, roleArn });
    expect(await find(chained.accessKeyId, chained.sessionToken)).toBeDefined();
    live.clear();
    for (const { accessKeyId, sessionToken } of [issued, chained]) {
      await expect(find(accessKeyId, sessionToken)).rejects.toMatchObject({ code: 'ExpiredTokenException' });
    }
    expect(await find(free.accessKeyId, free.sessionToken)).toBeDefined();
    // A server that knows nothing of sandboxes takes none of their credentials.
    await expect(find(issued.accessKeyId, issued.sessionToken, await open())).rejects.toThrow(/has ended/);
  });

  it('know what was given to whom they were issued for; nobody says it of himself, and nothing of it is passed on', async () => {
    const roleArn = iam.defaultRoleArn;
    const memory = (id: string) => `arn:aws:bedrock-agentcore:us-east-1:${iam.accountId}:memory/${id}`;
    const mine = memory('notes-a1B2c3D4e5');
    await iam.admin.putPolicy({ kind: 'role', name: 'default' }, 'assume', policy('sts:AssumeRole', roleArn));
    const list = (principal: IamPrincipal, resource: string, context = {}) =>
      can(principal, 'bedrock-agentcore:ListEvents', resource, { context });
    const holder = async ({ accessKeyId, sessionToken }: { accessKeyId: string; sessionToken: string }) => {
      const principal = await find(accessKeyId, sessionToken);
      if (!principal) throw new Error('no principal');
      return principal;
    };
    const given = await holder(iam.issueRoleCredentials({ ...session, roleArn, given: [mine] }));
    const empty = await holder(iam.issueRoleCredentials({ ...session, roleArn }));
    expect(list(given, mine)).toBe(true);
    for (const other of [memory('other-a1B2c3D4e5'), `${mine}x`, memory('*'), '*'])
      expect(list(given, other)).toBe(false);
    expect(list(empty, mine)).toBe(false);
    expect(list(empty, mine, { 'agentplatform:ResourceIsGiven': 'true' })).toBe(false);
    // What the platform does for him is done with it; what he makes of it by himself is not.
    expect(list(await holder(iam.issueForwarded(given)), mine)).toBe(true);
    const request = { ...session, roleArn, given: [mine] };
    expect(list(await holder(iam.assumeRole(given, request)), mine)).toBe(false);
  });

  it('are issued for whom the trust policy names as source', async () => {
    const sourceArn = `arn:aws:bedrock-agentcore:us-east-1:${iam.accountId}:runtime/a-0123456789`;
    const Condition = {
      StringEquals: { 'aws:SourceAccount': iam.accountId },
      ArnLike: { 'aws:SourceArn': `arn:aws:bedrock-agentcore:us-east-1:${iam.accountId}:*` },
    };
    const Principal = { Service: 'bedrock-agentcore.amazonaws.com' };
    const trustPolicy = JSON.stringify({
      Statement: { Effect: 'Allow', Principal, Action: 'sts:AssumeRole', Condition },
    });
    const role = await iam.admin.createRole({ roleName: 'confused-deputy', trustPolicy });
    const issue = (more: object) => iam.issueRoleCredentials({ ...session, roleArn: role.arn, ...more });
    expect(issue({ sourceArn }).arn).toMatch(/confused-deputy/);
    expect(() => issue({})).toThrow(/not authorized/);
    expect(() => issue({ sourceArn: 'arn:aws:bedrock-agentcore:us-east-1:999999999999:runtime/a' })).toThrow();
  });

  it('end when the role is deleted, and do not come back with a new one of that name', async () => {
    const trustPolicy = iam.admin.getRole('default').trustPolicy;
    const role = await iam.admin.createRole({ roleName: 'r', trustPolicy });
    const issued = iam.issueRoleCredentials({ ...session, roleArn: role.arn });
    await iam.admin.deleteRole('r');
    expect(await find(issued.accessKeyId, issued.sessionToken)).toBeUndefined();
    await iam.admin.createRole({ roleName: 'r', trustPolicy });
    expect(await find(issued.accessKeyId, issued.sessionToken)).toBeUndefined();
  });

  it('are given to whom the trust policy names, or to whom it leaves to the account', async () => {
    const ann = await user('ann');
    const bob = await user('bob', policy('sts:AssumeRole', iam.defaultRoleArn));
    const eve = await user('eve');
    const trust = (rest: object): string =>
      JSON.stringify({
        Statement: { Effect: 'Allow', Action: 'sts:AssumeRole', Principal: { AWS: ann.arn }, ...rest },
      });
    const role = await iam.admin.createRole({ roleName: 'r', trustPolicy: trust({}) });
    const assume = (who: IamPrincipal, roleArn: string, more: object = {}): string => {
      try {
        return iam.assumeRole(who, { ...session, roleArn, ...more }).arn;
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    expect(assume(ann, role.arn)).toMatch(/assumed-role\/r\/agent-1$/);
    expect(assume(bob, role.arn)).toBe('AccessDeniedException');
    expect(assume(bob, iam.defaultRoleArn)).toMatch(/default/);
    expect(assume(eve, iam.defaultRoleArn)).toBe('AccessDeniedException');
    expect(assume(ann, `${role.arn}x`)).toBe('AccessDeniedException');
    expect(assume(ann, role.arn, { tags: { a: 'b' } })).toBe('AccessDeniedException');
    expect(() => iam.issueRoleCredentials({ ...session, roleArn: role.arn })).toThrow(/not authorized/);
    await iam.admin.setTrustPolicy('r', trust({ Condition: { StringEquals: { 'sts:ExternalId': 'x' } } }));
    expect([assume(ann, role.arn), assume(ann, role.arn, { externalId: 'x' })].map((s) => s.slice(0, 3))).toEqual([
      'Acc',
      'arn',
    ]);
  });

  it('say who is behind them where the trust policy lets them, and hand that on unchanged', async () => {
    const trust = (...Action: string[]): string =>
      JSON.stringify({ Statement: { Effect: 'Allow', Action, Principal: { AWS: iam.accountId } } });
    const all = policy('sts:*', '*');
    const ann = await user('ann', all);
    const [named, nameless] = await Promise.all([
      iam.admin.createRole({ roleName: 'named', trustPolicy: trust('sts:AssumeRole', 'sts:SetSourceIdentity') }),
      iam.admin.createRole({ roleName: 'nameless', trustPolicy: trust('sts:AssumeRole') }),
    ]);
    for (const name of ['named', 'nameless']) await iam.admin.putPolicy({ kind: 'role', name }, 'assume', all);
    const assume = (who: IamPrincipal, roleArn: string, sourceIdentity?: string) =>
      iam.assumeRole(who, { ...session, roleArn, sourceIdentity });
    const first = assume(ann, named.arn, 'ann@example.com');
    expect(first.sourceIdentity).toBe('ann@example.com');
    const behind = await find(first.accessKeyId, first.sessionToken);
    if (!behind) throw new Error('no principal');
    expect(behind.sourceIdentity).toBe('ann@example.com');
    expect(assume(behind, named.arn).sourceIdentity).toBe('ann@example.com');
    expect(() => assume(behind, named.arn, 'bob')).toThrow(/cannot be changed/);
    expect(() => assume(behind, nameless.arn)).toThrow(/sts:SetSourceIdentity/);
    expect(() => assume(ann, nameless.arn, 'ann')).toThrow(/sts:SetSourceIdentity/);
    expect(() => assume(ann, named.arn, 'a b')).toThrow(/sourceIdentity/);
    const forwarded = iam.issueForwarded(behind);
    expect(await find(forwarded.accessKeyId, forwarded.sessionToken)).toMatchObject({
      sourceIdentity: 'ann@example.com',
    });
    // A policy reads it of the session alone, whatever a request says.
    const Condition = { StringEquals: { 'aws:SourceIdentity': 'ann@example.com' } };
    const Statement = { Effect: 'Allow', Action: 'a:B', Resource: '*', Condition };
    for (const name of ['named', 'nameless'])
      await iam.admin.putPolicy({ kind: 'role', name }, 'only', JSON.stringify({ Statement }));
    const other = assume(ann, nameless.arn);
    const stranger = await find(other.accessKeyId, other.sessionToken);
    if (!stranger) throw new Error('no principal');
    const context = { 'aws:SourceIdentity': 'ann@example.com' };
    const may = (principal: IamPrincipal) =>
      iam.authorizer.authorize({ principal, action: 'a:B', resource: 'r', context }).allowed;
    expect([behind, stranger].map(may)).toEqual([true, false]);
  });

  it.each([
    [{ sessionName: 'a' }, /roleSessionName/],
    [{ sessionName: 'a/b' }, /roleSessionName/],
    [{ ttlSeconds: 899 }, /durationSeconds/],
    [{ ttlSeconds: 43_201 }, /durationSeconds/],
    [{ ttlSeconds: Number.NaN }, /durationSeconds/],
    [{ tags: { 'a{': 'b' } }, /tags/],
    [{ tags: { a: 'b', A: 'c' } }, /twice/],
    [{ tags: Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, ''])) }, /at most 50/],
    [{ tags: Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`k${i}`, 'v'.repeat(256)])) }, /together/],
  ])('refuse %j', (over, message) => {
    expect(() => iam.issueRoleCredentials({ ...session, roleArn: iam.defaultRoleArn, ...over })).toThrow(message);
  });
});

describe('credentials that stand for who asks', () => {
  const FIVE_MINUTES = 300_000;

  it('are those of a user: neither his secret nor longer than five minutes nor his key', async () => {
    const ann = await user('ann', policy(INVOKE));
    const issued = iam.issueForwarded(ann);
    expect(await find(issued.accessKeyId, issued.sessionToken)).toEqual(ann);
    expect(issued.expiresAt).toBe(clock.now() + FIVE_MINUTES);
    const own = await iam.keys.find(ann.accessKeyId, undefined);
    expect(own?.secretAccessKey).toBeDefined();
    expect(issued.secretAccessKey).not.toBe(own?.secretAccessKey);
    // Forwarded once more by whoever got them: the same.
    const again = await find(issued.accessKeyId, issued.sessionToken);
    expect(again && iam.issueForwarded(again).sessionToken).toBeDefined();
    await iam.admin.setAccessKeyActive('ann', ann.accessKeyId, false);
    expect(await find(issued.accessKeyId, issued.sessionToken)).toBeUndefined();
    await iam.admin.setAccessKeyActive('ann', ann.accessKeyId, true);
    expect(await find(issued.accessKeyId, issued.sessionToken)).toBeDefined();
    await clock.advance(FIVE_MINUTES);
    await expect(find(issued.accessKeyId, issued.sessionToken)).rejects.toMatchObject({
      code: 'ExpiredTokenException',
    });
  });

  it('are those of a session of a role, with its tags, and end with its sandbox', async () => {
    const live = new Set(['sandbox-1']);
    iam = await open({ sandboxLives: (id) => live.has(id) });
    const session = { roleArn: iam.defaultRoleArn, sessionName: 'agent-1', tags: { run: '7' }, sandboxId: 'sandbox-1' };
    const { accessKeyId, sessionToken } = iam.issueRoleCredentials(session);
    const agent = await find(accessKeyId, sessionToken);
    if (!agent) throw new Error('no principal');
    const issued = iam.issueForwarded(agent);
    expect(await find(issued.accessKeyId, issued.sessionToken)).toEqual({ ...agent, accessKeyId: issued.accessKeyId });
    live.clear();
    await expect(find(issued.accessKeyId, issued.sessionToken)).rejects.toThrow(/has ended/);
  });

  it('are given for nobody who is gone', async () => {
    const ann = await user('ann');
    await iam.admin.deleteAccessKey('ann', ann.accessKeyId);
    expect(() => iam.issueForwarded(ann)).toThrow(/is no more/);
  });
});

describe('the administration refuses', () => {
  it('names, documents and doubles', async () => {
    const { admin } = iam;
    await admin.createUser({ userName: 'ann' });
    await expect(admin.createUser({ userName: 'ann' })).rejects.toMatchObject({ status: 409 });
    for (const userName of ['', 'a b', 'a/b', '__proto__', 'x'.repeat(65)]) {
      await expect(admin.createUser({ userName })).rejects.toMatchObject({ code: 'ValidationException' });
    }
    const ann = { kind: 'user', name: 'ann' } as const;
    await expect(admin.putPolicy(ann, 'p', '{}')).rejects.toThrow(/Statement must hold/);
    await expect(admin.putPolicy({ kind: 'user', name: 'bob' }, 'p', policy('*'))).rejects.toMatchObject({
      status: 404,
    });
    await expect(admin.deletePolicy(ann, 'constructor')).rejects.toMatchObject({ status: 404 });
    await expect(admin.createRole({ roleName: 'r', trustPolicy: policy('*') })).rejects.toThrow(
      /Resource has no place/,
    );
    await expect(admin.deleteRole('r')).rejects.toMatchObject({ status: 404 });
    for (let i = 0; i < 20; i++) await admin.putPolicy(ann, `p${i}`, policy('a:B'));
    await expect(admin.putPolicy(ann, 'more', policy('a:B'))).rejects.toMatchObject({
      code: 'ServiceQuotaExceededException',
    });
  });
});
