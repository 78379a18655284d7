import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  GetResourceOauth2TokenCommand,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { CreateWorkloadIdentityCommand, SetTokenVaultCMKCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentcoreInside } from '../../packages/cli/test/agentcore.ts';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, consentTo } from '../support/consent-platform.ts';
import { newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;
let dir: string;
let workloadIdentityToken: string | undefined;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'vault-key-'));
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'calendar');
  await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'assistant' }));
  const issue = new GetWorkloadAccessTokenForUserIdCommand({ workloadName: 'assistant', userId: 'ada' });
  workloadIdentityToken = (await clients.data.send(issue)).workloadAccessToken;
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  await rm(dir, { recursive: true, force: true });
});

async function cli(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await agentcoreInside(args, { cwd: dir, env: platform.env });
  expect(code, stderr).toBe(0);
  return stdout.trim();
}
const newKey = (): Promise<string> => cli('key', 'create');
const idOf = (arn: string): string => arn.slice(arn.lastIndexOf('/') + 1);

const setKey = (kmsKeyArn: string | undefined) =>
  clients.control.send(
    new SetTokenVaultCMKCommand({
      kmsConfiguration: kmsKeyArn ? { keyType: 'CustomerManagedKey', kmsKeyArn } : { keyType: 'ServiceManagedKey' },
    }),
  );

const ask = (more: object, of = clients) =>
  of.data.send(
    new GetResourceOauth2TokenCommand({
      ...{ workloadIdentityToken, resourceCredentialProviderName: 'calendar', scopes: ['openid', 'read'] },
      ...{ oauth2Flow: 'USER_FEDERATION', customParameters: { login_hint: 'ada' }, ...more },
    }),
  );
const MACHINE = { oauth2Flow: 'M2M' as const, scopes: ['read'], customParameters: {} };
const own = async (of = clients) => (await ask(MACHINE, of)).accessToken ?? '';
const users = async () => (await ask({})).accessToken ?? '';

async function consented(): Promise<void> {
  const { authorizationUrl = '', sessionUri } = await ask({});
  await consentTo(authorizationUrl);
  expect(await provider.whoIs((await ask({ sessionUri })).accessToken ?? '')).toBe('ada');
}

it('tokens are given under a key of the account, through each change of it, and while it is changed', async () => {
  await consented();
  const tokens = { own: await own(), users: await users() };
  const both = async () => ({ own: await own(), users: await users() });
  const asked = provider.asked.length;
  const [first, second] = [await newKey(), await newKey()];
  expect(first).toMatch(/^arn:aws:kms:/);
  await setKey(first);
  expect(await both()).toEqual(tokens);

  let stop = false;
  let given = 0;
  const load = Array.from({ length: 4 }, async () => {
    for (; !stop; given += 1) expect(await both()).toEqual(tokens);
  });
  const failed = Promise.all(load);
  for (const change of [
    () => setKey(second),
    () => cli('key', 'rotate-master'),
    () => setKey(undefined),
    () => setKey(first),
    () => cli('key', 'rotate-master'),
    () => setKey(second),
  ]) {
    const before = given;
    await change();
    // Each change is used by those who ask: they are neither refused nor stopped by it.
    await Promise.race([expect.poll(() => given, { timeout: 30_000 }).toBeGreaterThan(before + 4), failed]);
  }
  stop = true;
  await failed;
  expect(provider.asked).toHaveLength(asked);

  // What the vault no longer is under counts no more for it, and what is asked anew is under the new one.
  await cli('key', 'disable', idOf(first));
  expect(await both()).toEqual(tokens);
  expect(await provider.isActive((await ask({ ...MACHINE, scopes: ['write'] })).accessToken ?? '')).toBe(true);
});

it('a key that is disabled is named by the error, which is not that of a missing right', async () => {
  const key = await newKey();
  await setKey(key);
  const token = await own();
  await cli('key', 'disable', idOf(key));
  const DISABLED = { name: 'ValidationException', message: expect.stringContaining(`${key} is disabled`) };
  await expect(own()).rejects.toMatchObject(DISABLED);
  await expect(users()).rejects.toMatchObject(DISABLED);
  await expect(ask({ ...MACHINE, scopes: ['openid'] })).rejects.toMatchObject(DISABLED);
  await expect(setKey(undefined)).rejects.toMatchObject(DISABLED);
  await cli('key', 'enable', idOf(key));
  expect(await own()).toBe(token);
  // The control: whose right is missing reads of that.
  const credentials = await newUser(platform, 'no-key', [
    { Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' },
  ]);
  const theirs = clientsOf(platform, { credentials });
  await expect(own(theirs)).rejects.toMatchObject({
    name: 'AccessDeniedException',
    message: expect.stringContaining('kms:Decrypt'),
  });
  theirs.close();
});

it('a vault whose key is deleted says so, and begins anew after a reset', async () => {
  const content = { tokenVaultId: 'default' };
  const reset = () =>
    signedFetch(platform, { method: 'POST', path: '/identities/reset-token-vault-key-material', content });
  const key = await newKey();
  await setKey(key);
  const token = await own();
  expect((await reset()).status).toBe(400);
  await cli('key', 'delete', idOf(key), '--days', '0');
  await expect(own()).rejects.toMatchObject({
    name: 'ValidationException',
    message: expect.stringMatching(new RegExp(`${key} of the token vault is deleted.*ResetTokenVaultKeyMaterial`)),
  });
  expect((await reset()).status).toBe(200);
  expect(await own()).not.toBe(token);
  // The user's consent was a token, and is gone with it.
  expect(await ask({})).toMatchObject({ authorizationUrl: expect.any(String) });
  await consented();
});
