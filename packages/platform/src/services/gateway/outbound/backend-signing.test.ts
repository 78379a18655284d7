import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { fakeSealer } from '../../../kernel/auth/iam/testing/fake-sealer.ts';
import { createAuthenticator, createMemoryIamStore, type Iam, openIam } from '../../../kernel/auth/index.ts';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { ToldChanges } from '../../../kernel/storage/testing/told-changes.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { BackendSigning } from './backend-signing.ts';
import type { Credential } from './credential.ts';
import { coversHost, readRoleKeys } from './role-keys.ts';

const OWN = 'https://agents.example.com/platform';
const REGION = 'eu-test-1';
let iam: Iam;
let clock: FakeClock;
let folder: string;
let file: string;
let signing: BackendSigning;
let gateway: Gateway;

beforeEach(async () => {
  clock = new FakeClock(Date.UTC(2026, 10, 21));
  const parts = { sealer: fakeSealer(), clock, random: randomBytes, region: REGION, changes: new ToldChanges() };
  iam = await openIam({ store: createMemoryIamStore(), ...parts });
  folder = await mkdtemp(join(tmpdir(), 'role-keys-'));
  file = join(folder, 'roles');
  signing = new BackendSigning({
    ...{ roles: iam, clock, region: REGION, roleCredentials: file },
    ownAddresses: () => [OWN, 'http://127.0.0.1:8080'],
  });
  gateway = {
    ...{
      arn: 'arn:aws:bedrock-agentcore:eu-test-1:1:gateway/g-0123456789',
      accountId: iam.accountId,
      id: 'g-0123456789',
    },
    ...{ name: 'g', createdAt: 0, updatedAt: 0 },
    definition: { roleArn: iam.defaultRoleArn, authorizerType: 'AWS_IAM' },
  };
  await keys('s3.example.com, *.internal.example.com:9000');
});
afterEach(() => rm(folder, { recursive: true }));

const keys = (hosts: string): Promise<void> =>
  writeFile(
    file,
    `# of roles\n[other]\naws_access_key_id = AKIAOTHER\n\n[default]\naws_access_key_id = AKIANAME\naws_secret_access_key = s\nhosts = *.example.com\n\n[${iam.defaultRoleArn}]\naws_access_key_id = AKIAFILE\naws_secret_access_key=file/secret+\nhosts = ${hosts}\n`,
  );

function sent(credential: Credential, address: string, service?: string) {
  const url = new URL(address);
  const request = { method: 'POST', url, headers: { 'content-type': 'text/plain' }, body: 'hello', service };
  return credential.sign?.(request) ?? Promise.reject(new Error('it signs nothing'));
}

/** Who the platform takes the sender of a request to be. */
async function whoIs({ url, headers }: Awaited<ReturnType<typeof sent>>, service: string): Promise<string> {
  const authenticator = createAuthenticator({ keys: iam.keys, clock, region: REGION });
  const rawHeaders = Object.entries({ ...headers, host: url.host, 'content-length': '5' }).flat();
  const rawUrl = url.pathname + url.search;
  return (await authenticator.authenticate({ method: 'POST', rawUrl, rawHeaders, service })).principal.arn;
}

const ofRole = (): string => `arn:aws:sts::${iam.accountId}:assumed-role/default/gateway-g-0123456789`;

it('signs for this platform with a session of the gateway’s role, which is short and not asked for at each call', async () => {
  const credential = await signing.asRole(gateway, { service: 'bedrock-agentcore' });
  const request = await sent(credential, `${OWN}/runtimes/a/invocations?qualifier=b`);
  expect(await whoIs(request, 'bedrock-agentcore')).toBe(ofRole());
  expect(credential.secrets).toContain(request.headers['x-amz-security-token']);
  expect(await signing.asRole(gateway)).toMatchObject({ secrets: credential.secrets });
  await clock.advance(450_001);
  const renewed = await signing.asRole(gateway, { service: 'bedrock-agentcore' });
  expect((await sent(renewed, `${OWN}/x`)).headers['x-amz-security-token']).not.toBe(
    request.headers['x-amz-security-token'],
  );
  // A backend may repeat what it was shown before.
  expect(renewed.secrets).toEqual(expect.arrayContaining([...credential.secrets]));
  expect(renewed.identity).toEqual(credential.identity);
  await clock.advance(450_001);
  await expect(whoIs(await sent(credential, `${OWN}/x`), 'bedrock-agentcore')).rejects.toThrow('expired');
});

