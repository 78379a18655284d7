import { generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import {
  GetResourceApiKeyCommand,
  GetResourcePaymentTokenCommand,
  GetWorkloadAccessTokenCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateApiKeyCredentialProviderCommand,
  CreatePaymentCredentialProviderCommand,
  CreateWorkloadIdentityCommand,
  DeleteApiKeyCredentialProviderCommand,
  DeletePaymentCredentialProviderCommand,
  DeleteResourcePolicyCommand,
  DeleteWorkloadIdentityCommand,
  GetApiKeyCredentialProviderCommand,
  GetPaymentCredentialProviderCommand,
  GetResourcePolicyCommand,
  GetTokenVaultCommand,
  ListTagsForResourceCommand,
  PutResourcePolicyCommand,
  paginateListApiKeyCredentialProviders,
  paginateListPaymentCredentialProviders,
  SetTokenVaultCMKCommand,
  TagResourceCommand,
  UpdateApiKeyCredentialProviderCommand,
  UpdatePaymentCredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { p256 } from '@noble/curves/nist.js';
import canonicalize from 'canonicalize';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { botoOf, python } from '../support/boto3.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newUser, setPolicy } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const KEY = ['sk', 'of-a-provider'].join('-');
const WALLET = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const WALLET_SECRET = WALLET.privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64');
const API_SECRET = WALLET.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
let platform: TestPlatform;
let clients: Clients;
let token: string;
let home: string;

const admin = async (method: string, path: string, content?: object) => {
  const answer = await signedFetch(platform, { method, path: `/_platform${path}`, ...(content ? { content } : {}) });
  const text = await answer.text();
  expect(answer.ok, `${method} ${path}: ${text}`).toBe(true);
  return text === '' ? undefined : JSON.parse(text);
};
const workloadToken = async (workloadName: string): Promise<string> =>
  (await clients.data.send(new GetWorkloadAccessTokenCommand({ workloadName }))).workloadAccessToken ?? '';
const apiKey = (name: string, of = clients, workloadIdentityToken = token) =>
  of.data.send(new GetResourceApiKeyCommand({ workloadIdentityToken, resourceCredentialProviderName: name }));
/** What a JWT says that the wallet's key has signed by ES256. */
const claimsOf = (jwt: string): unknown => {
  const [head = '', body = '', signature = ''] = jwt.split('.');
  const key = { key: WALLET.publicKey, dsaEncoding: 'ieee-p1363' as const };
  expect(verify('sha256', Buffer.from(`${head}.${body}`), key, Buffer.from(signature, 'base64url'))).toBe(true);
  return JSON.parse(Buffer.from(body, 'base64url').toString());
};
/** A public key on P-256 as its point. */
const p256Point = (key: KeyObject): Uint8Array => {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return Uint8Array.from([4, ...Buffer.from(x, 'base64url'), ...Buffer.from(y, 'base64url')]);
};
const allow = (Action: string | string[], ...Resource: string[]) => ({ Effect: 'Allow', Action, Resource });

beforeAll(async () => {
  platform = await startTestPlatform();
  clients = clientsOf(platform);
  const { region, accountId } = platform.ready;
  home = `arn:aws:bedrock-agentcore:${region}:${accountId}`;
  await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'worker' }));
  token = await workloadToken('worker');
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

describe('API key providers, by the AWS SDK', () => {
  it('are made, shown without their keys, tagged, changed, listed and deleted', async () => {
    const name = 'search-1';
    const made = await clients.control.send(
      new CreateApiKeyCredentialProviderCommand({ name, apiKey: KEY, tags: { team: 'red' } }),
    );
    const resourceArn = `${home}:token-vault/default/apikeycredentialprovider/${name}`;
    const secret = {
      secretArn: expect.stringMatching(/^arn:aws:secretsmanager:[a-z0-9-]+:\d{12}:secret:[a-zA-Z0-9-_/+=.@!]+$/),
    };
    const shown = { name, credentialProviderArn: resourceArn, apiKeySecretArn: secret, apiKeySecretSource: 'MANAGED' };
    expect(made).toMatchObject(shown);
    const found = await clients.control.send(new GetApiKeyCredentialProviderCommand({ name }));
    expect(found).toMatchObject({ ...shown, createdTime: expect.any(Date), lastUpdatedTime: found.createdTime });
    expect(JSON.stringify([made, found])).not.toContain(KEY);
    await clients.control.send(new TagResourceCommand({ resourceArn, tags: { size: 'l' } }));
    const { tags } = await clients.control.send(new ListTagsForResourceCommand({ resourceArn }));
    expect(tags).toEqual({ team: 'red', size: 'l' });
    const again = clients.control.send(new CreateApiKeyCredentialProviderCommand({ name, apiKey: KEY }));
    await expect(again).rejects.toMatchObject({ name: 'ConflictException' });
    expect((await apiKey(name)).apiKey).toBe(KEY);

    const changed = await clients.control.send(new UpdateApiKeyCredentialProviderCommand({ name, apiKey: `${KEY}-2` }));
    expect(changed.lastUpdatedTime?.getTime()).toBeGreaterThanOrEqual(found.createdTime?.getTime() ?? 0);
    expect((await apiKey(name)).apiKey).toBe(`${KEY}-2`);
    await clients.control.send(new CreateApiKeyCredentialProviderCommand({ name: 'search-2', apiKey: KEY }));
    const names: (string | undefined)[] = [];
    for await (const page of paginateListApiKeyCredentialProviders({ client: clients.control, pageSize: 1 }, {}))
      names.push(...(page.credentialProviders ?? []).map((one) => one.name));
    expect(names).toEqual(['search-1', 'search-2']);
    await clients.control.send(new DeleteApiKeyCredentialProviderCommand({ name: 'search-2' }));
    await expect(apiKey('search-2')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('are refused with what is not whole, by the name of the member', async () => {
    const create = (members: object) =>
      clients.control.send(new CreateApiKeyCredentialProviderCommand({ name: 'wrong', ...members }));
    const config = { secretId: 'NONE', jsonKey: 'key' };
    const wrong: [object, string][] = [
      [{}, 'ValidationException'],
      [{ apiKey: '' }, 'ValidationException'],
      [{ apiKey: KEY, apiKeySecretSource: 'EXTERNAL', apiKeySecretConfig: config }, 'ValidationException'],
      [{ apiKeySecretSource: 'EXTERNAL' }, 'ValidationException'],
      [{ apiKey: KEY, apiKeySecretConfig: config }, 'ValidationException'],
      [{ name: 'no space', apiKey: KEY }, 'ValidationException'],
      [{ apiKey: 'x'.repeat(65_537) }, 'ValidationException'],
      [{ apiKeySecretSource: 'EXTERNAL', apiKeySecretConfig: config }, 'ResourceNotFoundException'],
    ];
    for (const [members, name] of wrong) {
      const refused = create(members);
      await expect(refused, JSON.stringify(members).slice(0, 99)).rejects.toMatchObject({ name });
      await expect(refused).rejects.not.toThrow(KEY);
    }
    const none = new UpdateApiKeyCredentialProviderCommand({ name: 'wrong', apiKey: KEY });
    await expect(clients.control.send(none)).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('give their keys to a workload of the account, through a caller with the right to all three', async () => {
    const provider = `${home}:token-vault/default/apikeycredentialprovider/search-1`;
    const workload = `${home}:workload-identity-directory/default/workload-identity/worker`;
    const vault = `${home}:token-vault/default`;
    const all = [provider, workload, vault];
    const credentials = await newUser(platform, 'agent-host', [allow('bedrock-agentcore:GetResourceApiKey', ...all)]);
    const theirs = clientsOf(platform, { credentials });
    const DENIED = { name: 'AccessDeniedException' };
    try {
      expect((await apiKey('search-1', theirs)).apiKey).toBe(`${KEY}-2`);
      for (const missing of all) {
        const rest = all.filter((arn) => arn !== missing);
        await setPolicy(platform, 'agent-host', [allow('bedrock-agentcore:GetResourceApiKey', ...rest)], 'users');
        await expect(apiKey('search-1', theirs), missing).rejects.toMatchObject(DENIED);
        const statements = [
          allow('bedrock-agentcore:GetResourceApiKey', '*'),
          { Effect: 'Deny', Action: 'bedrock-agentcore:GetResourceApiKey', Resource: missing },
        ];
        await setPolicy(platform, 'agent-host', statements, 'users');
        await expect(apiKey('search-1', theirs), missing).rejects.toMatchObject(DENIED);
      }
      await setPolicy(platform, 'agent-host', [allow('bedrock-agentcore:GetResourceApiKey', ...all)], 'users');
      await expect(apiKey('other', theirs)).rejects.toMatchObject(DENIED);

      // A policy on the provider, and one on the vault.
      const deny = (resource: string) => ({
        Version: '2012-10-17',
        Statement: [
          { Effect: 'Deny', Principal: '*', Action: 'bedrock-agentcore:GetResourceApiKey', Resource: resource },
        ],
      });
      for (const resourceArn of [provider, vault]) {
        await clients.control.send(
          new PutResourcePolicyCommand({ resourceArn, policy: JSON.stringify(deny(resourceArn)) }),
        );
        expect((await clients.control.send(new GetResourcePolicyCommand({ resourceArn }))).policy).toContain(
          resourceArn,
        );
        await expect(apiKey('search-1', theirs), resourceArn).rejects.toMatchObject(DENIED);
        await expect(apiKey('search-1'), resourceArn).rejects.toMatchObject(DENIED);
        await clients.control.send(new DeleteResourcePolicyCommand({ resourceArn }));
      }
      expect((await apiKey('search-1', theirs)).apiKey).toBe(`${KEY}-2`);
      await clients.control.send(new TagResourceCommand({ resourceArn: vault, tags: { team: 'blue' } }));
      const { tags } = await clients.control.send(new ListTagsForResourceCommand({ resourceArn: vault }));
      expect(tags).toEqual({ team: 'blue' });
    } finally {
      theirs.close();
    }

    await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'gone' }));
    const late = await workloadToken('gone');
    expect((await apiKey('search-1', clients, late)).apiKey).toBe(`${KEY}-2`);
    await clients.control.send(new DeleteWorkloadIdentityCommand({ name: 'gone' }));
    for (const none of [late, 'no-token', `${token}x`, token.slice(0, -1)])
      await expect(apiKey('search-1', clients, none)).rejects.toMatchObject({ name: 'UnauthorizedException' });
  });

  it('read a secret with an ARN of its own as their caller, when they are made and when they are used', async () => {
    await admin('PUT', '/secrets/SHARED', { value: JSON.stringify({ key: KEY, number: 7 }) });
    const { arn } = await admin('GET', '/secrets/SHARED');
    const external = (secretId: string, jsonKey: string) => ({
      apiKeySecretSource: 'EXTERNAL' as const,
      apiKeySecretConfig: { secretId, jsonKey },
    });
    const create = (of: Clients, name: string, secretId = arn, jsonKey = 'key') =>
      of.control.send(new CreateApiKeyCredentialProviderCommand({ name, ...external(secretId, jsonKey) }));
    const credentials = await newUser(platform, 'outsider', [allow('bedrock-agentcore:*', '*')]);
    const theirs = clientsOf(platform, { credentials });
    const DENIED = { name: 'AccessDeniedException', message: expect.stringContaining('secretsmanager:GetSecretValue') };
    try {
      await expect(create(theirs, 'outside')).rejects.toMatchObject(DENIED);
      expect(await create(clients, 'outside')).toMatchObject({
        apiKeySecretArn: { secretArn: arn },
        apiKeySecretSource: 'EXTERNAL',
        apiKeySecretJsonKey: 'key',
      });
      expect((await apiKey('outside')).apiKey).toBe(KEY);
      await expect(apiKey('outside', theirs)).rejects.toMatchObject(DENIED);
      const rights = [allow('bedrock-agentcore:*', '*'), allow('secretsmanager:GetSecretValue', arn)];
      await setPolicy(platform, 'outsider', rights, 'users');
      expect((await apiKey('outside', theirs)).apiKey).toBe(KEY);
      for (const jsonKey of ['none', 'number'])
        await expect(create(theirs, 'outside-2', arn, jsonKey)).rejects.toMatchObject({ name: 'ValidationException' });
      await create(theirs, 'by-name', 'SHARED');
      await admin('PUT', '/secrets/SHARED', { value: JSON.stringify({ key: `${KEY}-new` }) });
      expect((await apiKey('by-name', theirs)).apiKey).toBe(`${KEY}-new`);
      await admin('DELETE', '/secrets/SHARED');
      await expect(apiKey('outside')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    } finally {
      theirs.close();
    }
  });
});

describe('the token vault, by the AWS SDK and boto3', () => {
  it('is under the platform’s key or one of the account, and is reset once that is deleted', async () => {
    const get = () => clients.control.send(new GetTokenVaultCommand({}));
    const set = (
      kmsConfiguration: { keyType: 'CustomerManagedKey' | 'ServiceManagedKey'; kmsKeyArn?: string },
      of = clients,
    ) => of.control.send(new SetTokenVaultCMKCommand({ tokenVaultId: 'default', kmsConfiguration }));
    const reset = async () => {
      const answer = await signedFetch(platform, {
        method: 'POST',
        path: '/identities/reset-token-vault-key-material',
        content: { tokenVaultId: 'default' },
      });
      return { status: answer.status, text: await answer.text() };
    };
    expect(await get()).toMatchObject({ tokenVaultId: 'default', kmsConfiguration: { keyType: 'ServiceManagedKey' } });
    const key = await admin('POST', '/keys', { spec: 'SYMMETRIC_DEFAULT', description: 'of the vault' });
    const signing = await admin('POST', '/keys', { spec: 'RSA_2048' });
    const customer = (kmsKeyArn: string) => ({ keyType: 'CustomerManagedKey' as const, kmsKeyArn });
    const REFUSED = { name: 'ValidationException' };
    await expect(set({ keyType: 'CustomerManagedKey' })).rejects.toMatchObject(REFUSED);
    await expect(set({ keyType: 'ServiceManagedKey', kmsKeyArn: key.arn })).rejects.toMatchObject(REFUSED);
    await expect(set(customer(signing.arn))).rejects.toMatchObject(REFUSED);
    await expect(set(customer(`${key.arn.slice(0, -4)}0000`))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    const other = new GetTokenVaultCommand({ tokenVaultId: 'other' });
    await expect(clients.control.send(other)).rejects.toMatchObject({ name: 'ResourceNotFoundException' });

    const credentials = await newUser(platform, 'vault-admin', [allow('bedrock-agentcore:*', '*')]);
    const theirs = clientsOf(platform, { credentials });
    await expect(set(customer(key.arn), theirs)).rejects.toMatchObject({ name: 'AccessDeniedException' });
    await setPolicy(
      platform,
      'vault-admin',
      [allow('bedrock-agentcore:*', '*'), allow(['kms:Encrypt', 'kms:Decrypt'], key.arn)],
      'users',
    );
    expect(await set(customer(key.arn), theirs)).toMatchObject({ kmsConfiguration: customer(key.arn) });
    theirs.close();
    expect(await get()).toMatchObject({ kmsConfiguration: customer(key.arn) });

    await admin('POST', `/keys/${key.id}/disable`);
    await expect(set({ keyType: 'ServiceManagedKey' })).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('is disabled'),
    });
    expect(await reset()).toMatchObject({ status: 400, text: expect.stringMatching(/still exists \(Disabled\)/) });
    await admin('POST', `/keys/${key.id}/schedule-deletion`, { days: 7 });
    expect(await reset()).toMatchObject({ status: 400, text: expect.stringMatching(/PendingDeletion/) });
    await admin('POST', `/keys/${key.id}/schedule-deletion`, { days: 0 });
    await expect(set({ keyType: 'ServiceManagedKey' })).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('ResetTokenVaultKeyMaterial'),
    });
    // Providers and their secrets are not under it.
    expect((await apiKey('search-1')).apiKey).toBe(`${KEY}-2`);
    expect(await reset()).toMatchObject({ status: 200, text: expect.stringContaining('ServiceManagedKey') });
    expect(await reset()).toMatchObject({ status: 400, text: expect.stringContaining('no customer managed key') });
    expect(await get()).toMatchObject({ kmsConfiguration: { keyType: 'ServiceManagedKey' } });
    expect((await apiKey('search-1')).apiKey).toBe(`${KEY}-2`);
  });

  it('and the master key rotates while credentials are given out', async () => {
    let stop = false;
    let asked = 0;
    const asking = (async () => {
      for (; !stop; asked++) expect((await apiKey('search-1')).apiKey).toBe(`${KEY}-2`);
    })();
    for (let round = 0; round < 3; round++)
      expect(await admin('POST', '/master-key/rotate')).toMatchObject({
        keyId: expect.any(String),
        keysKept: false,
      });
    stop = true;
    await asking;
    expect(asked).toBeGreaterThan(0);
    const credentials = await newUser(platform, 'no-rotator', [allow(['bedrock-agentcore:*', 'kms:*'], '*')]);
    const refused = await signedFetch(platform, { method: 'POST', path: '/_platform/master-key/rotate', credentials });
    expect(refused.status).toBe(403);
  });
});

describe('payment providers, by the AWS SDK', () => {
  it('are made, shown without their secrets, changed, listed and deleted, and sign for one request', async () => {
    const coinbase = { apiKeyId: 'key-1', apiKeySecret: API_SECRET, walletSecret: WALLET_SECRET };
    const name = 'wallets';
    const create = (members: object) =>
      clients.control.send(
        new CreatePaymentCredentialProviderCommand({
          name,
          credentialProviderVendor: 'CoinbaseCDP',
          providerConfigurationInput: { coinbaseCdpConfiguration: coinbase },
          tags: { team: 'red' },
          ...members,
        }),
      );
    await expect(create({ credentialProviderVendor: 'StripePrivy' })).rejects.toMatchObject({
      name: 'ValidationException',
    });
    const made = await create({});
    const found = await clients.control.send(new GetPaymentCredentialProviderCommand({ name }));
    expect(found).toMatchObject({
      name,
      credentialProviderVendor: 'CoinbaseCDP',
      credentialProviderArn: `${home}:token-vault/default/paymentcredentialprovider/${name}`,
      providerConfigurationOutput: made.providerConfigurationOutput,
      tags: { team: 'red' },
    });
    expect(JSON.stringify([made, found])).not.toContain(WALLET_SECRET);
    const ask = (requestPath: string) =>
      clients.data.send(
        new GetResourcePaymentTokenCommand({
          workloadIdentityToken: token,
          resourceCredentialProviderName: name,
          paymentTokenRequest: {
            coinbaseCdpTokenRequest: {
              requestMethod: 'POST',
              requestPath,
              requestBody: '{"a":1}',
              includeWalletAuthToken: true,
            },
          },
        }),
      );
    const { coinbaseCdpTokenResponse: tokens } = (await ask('/v2/x')).paymentTokenResponse ?? {};
    for (const one of [tokens?.bearerToken ?? '', tokens?.walletAuthToken ?? '']) {
      expect(claimsOf(one)).toMatchObject({ uris: ['POST api.cdp.coinbase.com/v2/x'] });
    }
    const update = (credentialProviderVendor: 'CoinbaseCDP' | 'StripePrivy', providerConfigurationInput: object) =>
      clients.control.send(
        new UpdatePaymentCredentialProviderCommand({
          name,
          credentialProviderVendor,
          providerConfigurationInput: providerConfigurationInput as never,
        }),
      );
    const privy = { appId: 'app', appSecret: 'x', authorizationId: 'y', authorizationPrivateKey: WALLET_SECRET };
    await expect(update('StripePrivy', { stripePrivyConfiguration: privy })).rejects.toMatchObject({
      name: 'ValidationException',
    });
    // What is not given again is kept.
    await update('CoinbaseCDP', { coinbaseCdpConfiguration: { apiKeyId: 'key-2' } });
    const second = (await ask('/v2/x')).paymentTokenResponse?.coinbaseCdpTokenResponse?.bearerToken ?? '';
    expect(claimsOf(second)).toMatchObject({ sub: 'key-2' });

    const stripe = { stripePrivyConfiguration: privy };
    await create({ name: 'privy', credentialProviderVendor: 'StripePrivy', providerConfigurationInput: stripe });
    const names: (string | undefined)[] = [];
    for await (const page of paginateListPaymentCredentialProviders({ client: clients.control, pageSize: 1 }, {}))
      names.push(...(page.credentialProviders ?? []).map((one) => `${one.name} ${one.credentialProviderVendor}`));
    expect(names).toEqual(['wallets CoinbaseCDP', 'privy StripePrivy']);
    await clients.control.send(new DeletePaymentCredentialProviderCommand({ name }));
    await expect(ask('/v2/x')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('read secrets with an ARN of their own as their caller, and sign with them for both vendors', async () => {
    const kept = { app: 'secret-of-the-app', signing: `wallet-auth:${WALLET_SECRET}`, key: API_SECRET };
    await admin('PUT', '/secrets/PAYMENTS', { value: JSON.stringify(kept) });
    const { arn: secretId } = await admin('GET', '/secrets/PAYMENTS');
    const external = <Name extends string>(name: Name, jsonKey: keyof typeof kept) =>
      ({ [`${name}Source`]: 'EXTERNAL', [`${name}Config`]: { secretId, jsonKey } }) as {
        [Key in `${Name}Source`]: 'EXTERNAL';
      } & { [Key in `${Name}Config`]: { secretId: string; jsonKey: string } };
    const configurations = {
      StripePrivy: {
        stripePrivyConfiguration: {
          ...{ appId: 'app', authorizationId: 'quorum' },
          ...external('appSecret', 'app'),
          ...external('authorizationPrivateKey', 'signing'),
        },
      },
      CoinbaseCDP: { coinbaseCdpConfiguration: { apiKeyId: 'key-1', ...external('apiKeySecret', 'key') } },
    };
    type Vendor = keyof typeof configurations;
    const create = (of: Clients, credentialProviderVendor: Vendor) =>
      of.control.send(
        new CreatePaymentCredentialProviderCommand({
          ...{ name: `external-${credentialProviderVendor}`, credentialProviderVendor },
          providerConfigurationInput: configurations[credentialProviderVendor],
        }),
      );
    const body = { amount: 3, to: '0x1' };
    const requests = {
      StripePrivy: {
        stripePrivyTokenRequest: {
          ...{ requestPath: '/v1/wallets/w/rpc', requestBody: JSON.stringify(body) },
          includeAuthorizationSignature: true,
        },
      },
      CoinbaseCDP: { coinbaseCdpTokenRequest: { requestMethod: 'GET' as const, requestPath: '/v2/x' } },
    };
    const ask = async (of: Clients, vendor: Vendor) => {
      const paymentTokenRequest = requests[vendor];
      const resourceCredentialProviderName = `external-${vendor}`;
      const asked = { workloadIdentityToken: token, resourceCredentialProviderName, paymentTokenRequest };
      return (await of.data.send(new GetResourcePaymentTokenCommand(asked))).paymentTokenResponse;
    };
    const credentials = await newUser(platform, 'payer', [allow('bedrock-agentcore:*', '*')]);
    const theirs = clientsOf(platform, { credentials });
    const DENIED = { name: 'AccessDeniedException', message: expect.stringContaining('secretsmanager:GetSecretValue') };
    try {
      for (const vendor of ['StripePrivy', 'CoinbaseCDP'] as const) {
        await expect(create(theirs, vendor)).rejects.toMatchObject(DENIED);
        const { providerConfigurationOutput } = await create(clients, vendor);
        const shown = JSON.stringify(providerConfigurationOutput);
        expect(shown).toContain(secretId);
        for (const secret of Object.values(kept)) expect(shown).not.toContain(secret);
        await expect(ask(theirs, vendor)).rejects.toMatchObject(DENIED);
      }
      await setPolicy(
        platform,
        'payer',
        [allow('bedrock-agentcore:*', '*'), allow('secretsmanager:GetSecretValue', secretId)],
        'users',
      );
      const { coinbaseCdpTokenResponse } = (await ask(theirs, 'CoinbaseCDP')) ?? {};
      expect(claimsOf(coinbaseCdpTokenResponse?.bearerToken ?? '')).toMatchObject({ sub: 'key-1' });

      const privy = (await ask(theirs, 'StripePrivy'))?.stripePrivyTokenResponse;
      expect(Buffer.from(privy?.basicAuthToken ?? '', 'base64').toString()).toBe(`app:${kept.app}`);
      // As the vendor's guide has it: version, method, URL, body and headers, in canonical JSON.
      const signed = (sent: object): boolean => {
        const headers = { 'privy-app-id': 'app', 'privy-request-expiry': String(privy?.requestExpiry?.valueOf()) };
        const url = 'https://api.privy.io/v1/wallets/w/rpc';
        const message = canonicalize({ version: 1, method: 'POST', url, body: sent, headers }) ?? '';
        const key = p256Point(WALLET.publicKey);
        const signature = Buffer.from(privy?.authorizationSignature ?? '', 'base64');
        return p256.verify(signature, Buffer.from(message), key, { format: 'der', lowS: false });
      };
      expect(signed({ ...body, amount: 4 })).toBe(false);
      expect(signed(body)).toBe(true);

      // What the secret holds now counts, and one that is gone is said to be.
      await admin('PUT', '/secrets/PAYMENTS', { value: JSON.stringify({ ...kept, app: 'another' }) });
      const changed = (await ask(theirs, 'StripePrivy'))?.stripePrivyTokenResponse;
      expect(Buffer.from(changed?.basicAuthToken ?? '', 'base64').toString()).toBe('app:another');
      await admin('DELETE', '/secrets/PAYMENTS');
      await expect(ask(theirs, 'StripePrivy')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    } finally {
      theirs.close();
    }
  });
});

describe.skipIf(!python)('by boto3', () => {
  it('each operation answers as it does to the SDK', async () => {
    const boto = botoOf(platform);
    const key = await admin('POST', '/keys', { spec: 'SYMMETRIC_DEFAULT' });
    const name = 'by-boto3';
    const coinbase = { apiKeyId: 'k', apiKeySecret: API_SECRET, walletSecret: WALLET_SECRET };
    const payment = {
      name,
      credentialProviderVendor: 'CoinbaseCDP',
      providerConfigurationInput: { coinbaseCdpConfiguration: coinbase },
    };
    const customer = { keyType: 'CustomerManagedKey', kmsKeyArn: key.arn };
    const made = await boto.control(
      ['CreateApiKeyCredentialProvider', { name, apiKey: KEY, tags: { a: 'b' } }],
      ['GetApiKeyCredentialProvider', { name }],
      ['UpdateApiKeyCredentialProvider', { name, apiKey: `${KEY}-3` }],
      ['ListApiKeyCredentialProviders', { maxResults: 100 }],
      ['CreatePaymentCredentialProvider', payment],
      ['GetPaymentCredentialProvider', { name }],
      ['UpdatePaymentCredentialProvider', payment],
      ['ListPaymentCredentialProviders', {}],
      ['GetTokenVault', {}],
      ['SetTokenVaultCMK', { kmsConfiguration: customer }],
      ['ResetTokenVaultKeyMaterial', { tokenVaultId: 'default' }],
    );
    const failed = made.flatMap(({ error }) => error ?? []);
    expect(failed).toEqual([expect.objectContaining({ code: 'ValidationException' })]);
    expect(made[9]?.output).toMatchObject({ kmsConfiguration: customer });
    await admin('POST', `/keys/${key.id}/schedule-deletion`, { days: 0 });
    const given = await boto.data(
      ['GetResourceApiKey', { workloadIdentityToken: token, resourceCredentialProviderName: name }],
      [
        'GetResourcePaymentToken',
        {
          workloadIdentityToken: token,
          resourceCredentialProviderName: name,
          paymentTokenRequest: { coinbaseCdpTokenRequest: { requestMethod: 'GET', requestPath: '/v2/x' } },
        },
      ],
    );
    expect(given[0]?.output).toEqual({ apiKey: `${KEY}-3` });
    expect(given[1]?.output.paymentTokenResponse.coinbaseCdpTokenResponse.bearerToken).toMatch(/^ey/);
    const ended = await boto.control(
      ['ResetTokenVaultKeyMaterial', { tokenVaultId: 'default' }],
      ['DeleteApiKeyCredentialProvider', { name }],
      ['DeletePaymentCredentialProvider', { name }],
      ['GetApiKeyCredentialProvider', { name }],
    );
    expect(ended[0]?.output).toMatchObject({ kmsConfiguration: { keyType: 'ServiceManagedKey' } });
    expect(ended.slice(1).map(({ error }) => error?.code)).toEqual([undefined, undefined, 'ResourceNotFoundException']);
    expect(JSON.stringify([made, ended])).not.toContain(KEY);
  });
});
