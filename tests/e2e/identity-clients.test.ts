import { GetResourceOauth2TokenCommand, GetWorkloadAccessTokenCommand } from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateOauth2CredentialProviderCommand,
  CreateWorkloadIdentityCommand,
  type CustomOauth2ProviderConfigInput,
} from '@aws-sdk/client-bedrock-agentcore-control';
import type { JWK } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ConsentProvider,
  startConsentProvider,
} from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newUser, setPolicy } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

let platform: TestPlatform;
let clients: Clients;
let workloadIdentityToken: string;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'worker' }));
  const issued = await clients.data.send(new GetWorkloadAccessTokenCommand({ workloadName: 'worker' }));
  workloadIdentityToken = issued.workloadAccessToken ?? '';
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

const admin = async <Answer>(method: string, path: string, content?: object): Promise<Answer> => {
  const answer = await signedFetch(platform, { method, path: `/_platform${path}`, ...(content && { content }) });
  expect(answer.ok, `${method} ${path}`).toBe(true);
  return (answer.status === 204 ? undefined : await answer.json()) as Answer;
};

const add = (name: string, config: Partial<CustomOauth2ProviderConfigInput>, of = clients) =>
  of.control.send(
    new CreateOauth2CredentialProviderCommand({
      ...{ name, credentialProviderVendor: 'CustomOauth2' },
      oauth2ProviderConfigInput: { customOauth2ProviderConfig: config as CustomOauth2ProviderConfigInput },
    }),
  );

/** A token of the agent itself. */
const machine = async (resourceCredentialProviderName: string, of = clients): Promise<string> => {
  const who = { workloadIdentityToken, resourceCredentialProviderName };
  const ask = new GetResourceOauth2TokenCommand({ ...who, scopes: ['read'], oauth2Flow: 'M2M' });
  return (await of.data.send(ask)).accessToken ?? '';
};

describe('a client that authenticates by a key of the platform', () => {
  it.each([
    ['RS256', 'RSA_2048', 'PS256'],
    ['PS256', 'RSA_2048', 'RS256'],
    ['ES256', 'ECC_NIST_P256', 'RS256'],
  ] as const)('signs by %s, which a real server verifies', async (signingAlgorithm, spec, other) => {
    const key = await admin<{ id: string; arn: string }>('POST', '/keys', { spec });
    const { jwk } = await admin<{ jwk: JWK }>('GET', `/keys/${key.id}/public-key`);
    // The server takes the key for that algorithm alone.
    const server = await startConsentProvider({
      clientKey: { ...jwk, kid: 'ours', alg: signingAlgorithm, use: 'sig' },
    });
    try {
      const config = (algorithm: typeof signingAlgorithm | typeof other) => ({
        oauthDiscovery: { discoveryUrl: server.discoveryUrl },
        clientId: server.clientId,
        clientAuthenticationMethod: 'PRIVATE_KEY_JWT' as const,
        privateKeyJwtConfig: {
          privateKeySource: { kmsKeySource: { kmsKeyArn: key.arn } },
          signingAlgorithm: algorithm,
          additionalHeaderClaims: { kid: 'ours' },
        },
      });
      await add(`signs-${signingAlgorithm}`, config(signingAlgorithm));
      expect(await machine(`signs-${signingAlgorithm}`)).toMatch(/^[\w-]+$/);
      const assertion = server.asked.at(-1)?.get('client_assertion') ?? '';
      const [header = ''] = assertion.split('.');
      expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toMatchObject({ alg: signingAlgorithm });
      // The control: by another algorithm the same server refuses, or the key does.
      const wrong = add(`wrong-${signingAlgorithm}`, config(other)).then(() => machine(`wrong-${signingAlgorithm}`));
      await expect(wrong).rejects.toMatchObject({ name: 'ValidationException' });
    } finally {
      await server.close();
    }
  });
});

describe('a client secret that stays where it is (EXTERNAL)', () => {
  let server: ConsentProvider;
  beforeAll(async () => {
    server = await startConsentProvider();
  });
  afterAll(() => server?.close());

  it('is read for each token, by who may read it', async () => {
    const put = (value: object) => admin('PUT', '/secrets/ORDERS', { value: JSON.stringify(value) });
    await put({ other: 'x', secret: server.clientSecret });
    const { arn: secretId } = await admin<{ arn: string }>('GET', '/secrets/ORDERS');
    const config = (jsonKey: string) => ({
      oauthDiscovery: { discoveryUrl: server.discoveryUrl },
      clientId: server.clientId,
      clientSecretSource: 'EXTERNAL' as const,
      clientSecretConfig: { secretId, jsonKey },
    });
    await add('external', config('secret'));
    expect(await server.isActive(await machine('external'))).toBe(true);
    await expect(add('none', config('nothing'))).rejects.toMatchObject({ name: 'ValidationException' });

    const own = [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }];
    const theirs = clientsOf(platform, { credentials: await newUser(platform, 'no-reader', own) });
    try {
      await expect(add('theirs', config('secret'), theirs)).rejects.toMatchObject({ name: 'AccessDeniedException' });
      // The control: who may read it.
      const read = { Effect: 'Allow', Action: 'secretsmanager:GetSecretValue', Resource: secretId };
      await setPolicy(platform, 'no-reader', [...own, read], 'users');
      await add('theirs', config('secret'), theirs);
      expect(await server.isActive(await machine('theirs', theirs))).toBe(true);
    } finally {
      theirs.close();
    }
  });
});
