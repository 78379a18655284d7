import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type PrivateProvider,
  startPrivateProvider,
} from '../../packages/platform/src/kernel/auth/testing/private-provider.ts';
import { type Boto, botoOf, codeDefinition, python, readyRuntime } from '../support/boto3.ts';
import { selfSigned } from '../support/certificates.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const probe = join(import.meta.dirname, '../support/probe-agent');
const BUCKET = 'authorities';
let platform: TestPlatform;
let clients: Clients;
let boto: Boto;
let definition: object;
let provider: PrivateProvider;
let authorities: Record<'ours' | 'other' | 'leaf', { key: string; cert: string }>;

beforeAll(async () => {
  const [ours, other, leaf] = await Promise.all([
    selfSigned('subjectAltName=IP:127.0.0.1'),
    selfSigned(),
    selfSigned('basicConstraints=critical,CA:FALSE'),
  ]);
  authorities = { ours, other, leaf };
  provider = await startPrivateProvider(ours);
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  boto = botoOf(platform);
  definition = await codeDefinition(platform, clients, probe);
  await clients.s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
  const files = { 'ours.pem': ours.cert, 'other.pem': other.cert, 'leaf.pem': leaf.cert, 'text.pem': 'nothing' };
  for (const [Key, Body] of Object.entries(files))
    await clients.s3.send(new PutObjectCommand({ Bucket: BUCKET, Key, Body }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  provider?.close();
});

const create = (agentRuntimeName: string, certificateConfiguration?: object): [string, object] => [
  'CreateAgentRuntime',
  {
    agentRuntimeName,
    ...definition,
    authorizerConfiguration: {
      customJWTAuthorizer: {
        discoveryUrl: provider.discoveryUrl,
        allowedAudience: ['agents'],
        ...(certificateConfiguration ? { certificateConfigurations: [certificateConfiguration] } : {}),
      },
    },
  },
];
/** What names the secret of that name. */
async function inSecret(name: string, value: string): Promise<{ secretsManager: { secretArn: string } }> {
  const path = `/_platform/secrets/${name}`;
  const put = await signedFetch(platform, { method: 'PUT', path, content: { value } });
  expect(put.ok, await put.text()).toBe(true);
  const { arn: secretArn } = (await (await signedFetch(platform, { method: 'GET', path })).json()) as { arn: string };
  return { secretsManager: { secretArn } };
}
const at = (file: string) => ({ s3: { uri: `s3://${BUCKET}/${file}` } });

async function status(arn: string): Promise<number> {
  const answer = await fetch(`${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${provider.token}`,
      'x-amzn-bedrock-agentcore-runtime-session-id': randomUUID(),
      'content-type': 'application/json',
    },
    body: '{"do":"count"}',
  });
  await answer.arrayBuffer();
  return answer.status;
}

