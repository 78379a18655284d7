import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  GetResourceApiKeyCommand,
  GetResourceOauth2TokenCommand,
  GetResourcePaymentTokenCommand,
  GetWorkloadAccessTokenCommand,
  GetWorkloadAccessTokenForJWTCommand,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { CreateWorkloadIdentityCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentcoreInside, type Ended } from '../../packages/cli/test/agentcore.ts';
import {
  type ConsentProvider,
  startConsentProvider,
} from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, consentTo } from '../support/consent-platform.ts';
import { newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const KEY = ['sk', 'of-the-cli'].join('-');
const { privateKey: ecKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const PRIVATE_KEY = ecKey.export({ type: 'pkcs8', format: 'der' }).toString('base64');
const API_KEY_PEM = ecKey.export({ type: 'sec1', format: 'pem' }).toString();
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'identity-cli-'));
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  provider = await startConsentProvider();
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  await rm(dir, { recursive: true, force: true });
});

const identity = (args: string[], stdin = ''): Promise<Ended> =>
  agentcoreInside(['identity', ...args], { cwd: dir, env: platform.env, stdin });
const good = async (args: string[], stdin = ''): Promise<string> => {
  const { code, stdout, stderr } = await identity(args, stdin);
  expect(code, stderr).toBe(0);
  return stdout;
};

