import {
  CompleteResourceTokenAuthCommand,
  GetResourceOauth2TokenCommand,
  type GetResourceOauth2TokenCommandInput,
  GetWorkloadAccessTokenForJWTCommand,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateOauth2CredentialProviderCommand,
  CreateWorkloadIdentityCommand,
  DeleteOauth2CredentialProviderCommand,
  GetOauth2CredentialProviderCommand,
  ListOauth2CredentialProvidersCommand,
  UpdateOauth2CredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browser, fieldsOf } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { botoOf, python } from '../support/boto3.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider } from '../support/consent-platform.ts';
import { newUser, setPolicy } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

/** What a JSON Web Token says. */
const decodeJwt = (token: string): unknown =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

const BACK = 'https://app.example/back?tab=1';
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'orders', {
    grantType: 'TOKEN_EXCHANGE',
    tokenExchangeGrantTypeConfig: { actorTokenContent: 'M2M', actorTokenScopes: ['read'] },
  });
  await clients.control.send(
    new CreateWorkloadIdentityCommand({ name: 'assistant', allowedResourceOauth2ReturnUrls: [BACK] }),
  );
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
});

const tokenFor = async (userId: string, workloadName = 'assistant'): Promise<string> => {
  const command = new GetWorkloadAccessTokenForUserIdCommand({ workloadName, userId });
  return (await clients.data.send(command)).workloadAccessToken ?? '';
};

const ask = async (userId: string, more: Partial<GetResourceOauth2TokenCommandInput> = {}) =>
  clients.data.send(
    new GetResourceOauth2TokenCommand({
      workloadIdentityToken: await tokenFor(userId),
      resourceCredentialProviderName: 'orders',
      scopes: ['openid', 'offline_access', 'read'],
      oauth2Flow: 'USER_FEDERATION',
      customParameters: { login_hint: userId, prompt: 'login' },
      ...more,
    }),
  );

describe('OAuth2 providers, by the AWS SDK', () => {
  it('are made, shown without their secret, listed and deleted', async () => {
    const name = 'drive';
    const made = await clients.control.send(
      new CreateOauth2CredentialProviderCommand({
        name,
        credentialProviderVendor: 'GithubOauth2',
        oauth2ProviderConfigInput: { githubOauth2ProviderConfig: { clientId: 'id', clientSecret: 'canary-4711' } },
        tags: { team: 'red' },
      }),
    );
    expect(made).toMatchObject({
      name,
      credentialProviderArn: expect.stringMatching(/:token-vault\/default\/oauth2credentialprovider\/drive$/),
      callbackUrl: expect.stringMatching(/^http:\/\/[^/]+\/identities\/oauth2\/callback\/[0-9a-f-]{36}$/),
      clientSecretArn: { secretArn: expect.stringContaining('secretsmanager') },
      status: 'READY',
    });
    const found = await clients.control.send(new GetOauth2CredentialProviderCommand({ name }));
    expect(found).toMatchObject({
      credentialProviderVendor: 'GithubOauth2',
      callbackUrl: made.callbackUrl,
      oauth2ProviderConfigOutput: {
        githubOauth2ProviderConfig: {
          clientId: 'id',
          oauthDiscovery: {
            authorizationServerMetadata: { tokenEndpoint: 'https://github.com/login/oauth/access_token' },
          },
        },
      },
    });
    expect(JSON.stringify([made, found])).not.toContain('canary-4711');
    const { credentialProviders } = await clients.control.send(new ListOauth2CredentialProvidersCommand({}));
    expect(credentialProviders?.map((one) => one.name)).toEqual(['orders', name]);
    await clients.control.send(new DeleteOauth2CredentialProviderCommand({ name }));
    const gone = clients.control.send(new GetOauth2CredentialProviderCommand({ name }));
    await expect(gone).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });
});