it('signs for another host with the keys of the operator alone, and where he names that host', async () => {
  const credential = await signing.asRole(gateway, { service: 's3', region: 'eu-west-1' });
  for (const host of ['s3.example.com', 'a.internal.example.com:9000']) {
    const { headers } = await sent(credential, `https://${host}/bucket/key`);
    expect(headers.authorization).toContain('Credential=AKIAFILE/20261121/eu-west-1/s3/');
    expect(headers['x-amz-security-token']).toBeUndefined();
  }
  for (const address of [
    'https://evil.example.com/x',
    'https://s3.example.com.evil.example/x',
    'https://s3.example.com:444/x',
    'http://s3.example.com/x',
    'https://internal.example.com:9000/x',
    'https://agents.example.com/somebody-else',
    'https://agents.example.com:8443/platform/x',
  ]) {
    await expect(sent(credential, address), address).rejects.toThrow(/has no keys for that host/);
    expect(await signing.refusalOf(gateway, address)).toMatch(/gateway\.roleCredentials/);
  }
  expect(await signing.refusalOf(gateway, 'https://s3.example.com/')).toBeUndefined();
  expect(credential.secrets).toContain('file/secret+');
});

it('takes other keys when the file has them, and none when it is gone from it', async () => {
  await keys('other.example.com');
  const credential = await signing.asRole(gateway, { service: 's3' });
  expect((await sent(credential, 'https://other.example.com/')).headers.authorization).toContain('AKIAFILE');
  await expect(sent(credential, 'https://s3.example.com/')).rejects.toThrow(/has no keys/);
  await expect(readRoleKeys(file, 'other')).rejects.toThrow(/needs aws_access_key_id/);
  expect(await readRoleKeys(undefined, 'default')).toBeUndefined();
});

it('signs for this platform, too, where the file cannot be read, and says of other hosts so without its path', async () => {
  await rm(file);
  const credential = await signing.asRole(gateway, { service: 's3' });
  expect(await whoIs(await sent(credential, `${OWN}/x`), 's3')).toBe(ofRole());
  const refused = /^The platform cannot read the file of the setting gateway\.roleCredentials\.$/;
  await expect(sent(credential, 'https://s3.example.com/')).rejects.toThrow(refused);
  expect(await signing.refusalOf(gateway, 'https://s3.example.com/')).toMatch(refused);
});

it('signs in the name of a caller at this platform alone', async () => {
  await iam.admin.createUser({ userName: 'ann' });
  const { accessKeyId } = await iam.admin.createAccessKey('ann');
  const ann = (await iam.keys.find(accessKeyId, undefined))?.principal;
  if (!ann) throw new Error('no principal');
  const credential = signing.asCaller(ann, { service: 'bedrock-agentcore' });
  expect(await whoIs(await sent(credential, `${OWN}/x`), 'bedrock-agentcore')).toBe(ann.arn);
  await expect(sent(credential, 'https://s3.example.com/x')).rejects.toThrow(/not this platform/);
});

it('signs for the service that the tool names, where the target names none, and for nothing without', async () => {
  const credential = await signing.asRole(gateway);
  expect(await whoIs(await sent(credential, 'http://127.0.0.1:8080/x', 'execute-api'), 'execute-api')).toBe(ofRole());
  await expect(sent(credential, 'http://127.0.0.1:8080/x')).rejects.toThrow(/for which service/);
});

it('has no credentials of a role that does not trust the platform', async () => {
  const Principal = { AWS: `arn:aws:iam::${iam.accountId}:root` };
  const trustPolicy = JSON.stringify({ Statement: { Effect: 'Allow', Principal, Action: 'sts:AssumeRole' } });
  const { arn: roleArn } = await iam.admin.createRole({ roleName: 'closed', trustPolicy });
  const closed = { ...gateway, definition: { ...gateway.definition, roleArn } };
  await expect(signing.asRole(closed)).rejects.toMatchObject({ code: 'AccessDeniedException' });
});

it.each([
  ['localhost:9000', 'http://localhost:9000/', true],
  ['127.0.0.1:9000', 'http://127.0.0.1:9000/', true],
  ['[::1]:9000', 'http://[::1]:9000/', true],
  ['10.0.0.1', 'http://10.0.0.1/', false],
  ['*.example.com', 'https://example.com/', false],
  ['*.example.com', 'https://.example.com/', false],
  ['*', 'https://example.com/', false],
])('hosts %s cover %s: %s', (host, url, covered) => {
  expect(URL.canParse(url) && coversHost({ hosts: [host] }, new URL(url))).toBe(covered);
});