describe('agentcore identity', () => {
  it('adds a key from standard input, shows it to nobody, and removes it', async () => {
    const added = await good(['add', 'api-key', 'search'], `${KEY}\n`);
    expect(added).toMatch(/search is added\.\narn:.*apikeycredentialprovider\/search/);
    await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'worker' }));
    const { workloadAccessToken: workloadIdentityToken } = await clients.data.send(
      new GetWorkloadAccessTokenCommand({ workloadName: 'worker' }),
    );
    const get = { workloadIdentityToken, resourceCredentialProviderName: 'search' };
    expect((await clients.data.send(new GetResourceApiKeyCommand(get))).apiKey).toBe(KEY);
    const shown = [added, await good(['list']), await good(['list', '--json']), await good(['show', 'search'])];
    expect(shown[1]).toMatch(/^NAME +KIND +VENDOR +ARN\nsearch +api-key/);
    expect(JSON.parse(shown[2] ?? '')).toMatchObject([{ name: 'search', kind: 'api-key' }]);
    expect(shown[3]).toMatch(/^name +search\nkind +api-key/);
    expect(shown.join()).not.toContain(KEY);
    expect(await good(['remove', 'search'])).toBe('search is removed.\n');
    const gone = await identity(['show', 'search']);
    expect([gone.code, gone.stderr]).toEqual([4, expect.stringContaining('agentcore identity list')]);
  });

  it('takes no secret as an argument, and says what is missing before it asks for one', async () => {
    const wrong: [string[], string, number][] = [
      [['add', 'api-key', 'x', KEY], 'too many arguments', 2],
      [['add', 'api-key', 'x', '--api-key', KEY], 'unknown option', 2],
      [['add', 'api-key', 'x'], 'standard input is empty', 2],
      [['add', 'api-key', 'x', '--secret-arn', 'arn:x'], '--json-key', 2],
      [['add', 'oauth2', 'x', '--client-id', 'a'], '--discovery-url', 2],
      [['add', 'oauth2', 'x', '--client-id', 'a', '--vendor', 'none'], 'google', 2],
      [['test-provider', 'none'], 'none', 4],
    ];
    for (const [args, said, code] of wrong)
      expect(await identity(args), args.join(' ')).toMatchObject({ code, stderr: expect.stringContaining(said) });
    expect(await good(['list', '--json'])).toBe('[]\n');
  });

  it('adds OAuth2 clients of vendors and of servers of one’s own, with the redirect URI to register', async () => {
    const drive = await identity(['add', 'oauth2', 'drive', '--vendor', 'Google', '--client-id', 'id'], 'secret');
    expect(drive.stderr).toMatch(/redirect URI at its server: {2}http\S+\/identities\/oauth2\/callback\/[0-9a-f-]{36}/);
    const server = ['--issuer', provider.issuer, '--authorization-endpoint', `${provider.issuer}/auth`];
    const more = [...server, '--token-endpoint', `${provider.issuer}/token`];
    await good(['add', 'oauth2', 'told', '--client-id', provider.clientId, ...more], provider.clientSecret);
    expect(await good(['show', 'drive'])).toContain('GoogleOauth2');
    await good(['add', 'api-key', 'drive'], KEY);
    expect(await identity(['remove', 'drive'])).toMatchObject({ code: 2, stderr: expect.stringContaining('--kind') });
    for (const kind of ['api-key', 'oauth2']) await good(['remove', 'drive', '--kind', kind]);
    await good(['remove', 'told']);
  });

  it('adds a client that gets tokens on behalf of users, with or without a token of the agent', async () => {
    const add = async (...more: string[]) => {
      const server = [
        '--client-id',
        provider.clientId,
        '--discovery-url',
        `${provider.issuer}/.well-known/openid-configuration`,
      ];
      const { code, stderr } = await identity(['add', 'oauth2', 'files', ...server, ...more], provider.clientSecret);
      if (code !== 0) return stderr;
      const { oauth2ProviderConfigOutput } = JSON.parse(await good(['show', 'files', '--json'])) as {
        oauth2ProviderConfigOutput: { customOauth2ProviderConfig: { onBehalfOfTokenExchangeConfig: unknown } };
      };
      await good(['remove', 'files']);
      return oauth2ProviderConfigOutput.customOauth2ProviderConfig.onBehalfOfTokenExchangeConfig;
    };
    const exchange = ['--on-behalf-of', 'TOKEN_EXCHANGE'];
    const grantType = 'TOKEN_EXCHANGE';
    expect(await add(...exchange)).toEqual({ grantType, tokenExchangeGrantTypeConfig: { actorTokenContent: 'NONE' } });
    expect(await add(...exchange, '--actor-scopes', 'act', 'read')).toEqual({
      grantType,
      tokenExchangeGrantTypeConfig: { actorTokenContent: 'M2M', actorTokenScopes: ['act', 'read'] },
    });
    expect(await add('--on-behalf-of', 'JWT_AUTHORIZATION_GRANT')).toEqual({ grantType: 'JWT_AUTHORIZATION_GRANT' });
    expect(await add()).toBeUndefined();
    expect(await add('--actor-scopes', 'act')).toContain('--actor-scopes needs --on-behalf-of TOKEN_EXCHANGE');
  });

  it('lists, shows and removes providers of payment vendors, and tells kinds apart that have one name', async () => {
    const secret = 'canary-of-privy-4711';
    const secrets = { appSecret: secret, authorizationPrivateKey: `wallet-auth:${PRIVATE_KEY}` };
    const ids = ['--app-id', 'app', '--authorization-id', 'id'];
    const added = await good(['add', 'payment', 'wallet', '--vendor', 'privy', ...ids], JSON.stringify(secrets));
    expect(added).toMatch(/^wallet is added\.\narn:/);
    const shown = [await good(['list']), await good(['list', '--json']), await good(['show', 'wallet'])];
    expect(shown[0]).toMatch(/^wallet +payment +StripePrivy +arn:/m);
    expect(JSON.parse(shown[1] ?? '')).toMatchObject([{ name: 'wallet', kind: 'payment', vendor: 'StripePrivy' }]);
    expect(shown[2]).toMatch(/^kind +payment\ncredentialProviderVendor +StripePrivy/m);
    for (const one of [secret, PRIVATE_KEY]) expect(shown.join()).not.toContain(one);
    await good(['add', 'api-key', 'wallet'], KEY);
    expect(await identity(['show', 'wallet'])).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining('--kind api-key or --kind payment') },
    });
    expect(await good(['remove', 'wallet', '--kind', 'payment'])).toBe('wallet is removed.\n');
    expect(JSON.parse(await good(['list', '--json']))).toMatchObject([{ name: 'wallet', kind: 'api-key' }]);
    await good(['remove', 'wallet']);
  });

  it('adds the keys of Coinbase, from standard input or in a secret, and agents pay with them', async () => {
    const secrets = { apiKeySecret: API_KEY_PEM, walletSecret: PRIVATE_KEY };
    const coinbase = ['--vendor', 'coinbase', '--api-key-id', 'key', '--wallet'];
    await good(['add', 'payment', 'typed', ...coinbase], JSON.stringify(secrets));
    const stored = await agentcoreInside(['secret', 'set', 'COINBASE', '--json'], {
      ...{ cwd: dir, env: platform.env, stdin: JSON.stringify(secrets) },
    });
    const { arn } = JSON.parse(stored.stdout) as { arn: string };
    await good(['add', 'payment', 'kept', ...coinbase, '--secret-arn', arn]);
    await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'payer' }));
    const { workloadAccessToken: workloadIdentityToken } = await clients.data.send(
      new GetWorkloadAccessTokenCommand({ workloadName: 'payer' }),
    );
    for (const resourceCredentialProviderName of ['typed', 'kept']) {
      const coinbaseCdpTokenRequest = {
        ...{ requestMethod: 'POST' as const, requestHost: 'api.cdp.coinbase.com', requestPath: '/platform/v2/evm' },
        ...{ includeWalletAuthToken: true, requestBody: '{}' },
      };
      const paymentTokenRequest = { coinbaseCdpTokenRequest };
      const get = { workloadIdentityToken, resourceCredentialProviderName, paymentTokenRequest };
      const token = await clients.data.send(new GetResourcePaymentTokenCommand(get));
      expect(JSON.stringify(token)).toContain('eyJ');
      await good(['remove', resourceCredentialProviderName]);
    }
  });

  it('refuses a payment provider whose ids or secrets are not those of its vendor, and quotes no secret', async () => {
    const coinbase = ['--vendor', 'coinbase', '--api-key-id', 'key'];
    const secret = 'canary-of-coinbase-4711';
    const wrong: [string[], string, string][] = [
      [['--vendor', 'coinbase'], '{}', '--api-key-id'],
      [['--vendor', 'privy', '--app-id', 'a'], '{}', '--authorization-id'],
      [[...coinbase, '--app-id', 'a'], '{}', '--app-id'],
      [[], '{}', '--vendor'],
      [coinbase, secret, 'apiKeySecret'],
      [[...coinbase, '--wallet'], JSON.stringify({ apiKeySecret: secret }), 'walletSecret'],
      [coinbase, JSON.stringify({ apiKeySecret: secret, walletSecret: secret }), 'apiKeySecret'],
    ];
    for (const [args, stdin, said] of wrong) {
      const { code, stdout, stderr } = await identity(['add', 'payment', 'x', ...args], stdin);
      expect([code, stderr], args.join(' ')).toEqual([2, expect.stringContaining(said)]);
      expect(stdout + stderr).not.toContain(secret);
    }
  });

  it('says which step of a flow fails, and why', async () => {
    const garbage = createServer((request, response) => {
      const issuer = 'https://nowhere.example';
      const half = request.url?.startsWith('/half') ? JSON.stringify({ issuer }) : '<html>';
      response.end(half);
    });
    await new Promise<void>((done) => garbage.listen(0, '127.0.0.1', done));
    const at = `127.0.0.1:${(garbage.address() as AddressInfo).port}`;
    const wellKnown = '/.well-known/openid-configuration';
    const test = async (discoveryUrl: string, secret: string, ...scopes: string[]) => {
      const client = ['--client-id', provider.clientId, '--discovery-url', discoveryUrl];
      await good(['add', 'oauth2', 'orders', ...client], secret);
      const asked = scopes.flatMap((scope) => ['--scope', scope]);
      const { code, stdout, stderr } = await identity(['test-provider', 'orders', '--json', ...asked]);
      await good(['remove', 'orders']);
      const { steps } = JSON.parse(stdout) as { steps: { step: string; status: string; message: string }[] };
      expect(stdout + stderr).not.toContain(secret);
      return { code, stderr, failed: steps.filter(({ status }) => status === 'failed'), steps };
    };
    const { discoveryUrl, clientSecret } = provider;
    try {
      const whole = await test(discoveryUrl, clientSecret, 'read');
      expect([whole.code, whole.stderr]).toEqual([0, '']);
      expect(whole.steps.map(({ step, status }) => `${step}: ${status}`)).toEqual([
        'discovery: passed',
        'tls: skipped',
        'metadata: passed',
        'token endpoint: passed',
        'client authentication: passed',
        'grant: passed',
        'scopes: passed',
      ]);
      const cases: [string, string, string[], string, string][] = [
        [`http://127.0.0.1:9${wellKnown}`, clientSecret, [], 'discovery', '127.0.0.1'],
        [`https://${at}${wellKnown}`, clientSecret, [], 'tls', 'cannot be used'],
        [`http://${at}${wellKnown}`, clientSecret, [], 'metadata', 'cannot be used'],
        [`http://${at}/half${wellKnown}`, clientSecret, [], 'metadata', 'names no token endpoint'],
        [discoveryUrl, 'a-wrong-secret-4711', [], 'client authentication', 'invalid_client'],
        [discoveryUrl, clientSecret, ['read', 'everything'], 'scopes', 'without: everything'],
      ];
      for (const [url, secret, scopes, step, message] of cases) {
        const { code, failed, stderr } = await test(url, secret, ...scopes);
        expect(failed, `${step} ${stderr}`).toMatchObject([{ step, message: expect.stringContaining(message) }]);
        expect(code).toBe(1);
        expect(JSON.parse(stderr).error.message).toContain(`The step "${step}" fails`);
      }
      provider.instead((_request, response) => response.writeHead(503).end());
      expect((await test(discoveryUrl, clientSecret)).failed).toMatchObject([{ step: 'token endpoint' }]);
    } finally {
      provider.instead(undefined);
      garbage.close();
    }
  });

  describe('grants', () => {
    let server: ConsentProvider;
    /** Tokens of the users, by their names. */
    const tokens = new Map<string, string>();

    async function consented(workloadAccessToken: string | undefined, user: string): Promise<void> {
      const ask = (more: object) =>
        clients.data.send(
          new GetResourceOauth2TokenCommand({
            ...{ workloadIdentityToken: workloadAccessToken, resourceCredentialProviderName: 'calendar' },
            ...{ scopes: ['openid', 'read'], oauth2Flow: 'USER_FEDERATION', customParameters: { login_hint: user } },
            ...more,
          }),
        );
      const { authorizationUrl = '', sessionUri } = await ask({});
      await consentTo(authorizationUrl);
      tokens.set(user, (await ask({ sessionUri })).accessToken ?? '');
    }

    beforeAll(async () => {
      server = await connectConsentProvider(clients, 'calendar');
      await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'secretary' }));
      for (const userId of ['ada', 'bob']) {
        const get = new GetWorkloadAccessTokenForUserIdCommand({ workloadName: 'secretary', userId });
        await consented((await clients.data.send(get)).workloadAccessToken, userId);
      }
      const userToken = await server.userToken('cy');
      const get = new GetWorkloadAccessTokenForJWTCommand({ workloadName: 'secretary', userToken });
      await consented((await clients.data.send(get)).workloadAccessToken, 'cy');
    });
    afterAll(() => server?.close());

    const listed = async (...args: string[]) =>
      JSON.parse(await good(['grants', '--json', ...args])) as { id: string; user: object; scopes: string[] }[];

    it('are listed: all, of a user, of a provider, of an agent', async () => {
      const byId = (userId: string) => ({ user: { userId } });
      const cy = { user: { issuer: server.issuer, subject: 'cy' } };
      expect(await listed()).toMatchObject([cy, byId('bob'), byId('ada')]);
      expect(await listed('--user', 'ada')).toMatchObject([{ ...byId('ada'), scopes: ['openid', 'read'] }]);
      expect(await listed('--issuer', server.issuer, '--subject', 'cy')).toMatchObject([cy]);
      expect(await listed('--provider', 'calendar')).toHaveLength(3);
      expect(await listed('--workload', 'secretary')).toHaveLength(3);
      for (const other of [
        ['--user', 'cy'],
        ['--provider', 'other'],
        ['--workload', 'other'],
      ])
        expect(await listed(...other)).toEqual([]);
      const table = await good(['grants']);
      expect(table).toMatch(/^ID +USER +WORKLOAD +PROVIDER +SCOPES +GRANTED\ngrant-/);
      expect(table).toContain(`cy of ${server.issuer}`);
      for (const token of tokens.values()) expect(table).not.toContain(token);
      const half = await identity(['grants', '--issuer', server.issuer]);
      expect(half).toMatchObject({ code: 2, stderr: expect.stringContaining('--subject') });
    });

    it('are listed page by page, and a token of one list counts in no other', async () => {
      const page = async (query: Record<string, string>) => {
        const answer = await signedFetch(platform, { method: 'GET', path: '/_platform/identity/grants', query });
        return { status: answer.status, ...((await answer.json()) as { grants: unknown[]; nextToken?: string }) };
      };
      const first = await page({ maxResults: '2' });
      expect(first.grants).toHaveLength(2);
      const last = await page({ maxResults: '2', nextToken: first.nextToken ?? '' });
      expect([last.grants.length, last.nextToken]).toEqual([1, undefined]);
      expect((await page({ nextToken: first.nextToken ?? '', userId: 'ada' })).status).toBe(400);
      for (const maxResults of ['0', '501', 'x', '1.5']) expect((await page({ maxResults })).status).toBe(400);
    });

    it('are taken back, and the next time the user is asked again', async () => {
      const [grant] = await listed('--user', 'ada');
      expect(await server.whoIs(tokens.get('ada') ?? '')).toBe('ada');
      expect(await good(['revoke', grant?.id ?? ''])).toBe(`${grant?.id} is revoked here; its provider was told.\n`);
      expect(await server.whoIs(tokens.get('ada') ?? '')).toBeUndefined();
      expect(await listed('--user', 'ada')).toEqual([]);
      expect(await identity(['revoke', grant?.id ?? ''])).toMatchObject({ code: 4 });
      // The control: bob's stands until it is taken back as well.
      expect(await server.whoIs(tokens.get('bob') ?? '')).toBe('bob');
      const rest = (await listed()).map(({ id }) => id);
      expect(JSON.parse(await good(['revoke', '--json', ...rest]))).toEqual(
        rest.map((id) => ({ id, atProvider: 'revoked' })),
      );
      expect(await identity(['grants'])).toMatchObject({ stdout: '', stderr: 'There are no such grants.\n' });
    });
  });

  it('tests a provider only for who may', async () => {
    const credentials = await newUser(platform, 'looker', [
      { Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' },
    ]);
    const path = '/_platform/identity/oauth2-providers/orders/test';
    const refused = await signedFetch(platform, { method: 'POST', path, content: {}, credentials });
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('TestCredentialProvider')]);
  });
});