describe.skipIf(!python)('an identity provider with a private authority', () => {
  it('is believed by the runtime that names its authority, and by no other', async () => {
    const made = await boto.control(
      create('trusting', at('ours.pem')),
      create('plain'),
      create('misled', at('other.pem')),
    );
    const [trusting, plain, misled] = await Promise.all(made.map((one) => readyRuntime(boto, one)));
    expect(trusting.authorizerConfiguration.customJWTAuthorizer.certificateConfigurations).toEqual([at('ours.pem')]);
    expect(await status(trusting.agentRuntimeArn)).toBe(200);
    // What the first has learnt of the provider is nothing to the others.
    expect(await status(plain.agentRuntimeArn)).toBe(503);
    expect(await status(misled.agentRuntimeArn)).toBe(503);
    expect(await status(trusting.agentRuntimeArn)).toBe(200);
  });

  it('is believed by the authority that a secret holds, by whoever may read it', async () => {
    const certificate = await inSecret('AUTHORITY', authorities.ours.cert);
    const [made] = await boto.control(create('by_secret', certificate));
    if (!made) throw new Error('nothing was made');
    const runtime = await readyRuntime(boto, made);
    expect(runtime.authorizerConfiguration.customJWTAuthorizer.certificateConfigurations).toEqual([certificate]);
    expect(await status(runtime.agentRuntimeArn)).toBe(200);
    const own = [{ Effect: 'Allow' as const, Action: ['bedrock-agentcore:*', 's3:*', 'iam:PassRole'], Resource: '*' }];
    const { accessKeyId, secretAccessKey } = await newUser(platform, 'no-reader', own);
    const theirs = botoOf(platform, { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey });
    const [denied, control] = await theirs.control(create('theirs', certificate), create('theirs', at('ours.pem')));
    expect(denied?.error).toMatchObject({
      ...{ code: 'AccessDeniedException', message: expect.stringContaining('secretsmanager:GetSecretValue') },
    });
    expect(control?.error).toBeUndefined();
  });

  it('gives tokens to the credential provider that names its authority, by a bucket or a secret, and to no other', async () => {
    await boto.control(['CreateWorkloadIdentity', { name: 'assistant' }]);
    const [given] = await boto.data(['GetWorkloadAccessToken', { workloadName: 'assistant' }]);
    const configured = (name: string, certificate?: object): [string, object] => [
      'CreateOauth2CredentialProvider',
      {
        ...{ name, credentialProviderVendor: 'CustomOauth2' },
        oauth2ProviderConfigInput: {
          customOauth2ProviderConfig: {
            oauthDiscovery: { discoveryUrl: provider.discoveryUrl },
            ...{ clientId: 'ours', clientSecret: 'of-ours' },
            ...(certificate ? { certificateConfigurations: [certificate] } : {}),
          },
        },
      },
    ];
    const [certificate, other] = [
      await inSecret('PROVIDERS', authorities.ours.cert),
      await inSecret('OTHER', authorities.other.cert),
    ];
    const made = await boto.control(
      configured('by-bucket', at('ours.pem')),
      configured('by-secret', certificate),
      configured('without'),
      configured('misled', other),
    );
    expect(made.map(({ error }) => error)).toEqual(made.map(() => undefined));
    const shown = made[1]?.output.oauth2ProviderConfigOutput.customOauth2ProviderConfig;
    expect(shown.certificateConfigurations).toEqual([certificate]);
    const tokens = await boto.data(
      ...['by-bucket', 'by-secret', 'without', 'misled'].map((resourceCredentialProviderName): [string, object] => [
        'GetResourceOauth2Token',
        {
          ...{ workloadIdentityToken: given?.output.workloadAccessToken, resourceCredentialProviderName },
          ...{ scopes: ['read'], oauth2Flow: 'M2M' },
        },
      ]),
    );
    expect(tokens.map(({ output, error }) => output?.accessToken ?? error?.code)).toEqual([
      ...['of-the-private', 'of-the-private', 'ServiceUnavailableException', 'ServiceUnavailableException'],
    ]);
  });

  it('is refused by name where the authority cannot be had, or is none', async () => {
    const secretArn = 'arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf';
    const leaf = await inSecret('LEAF', authorities.leaf.cert);
    const refused = await boto.control(
      create('r', at('missing.pem')),
      create('r', at('text.pem')),
      create('r', at('leaf.pem')),
      create('r', { s3: { uri: `s3://${BUCKET}/ours.pem`, bucketOwnerAccountId: '999999999999' } }),
      create('r', leaf),
      create('r', { secretsManager: { secretArn } }),
    );
    const field = 'authorizerConfiguration.customJWTAuthorizer.certificateConfigurations[0]';
    expect(refused.map(({ error }) => [error?.code, ...(error?.fields ?? [])])).toEqual([
      ['ValidationException', `${field}.s3.uri`],
      ['ValidationException', `${field}.s3.uri`],
      ['ValidationException', `${field}.s3.uri`],
      ['ValidationException', `${field}.s3.uri`],
      ['ValidationException', `${field}.secretsManager.secretArn`],
      ['ResourceNotFoundException'],
    ]);
  });
});