describe('who changes an OAuth2 provider', () => {
  const configured = (tokenEndpoint: string, more: object = {}) => ({
    credentialProviderVendor: 'CustomOauth2' as const,
    oauth2ProviderConfigInput: {
      customOauth2ProviderConfig: {
        oauthDiscovery: {
          authorizationServerMetadata: {
            ...{ issuer: 'https://id.example', authorizationEndpoint: 'https://id.example/a', tokenEndpoint },
          },
        },
        clientId: 'client',
        ...more,
      },
    },
  });

  it('sends a secret that he does not know to no server of his', async () => {
    const name = 'kept';
    const create = configured('https://id.example/t', { clientSecret: 'the secret of the owner' });
    await clients.control.send(new CreateOauth2CredentialProviderCommand({ name, ...create }));
    const elsewhere = (more: object = {}) =>
      clients.control.send(
        new UpdateOauth2CredentialProviderCommand({ name, ...configured('https://mallory.example/t', more) }),
      );
    await expect(elsewhere()).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringMatching(/clientSecret.*must be given again/),
    });
    const shown = await clients.control.send(new GetOauth2CredentialProviderCommand({ name }));
    expect(JSON.stringify(shown.oauth2ProviderConfigOutput)).not.toContain('mallory');
    // The controls: with a secret of his own, and without another server.
    await elsewhere({ clientSecret: 'his own' });
    await clients.control.send(
      new UpdateOauth2CredentialProviderCommand({
        name,
        ...configured('https://mallory.example/t', { clientId: 'c2' }),
      }),
    );
    await clients.control.send(new DeleteOauth2CredentialProviderCommand({ name }));
  });

  it('has no key sign that he may not use himself, nor for a server of his choice', async () => {
    const made = await signedFetch(platform, {
      ...{ method: 'POST', path: '/_platform/keys' },
      content: { spec: 'ECC_NIST_P256' },
    });
    const { arn: kmsKeyArn } = (await made.json()) as { arn: string };
    const own = [{ Effect: 'Allow' as const, Action: 'bedrock-agentcore:*', Resource: '*' }];
    const theirs = clientsOf(platform, { credentials: await newUser(platform, 'no-signer', own) });
    const signing = (claims?: Record<string, string>) =>
      new CreateOauth2CredentialProviderCommand({
        name: 'signed',
        ...configured('https://id.example/t', {
          clientAuthenticationMethod: 'PRIVATE_KEY_JWT',
          privateKeyJwtConfig: {
            ...{ privateKeySource: { kmsKeySource: { kmsKeyArn } }, signingAlgorithm: 'ES256' },
            ...(claims && { additionalPayloadClaims: claims }),
          },
        }),
      });
    try {
      await expect(theirs.control.send(signing())).rejects.toMatchObject({
        name: 'AccessDeniedException',
        message: expect.stringContaining('kms:Sign'),
      });
      await expect(clients.control.send(signing({ aud: 'https://victim.example' }))).rejects.toMatchObject({
        name: 'ValidationException',
        message: expect.stringContaining('aud'),
      });
      // The control: who may use the key.
      await setPolicy(
        platform,
        'no-signer',
        [...own, { Effect: 'Allow', Action: 'kms:Sign', Resource: kmsKeyArn }],
        'users',
      );
      await theirs.control.send(signing());
      await clients.control.send(new DeleteOauth2CredentialProviderCommand({ name: 'signed' }));
    } finally {
      theirs.close();
    }
  });
});

describe('tokens of other services, by the AWS SDK', () => {
  it('of the agent itself come in one round trip, once for many', async () => {
    const machine = () => ask('ada', { oauth2Flow: 'M2M', scopes: ['read'], customParameters: {} });
    const before = provider.asked.length;
    const [first, ...more] = await Promise.all(Array.from({ length: 20 }, machine));
    expect(first?.accessToken).toMatch(/^[\w-]+$/);
    for (const one of [...more, await machine()]) expect(one.accessToken).toBe(first?.accessToken);
    expect(provider.asked.length).toBe(before + 1);
  });

  it('are asked for in the words of the agent beside those of the platform, which a person reads first', async () => {
    const begin = (customParameters: Record<string, string>) =>
      ask('words', { resourceOauth2ReturnUrl: BACK, audiences: ['urn:stock'], customParameters });
    for (const name of ['redirect_uri', 'state', 'client_id', 'code_challenge', 'response_type', 'scope'])
      await expect(begin({ [name]: 'https://mallory.example/' })).rejects.toMatchObject({
        ...{ name: 'ValidationException', message: expect.stringContaining(`customParameters.${name}`) },
      });
    const { authorizationUrl = '' } = await begin({ login_hint: 'words', claims: '{"userinfo":null}' });
    const page = await (await new Browser().send(authorizationUrl)).text();
    for (const told of ['urn:stock', 'login_hint', 'claims', '{&quot;userinfo&quot;:null}'])
      expect(page).toContain(told);
  });

  it('are given to nobody who may not use the secret of their provider, though they are at hand', async () => {
    await signedFetch(platform, {
      ...{ method: 'PUT', path: '/_platform/secrets/CLIENT' },
      content: { value: JSON.stringify({ key: provider.clientSecret }) },
    });
    await clients.control.send(
      new CreateOauth2CredentialProviderCommand({
        name: 'outside',
        credentialProviderVendor: 'CustomOauth2',
        oauth2ProviderConfigInput: {
          customOauth2ProviderConfig: {
            oauthDiscovery: { discoveryUrl: provider.discoveryUrl },
            clientId: provider.clientId,
            clientSecretSource: 'EXTERNAL',
            clientSecretConfig: { secretId: 'CLIENT', jsonKey: 'key' },
          },
        },
      }),
    );
    const own = [{ Effect: 'Allow' as const, Action: 'bedrock-agentcore:*', Resource: '*' }];
    const theirs = clientsOf(platform, { credentials: await newUser(platform, 'no-reader', own) });
    const machine = async (of: Clients) =>
      of.data.send(
        new GetResourceOauth2TokenCommand({
          ...{ workloadIdentityToken: await tokenFor('ada'), resourceCredentialProviderName: 'outside' },
          ...{ scopes: ['read'], oauth2Flow: 'M2M' },
        }),
      );
    try {
      const { accessToken } = await machine(clients);
      await expect(machine(theirs)).rejects.toMatchObject({
        ...{ name: 'AccessDeniedException', message: expect.stringContaining('secretsmanager:GetSecretValue') },
      });
      // The control: who may, gets the very token that is at hand.
      const rights = { Effect: 'Allow' as const, Action: 'secretsmanager:GetSecretValue', Resource: '*' };
      await setPolicy(platform, 'no-reader', [...own, rights], 'users');
      expect((await machine(theirs)).accessToken).toBe(accessToken);
      await clients.control.send(new DeleteOauth2CredentialProviderCommand({ name: 'outside' }));
    } finally {
      theirs.close();
    }
  });

  it('of two users come after each has consented in one browser, are renewed silently, and are never mixed up', async () => {
    const browser = new Browser();
    const tokens = new Map<string, string | undefined>();
    for (const userId of ['ada', 'bob']) {
      browser.leave(provider.issuer);
      const begun = await ask(userId, { resourceOauth2ReturnUrl: BACK, customState: `state of ${userId}` });
      expect(begun).toMatchObject({
        authorizationUrl: expect.stringContaining(
          `${platform.ready.endpoint}/identities/oauth2/authorize?request_uri=`,
        ),
        sessionUri: expect.stringMatching(/^urn:ietf:params:oauth:request_uri:[\w-]{43}$/),
        sessionStatus: 'IN_PROGRESS',
      });
      const { sessionUri = '', authorizationUrl = '' } = begun;
      const poll = () => ask(userId, { resourceOauth2ReturnUrl: BACK, customState: `state of ${userId}`, sessionUri });
      expect(await poll()).toMatchObject({ authorizationUrl, sessionUri, sessionStatus: 'IN_PROGRESS' });
      const page = await browser.send(authorizationUrl);
      expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      const text = await page.text();
      for (const told of ['assistant', userId, 'orders', 'offline_access', 'app.example']) expect(text).toContain(told);
      expect(text).not.toContain('<script');
      expect(Object.keys(fieldsOf(text))).toEqual(['request_uri', 'token']);
      const { location } = await browser.decide(authorizationUrl);
      const { url } = await browser.follow(location ?? '', ({ host }) => host === 'app.example');
      const back = new URL(url);
      expect(back.origin + back.pathname).toBe('https://app.example/back');
      expect(Object.fromEntries(back.searchParams)).toEqual({
        tab: '1',
        session_id: expect.stringMatching(/^urn:ietf:params:oauth:request_uri:[\w-]{43}$/),
        state: `state of ${userId}`,
      });
      // What the browser brings is not what whoever sent the link knows.
      const brought = back.searchParams.get('session_id') ?? '';
      expect(brought).not.toBe(sessionUri);
      const own = new CompleteResourceTokenAuthCommand({ sessionUri, userIdentifier: { userId } });
      await expect(clients.data.send(own)).rejects.toMatchObject({ name: 'ValidationException' });
      // Consented, and not confirmed.
      expect((await poll()).accessToken).toBeUndefined();
      const other = new CompleteResourceTokenAuthCommand({ sessionUri: brought, userIdentifier: { userId: 'eve' } });
      await expect(clients.data.send(other)).rejects.toMatchObject({ name: 'AccessDeniedException' });
      await clients.data.send(
        new CompleteResourceTokenAuthCommand({ sessionUri: brought, userIdentifier: { userId } }),
      );
      const { accessToken } = await poll();
      tokens.set(userId, accessToken);
      expect(await provider.whoIs(accessToken ?? '')).toBe(userId);
    }
    expect((await ask('ada')).accessToken).toBe(tokens.get('ada'));
    expect((await ask('bob')).accessToken).toBe(tokens.get('bob'));
    expect((await ask('eve', { resourceOauth2ReturnUrl: BACK })).accessToken).toBeUndefined();
  });

  it('without a return address are confirmed by the page of the same browser, where the agent has none', async () => {
    await expect(ask('cy')).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('resourceOauth2ReturnUrl is required'),
    });
    await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'alone' }));
    const workloadIdentityToken = await tokenFor('cy', 'alone');
    const { authorizationUrl = '', sessionUri = '' } = await ask('cy', { workloadIdentityToken });
    const browser = new Browser();
    const { location } = await browser.decide(authorizationUrl);
    const { answer } = await browser.follow(location ?? '');
    expect(answer?.status).toBe(200);
    expect(await answer?.text()).toContain('has access now');
    const { accessToken = '' } = await ask('cy', { workloadIdentityToken, sessionUri });
    expect(await provider.whoIs(accessToken)).toBe('cy');
  });

  it('are denied by a person, which the agent is told', async () => {
    const { authorizationUrl = '', sessionUri = '' } = await ask('dan', { resourceOauth2ReturnUrl: BACK });
    const { answer } = await new Browser().decide(authorizationUrl, 'deny');
    expect(await answer.text()).toContain('Denied');
    expect(await ask('dan', { sessionUri })).toMatchObject({ sessionUri, sessionStatus: 'FAILED' });
    expect((await new Browser().send(authorizationUrl)).status).toBe(404);
  });

  it('are exchanged for the token of a user, with the agent as actor', async () => {
    const userToken = await provider.userToken('ada');
    const { workloadAccessToken } = await clients.data.send(
      new GetWorkloadAccessTokenForJWTCommand({ workloadName: 'assistant', userToken }),
    );
    const exchange = (more: Partial<GetResourceOauth2TokenCommandInput> = {}) =>
      ask('ada', {
        workloadIdentityToken: workloadAccessToken,
        oauth2Flow: 'ON_BEHALF_OF_TOKEN_EXCHANGE',
        scopes: ['read'],
        audiences: ['urn:stock'],
        customParameters: {},
        ...more,
      });
    const { accessToken = '' } = await exchange();
    expect(decodeJwt(accessToken)).toMatchObject({
      sub: 'ada',
      aud: 'urn:stock',
      scope: 'read',
      act: { token: expect.any(String) },
    });
    expect((await exchange()).accessToken).toBe(accessToken);
    const none = exchange({ workloadIdentityToken: await tokenFor('ada') });
    await expect(none).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('without a token of the user'),
    });
  });
});

describe.skipIf(!python)('by boto3', () => {
  it('providers and tokens are served as it knows them', async () => {
    const boto = botoOf(platform);
    const name = 'from-boto3';
    const customOauth2ProviderConfig = {
      oauthDiscovery: { discoveryUrl: provider.discoveryUrl },
      clientId: provider.clientId,
      clientSecret: provider.clientSecret,
      onBehalfOfTokenExchangeConfig: {
        grantType: 'TOKEN_EXCHANGE',
        tokenExchangeGrantTypeConfig: { actorTokenContent: 'NONE' },
      },
    };
    const given = {
      name,
      credentialProviderVendor: 'CustomOauth2',
      oauth2ProviderConfigInput: { customOauth2ProviderConfig },
    };
    const [made, changed, found, taken, listed] = await boto.control(
      ['CreateOauth2CredentialProvider', given],
      ['UpdateOauth2CredentialProvider', given],
      ['GetOauth2CredentialProvider', { name }],
      ['CreateOauth2CredentialProvider', given],
      ['ListOauth2CredentialProviders', {}],
    );
    for (const one of [made, changed, found])
      expect(one?.output).toMatchObject({ name, callbackUrl: made?.output.callbackUrl });
    expect(found?.output).toMatchObject({ status: 'READY', credentialProviderVendor: 'CustomOauth2' });
    expect(JSON.stringify([made, changed, found, listed])).not.toContain(provider.clientSecret);
    expect(taken?.error?.code).toBe('ConflictException');
    expect(listed?.output.credentialProviders).toHaveLength(2);
    const userToken = await provider.userToken('ada');
    const [ofUser, ofJwt] = await boto.data(
      ['GetWorkloadAccessTokenForUserId', { workloadName: 'assistant', userId: 'ada' }],
      ['GetWorkloadAccessTokenForJWT', { workloadName: 'assistant', userToken }],
    );
    const asked = (workload: typeof ofUser, oauth2Flow: string): [string, object] => [
      'GetResourceOauth2Token',
      {
        workloadIdentityToken: workload?.output.workloadAccessToken,
        resourceCredentialProviderName: name,
        scopes: ['read'],
        oauth2Flow,
        ...(oauth2Flow === 'USER_FEDERATION' && { resourceOauth2ReturnUrl: BACK }),
      },
    ];
    const [machine, begun, exchanged] = await boto.data(
      asked(ofUser, 'M2M'),
      asked(ofUser, 'USER_FEDERATION'),
      asked(ofJwt, 'ON_BEHALF_OF_TOKEN_EXCHANGE'),
    );
    expect(machine?.output).toMatchObject({ accessToken: expect.stringMatching(/^[\w-]+$/) });
    expect(begun?.output).toMatchObject({
      sessionStatus: 'IN_PROGRESS',
      authorizationUrl: expect.stringMatching(/^http/),
    });
    expect(decodeJwt(exchanged?.output.accessToken)).toMatchObject({ sub: 'ada' });
    const { sessionUri } = begun?.output ?? {};
    const [early, unknown] = await boto.data(
      ['CompleteResourceTokenAuth', { sessionUri, userIdentifier: { userId: 'ada' } }],
      ['CompleteResourceTokenAuth', { sessionUri: `${sessionUri}x`, userIdentifier: { userId: 'ada' } }],
    );
    expect([early?.error?.code, unknown?.error?.code]).toEqual(['ValidationException', 'ResourceNotFoundException']);
    const [gone] = await boto.control(['DeleteOauth2CredentialProvider', { name }]);
    expect(gone?.error).toBeUndefined();
  });
});
