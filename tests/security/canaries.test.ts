import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readdir, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CompleteResourceTokenAuthCommand,
  GetResourceApiKeyCommand,
  GetResourceOauth2TokenCommand,
  GetResourcePaymentTokenCommand,
  GetWorkloadAccessTokenCommand,
  GetWorkloadAccessTokenForJWTCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateApiKeyCredentialProviderCommand,
  CreateConsentPortalCommand,
  CreateOauth2CredentialProviderCommand,
  CreatePaymentCredentialProviderCommand,
  CreateWorkloadIdentityCommand,
  SetTokenVaultCMKCommand,
  UpdateApiKeyCredentialProviderCommand,
  UpdateOauth2CredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCommand } from '../../packages/platform/src/kernel/processes/run-command.ts';
import { instancePlaces } from '../../packages/platform/src/kernel/sandbox/host/instance.ts';
import { OtlpReceiver } from '../../packages/platform/src/kernel/telemetry/testing/otlp-receiver.ts';
import { Browser } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import {
  type ConsentProvider,
  startConsentProvider,
} from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { newRole, newUser } from '../support/iam.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const PROBE = join(import.meta.dirname, '../support/probe-agent');
/** What is no secret: it has to be found wherever secrets are looked for. */
const MARK = `mark-${randomBytes(8).toString('hex')}`;

let platform: TestPlatform;
let clients: Clients;
let receiver: OtlpReceiver;
let provider: ConsentProvider;
/** By the field that took it. */
const canaries = new Map<string, string>();
/** Letters and digits alone, so that it fits every pattern and is the same in JSON and in an address. */
const canary = (field: string): string => {
  const text = `c4nary${randomBytes(16).toString('hex')}`;
  canaries.set(field, text);
  return text;
};
/** A private key; what is looked for is a piece from its middle. */
const keyCanary = (field: string, format: 'der' | 'pem'): string => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const base64 = privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64');
  canaries.set(field, base64.slice(48, 64));
  return format === 'der' ? base64 : privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
};

const admin = (method: string, path: string, content?: object, query?: Record<string, string>) =>
  signedFetch(platform, {
    method,
    path: `/_platform${path}`,
    headers: { 'user-agent': MARK },
    ...(content ? { content } : {}),
    ...(query ? { query } : {}),
  });
const raw = (path: string, content: object) => signedFetch(platform, { method: 'POST', path, content });
const start = (dataDir?: string) =>
  startTestPlatform({
    args: ['--log-level', 'debug', '--allow-private-egress', '127.0.0.0/8'],
    env: { AGENTPLATFORM_TEST_MARK: MARK, AGENTPLATFORM_TELEMETRY_OTLP_ENDPOINT: receiver.url },
    ...(dataDir === undefined ? {} : { dataDir }),
  });

beforeAll(async () => {
  receiver = await OtlpReceiver.start();
  platform = await start();
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  await receiver?.close();
});

/** Plants one in each field that takes a secret, where it is taken and where it is refused. */
async function plant(): Promise<void> {
  await admin('PUT', '/secrets/PLAIN_SECRET', { value: canary('secret') });
  await admin('PUT', '/secrets/PLAIN_SECRET', { value: canary('secret, replaced') });
  await admin('PUT', '/secrets/JSON_SECRET', { value: JSON.stringify({ key: canary('JSON secret') }) });
  await admin('PUT', '/secrets/LD_PRELOAD', { value: canary('secret of a name that is refused') });
  await admin('PUT', '/secrets/TOO_LARGE', { value: canary('secret that is too large').padEnd(20_000, 'x') });
  await admin('PUT', '/secrets/NO_RUNTIME', { value: canary('secret of no runtime') }, { runtime: 'none-0123456789' });
  const registry = { username: 'ada', password: canary('password of a registry') };
  await admin('PUT', '/registry-credentials/canaries.example', registry);
  const user = await newUser(platform, MARK, [{ Effect: 'Allow', Action: 'bedrock-agentcore:Get*', Resource: '*' }]);
  canaries.set('secret access key', user.secretAccessKey);

  const create = (members: object) =>
    clients.control.send(new CreateApiKeyCredentialProviderCommand({ name: MARK, ...members })).catch(() => undefined);
  await create({ apiKey: canary('API key'), tags: { mark: MARK } });
  await create({ apiKey: canary('API key, name taken') });
  await create({ name: 'no space', apiKey: canary('API key, wrong name') });
  await create({ name: 'x', apiKey: canary('API key, contradiction'), apiKeySecretSource: 'EXTERNAL' });
  await create({ name: 'x', apiKey: canary('API key, too long').padEnd(70_000, 'x') });
  await create({ name: 'x', apiKey: { not: canary('API key, not a text') } });
  const update = { name: MARK, apiKey: canary('API key, changed') };
  await clients.control.send(new UpdateApiKeyCredentialProviderCommand(update));
  // Where no member takes it, and in a body that is no JSON.
  await raw('/identities/CreateApiKeyCredentialProvider', { name: 'x', apikey: canary('unknown member') });
  await raw('/identities/none', { secret: canary('unknown operation') });

  const payment = (name: string, credentialProviderVendor: 'CoinbaseCDP' | 'StripePrivy', configuration: object) =>
    clients.control
      .send(
        new CreatePaymentCredentialProviderCommand({
          name,
          credentialProviderVendor,
          providerConfigurationInput: configuration as never,
        }),
      )
      .catch(() => undefined);
  const coinbase = (kind: string) => ({
    coinbaseCdpConfiguration: {
      apiKeyId: MARK,
      apiKeySecret: keyCanary(`${kind}: API key`, 'pem'),
      walletSecret: keyCanary(`${kind}: wallet`, 'der'),
    },
  });
  await payment('coinbase', 'CoinbaseCDP', coinbase('Coinbase'));
  await payment('x', 'StripePrivy', coinbase('Coinbase as Privy'));
  const garbage = {
    apiKeyId: MARK,
    apiKeySecret: canary('Coinbase: no key'),
    walletSecret: canary('Coinbase: no wallet'),
  };
  await payment('garbage', 'CoinbaseCDP', { coinbaseCdpConfiguration: garbage });
  const privy = {
    appId: MARK,
    appSecret: canary('Privy: app'),
    authorizationId: MARK,
    authorizationPrivateKey: `wallet-auth:${keyCanary('Privy: key', 'der')}`,
  };
  await payment('privy', 'StripePrivy', { stripePrivyConfiguration: privy });
  await plantClients();
}

/** Settings of an OAuth2 provider: those of a server that is not there, or of one that is. */
const oauth2 = (
  name: string,
  clientSecret: string,
  discoveryUrl = 'https://later.example/.well-known/openid-configuration',
) => ({
  ...{ name, credentialProviderVendor: 'CustomOauth2' as const },
  oauth2ProviderConfigInput: {
    customOauth2ProviderConfig: { oauthDiscovery: { discoveryUrl }, clientId: 'the-agents', clientSecret },
  },
});

/** Secrets of OAuth2 clients, one of which people sign in by at a portal. */
async function plantClients(): Promise<void> {
  const create = (members: object) =>
    clients.control.send(new CreateOauth2CredentialProviderCommand(members as never)).catch(() => undefined);
  const orders = await create(oauth2('orders', canary('OAuth client secret')));
  const staff = await create(oauth2('staff', canary('OAuth client secret of a portal')));
  await create(oauth2('orders', canary('OAuth client secret, name taken')));
  await create(oauth2('no space', canary('OAuth client secret, wrong name')));
  await create({ ...oauth2('x', canary('OAuth client secret, no such vendor')), credentialProviderVendor: 'None' });
  const google = {
    googleOauth2ProviderConfig: { clientId: MARK, clientSecret: canary('OAuth client secret, of a vendor') },
  };
  await create({ name: 'google', credentialProviderVendor: 'GoogleOauth2', oauth2ProviderConfigInput: google });
  const right = { Effect: 'Allow', Action: 'bedrock-agentcore:GetResourceOauth2Token', Resource: '*' };
  const { portalUrl = '' } = await clients.control.send(
    new CreateConsentPortalCommand({
      ...{ name: 'people', executionRoleArn: await newRole(platform, 'people', [right]) },
      idpConfig: { credentialProviderArn: staff?.credentialProviderArn ?? '', scopes: ['openid'] },
      sources: [{ identifier: 'tools-a1b2c3d4e5', type: 'agentcore-gateway' }],
    }),
  );
  provider = await startConsentProvider({ redirectUris: [orders?.callbackUrl ?? '', `${portalUrl}/callback`] });
  // Its own clients' secret is one that is looked for, too.
  canaries.set('OAuth client secret of a real server', provider.clientSecret);
  for (const name of ['orders', 'staff']) {
    const { clientSecret, discoveryUrl } = provider;
    await clients.control.send(new UpdateOauth2CredentialProviderCommand(oauth2(name, clientSecret, discoveryUrl)));
  }
  await useClients(portalUrl);
}

/** Has every flow walked: what a provider gives, codes, states, cookies and links are secrets as well. */
async function useClients(portalUrl: string): Promise<void> {
  await clients.control.send(
    new CreateWorkloadIdentityCommand({ name: 'traveller', allowedResourceOauth2ReturnUrls: ['https://app.example/'] }),
  );
  const userToken = await provider.userToken('ada', { email: 'ada@example.com' });
  canaries.set('token of a user', userToken.split('.')[2] ?? '');
  const { workloadAccessToken } = await clients.data.send(
    new GetWorkloadAccessTokenForJWTCommand({ workloadName: 'traveller', userToken }),
  );
  canaries.set('workload access token of a user', workloadAccessToken ?? '');
  const ask = (more: object = {}) =>
    clients.data.send(
      new GetResourceOauth2TokenCommand({
        ...{ workloadIdentityToken: workloadAccessToken, resourceCredentialProviderName: 'orders' },
        ...{ scopes: ['openid', 'offline_access', 'read'], oauth2Flow: 'USER_FEDERATION' },
        ...{ resourceOauth2ReturnUrl: 'https://app.example/', customState: canary('state of an application') },
        ...{ customParameters: { login_hint: 'ada', prompt: 'login' }, ...more },
      }),
    );
  const begun = await ask();
  const browser = new Browser();
  const { location } = await browser.decide(begun.authorizationUrl ?? '');
  const asked = new URL(location ?? '').searchParams;
  canaries.set('state of a consent', asked.get('state') ?? '');
  const back = await browser.follow(location ?? '', ({ pathname }) => pathname.includes('/oauth2/callback/'));
  canaries.set('authorization code', new URL(back.url).searchParams.get('code') ?? '');
  const { url } = await browser.follow(back.url, ({ host }) => host === 'app.example');
  const sessionUri = new URL(url).searchParams.get('session_id') ?? '';
  canaries.set('what a browser brings to the application', sessionUri.split(':').at(-1) ?? '');
  await clients.data.send(new CompleteResourceTokenAuthCommand({ sessionUri, userIdentifier: { userToken } }));
  const given = await ask({ sessionUri: begun.sessionUri });
  canaries.set('access token of a user', given.accessToken ?? '');
  canaries.set('PKCE verifier', provider.asked.at(-1)?.get('code_verifier') ?? '');
  const machine = await ask({
    ...{ oauth2Flow: 'M2M', scopes: ['read'], customParameters: {} },
    resourceOauth2ReturnUrl: undefined,
    customState: undefined,
  });
  canaries.set('access token of an agent', machine.accessToken ?? '');
  // Tokens that a provider gives, with which nothing is wrong but that they are looked for, and an error that repeats the secret.
  provider.instead((_request, response) =>
    response.setHeader('content-type', 'application/json').end(
      JSON.stringify({
        ...{
          access_token: canary('access token'),
          refresh_token: canary('refresh token'),
          id_token: canary('id token'),
        },
        ...{ token_type: 'Bearer', expires_in: 3600 },
      }),
    ),
  );
  const other = { oauth2Flow: 'M2M', customParameters: {}, resourceOauth2ReturnUrl: undefined, customState: undefined };
  expect((await ask({ ...other, scopes: ['write'] })).accessToken).toBe(canaries.get('access token'));
  provider.instead((_request, response) =>
    response.writeHead(400, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        error: 'invalid_client',
        error_description: `${provider.clientSecret} is wrong, ${canary('what a provider says')}`,
      }),
    ),
  );
  await ask({ ...other, scopes: ['read', 'write'] }).catch(() => undefined);
  provider.instead((_request, response) => response.end(canary('what is no answer')));
  await ask({ ...other, scopes: ['openid'] }).catch(() => undefined);
  provider.instead(undefined);
  const signedIn = new Browser();
  const { url: portalBack } = await signedIn.follow(`${portalUrl}/sign-in`, ({ pathname }) =>
    pathname.endsWith('/callback'),
  );
  canaries.set('code of a sign-in', new URL(portalBack).searchParams.get('code') ?? '');
  expect((await signedIn.send(portalBack)).status).toBe(303);
  canaries.set(
    'cookie of a portal',
    signedIn.cookie(portalUrl, `agentplatform-portal-${portalUrl.split('/').at(-1)}`) ?? '',
  );
  const link = await admin('POST', '/identity/grants/link', { issuer: provider.issuer, subject: 'ada' });
  const { url: grants } = (await link.json()) as { url: string };
  canaries.set('link to grants', new URL(grants).searchParams.get('link') ?? '');
  expect((await new Browser().send(grants)).status).toBe(200);
}

/** Uses all of them, with success and without. */
async function use(): Promise<void> {
  await clients.control.send(new CreateWorkloadIdentityCommand({ name: MARK }));
  const issued = await clients.data.send(new GetWorkloadAccessTokenCommand({ workloadName: MARK }));
  const workloadIdentityToken = issued.workloadAccessToken ?? '';
  canaries.set('workload access token', workloadIdentityToken);
  const key = (name: string, token = workloadIdentityToken) =>
    clients.data.send(
      new GetResourceApiKeyCommand({ workloadIdentityToken: token, resourceCredentialProviderName: name }),
    );
  expect((await key(MARK)).apiKey).toBe(canaries.get('API key, changed'));
  await key('none').catch(() => undefined);
  await key(MARK, canary('token that is none')).catch(() => undefined);
  const { arn } = (await (await admin('GET', '/secrets/JSON_SECRET')).json()) as { arn: string };
  for (const [name, secretId, jsonKey] of [
    ['external', arn, 'key'],
    ['no-key', arn, 'none'],
    ['no-json', 'PLAIN_SECRET', 'key'],
  ]) {
    const external = { apiKeySecretSource: 'EXTERNAL', apiKeySecretConfig: { secretId, jsonKey } } as const;
    const made = clients.control.send(new CreateApiKeyCredentialProviderCommand({ name, ...external }));
    await made.catch(() => undefined);
  }
  expect((await key('external')).apiKey).toBe(canaries.get('JSON secret'));

  const pay = async (
    resourceCredentialProviderName: string,
    paymentTokenRequest: object,
  ): Promise<object | undefined> => {
    const call = {
      workloadIdentityToken,
      resourceCredentialProviderName,
      paymentTokenRequest: paymentTokenRequest as never,
    };
    const sent = clients.data.send(new GetResourcePaymentTokenCommand(call));
    return (await sent.catch(() => undefined))?.paymentTokenResponse;
  };
  const coinbaseCdpTokenRequest = { requestMethod: 'POST', requestPath: '/v2/x', includeWalletAuthToken: true };
  const tokens = await pay('coinbase', { coinbaseCdpTokenRequest });
  expect(tokens).toBeDefined();
  for (const [at, token] of [...JSON.stringify(tokens).matchAll(/ey[\w-]+\.[\w-]+\.([\w-]+)/g)].entries())
    canaries.set(`payment token ${at}`, token[1] ?? '');
  expect(await pay('garbage', { coinbaseCdpTokenRequest })).toBeUndefined();
  const requestBody = JSON.stringify({ to: canary('body of a payment') });
  const signed = { requestPath: '/v1/x', requestBody, includeAuthorizationSignature: true };
  expect(await pay('privy', { stripePrivyTokenRequest: signed })).toBeDefined();
  await pay('privy', { stripePrivyTokenRequest: { ...signed, requestBody: canary('body that is no JSON') } });

  const made = (await (await admin('POST', '/keys', { description: MARK })).json()) as { arn: string; id: string };
  const kmsConfiguration = { keyType: 'CustomerManagedKey', kmsKeyArn: made.arn } as const;
  await clients.control.send(new SetTokenVaultCMKCommand({ kmsConfiguration }));
  await admin('POST', `/keys/${made.id}/disable`);
  await clients.control.send(new SetTokenVaultCMKCommand({ kmsConfiguration })).catch(() => undefined);
  await admin('POST', '/keys', { spec: 'RSA_2048', description: MARK });
  expect((await admin('POST', '/master-key/rotate')).status).toBe(200);
  expect((await key(MARK)).apiKey).toBe(canaries.get('API key, changed'));
}

/** The same text as the ways of writing it down that a file could have. */
const forms = (text: string): string[] => [
  text,
  Buffer.from(text).toString('hex'),
  // Of the three, wherever it begins; the ends depend on what stands beside it.
  ...[0, 1, 2].map((skip) =>
    Buffer.from(text.slice(skip, skip + 3 * Math.floor((text.length - skip) / 3))).toString('base64'),
  ),
];

/** Which files below these directories hold which of the texts, in whatever form: `file:form`, each once. All are looked for in one go. */
async function holding(texts: Iterable<string>, directories: string[]): Promise<string[]> {
  const wanted = [...texts].flatMap((text) => forms(text)).flatMap((form) => ['-e', form]);
  const { stdout } = await runCommand(['grep', '-raosF', '--devices=skip', ...wanted, ...directories], {
    timeoutMs: 150_000,
  });
  return [...new Set(stdout.split('\n'))].filter((line) => line !== '');
}

/** The command line or the environment of every process that there is. */
async function ofProcesses(what: 'cmdline' | 'environ'): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return Promise.all(pids.map((pid) => readFile(join('/proc', pid, what), 'latin1').catch(() => '')));
}

it('secrets are in no file, log, command line or environment, whatever is done with them', async () => {
  await plant();
  await use();
  // An agent that asked for one has it, and it alone.
  const name = 'PLAIN_SECRET';
  const environmentVariables = { [name]: `secretref:${name}`, MARK };
  const agent = await deployAgent(platform, clients, { folder: PROBE, environmentVariables });
  const inside = await invokeJson(clients, agent.arn, sessionId('canary'), { do: 'env' });
  expect(inside[name]).toBe(canaries.get('secret, replaced'));
  expect(canaries.size).toBeGreaterThan(45);

  const places = [
    await realpath(platform.dataDir),
    instancePlaces(await realpath(platform.dataDir), '/run/agentplatform').run,
  ];
  const look = async (log: string): Promise<void> => {
    await expect.poll(() => receiver.spans.length, { timeout: 30_000 }).toBeGreaterThan(0);
    const traces = Buffer.concat(receiver.bytes).toString('latin1');
    const metrics = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
    const [lines, environments] = [await ofProcesses('cmdline'), await ofProcesses('environ')];
    // The controls: what is no secret is there.
    const found = await holding([MARK, ...canaries.values()], places);
    const marked = found.filter((line) => line.endsWith(`:${MARK}`));
    for (const part of ['db', 'journal'])
      expect(
        marked.some((line) => line.startsWith(join(places[0] ?? '', part))),
        part,
      ).toBe(true);
    expect(found.filter((line) => !forms(MARK).some((form) => line.endsWith(`:${form}`)))).toEqual([]);
    expect(log).toContain(MARK);
    expect(environments.some((text) => text.includes(`AGENTPLATFORM_TEST_MARK=${MARK}`))).toBe(true);
    expect(lines.some((text) => text.includes(platform.dataDir))).toBe(true);
    for (const [field, text] of canaries) {
      expect(text.length, field).toBeGreaterThanOrEqual(16);
      for (const form of forms(text)) {
        for (const [where, shown] of Object.entries({ log, metrics, traces }))
          expect(shown.includes(form), `${field} in ${where}`).toBe(false);
        expect(
          lines.filter((line) => line.includes(form)),
          field,
        ).toEqual([]);
        const having = environments.filter((text) => text.includes(form));
        const agents = having.filter((text) => field === 'secret, replaced' && text.includes(`MARK=${MARK}`));
        expect(having.length - agents.length, field).toBe(0);
      }
    }
  };
  await look(platform.log());
  // As a crash leaves it, with whatever had not reached the database, and as the next server finds it.
  const log = platform.log();
  await platform.end('SIGKILL');
  expect(await holding(canaries.values(), places.slice(0, 1))).toEqual([]);
  clients.close();
  platform = await start(platform.dataDir);
  clients = clientsOf(platform);
  await look(`${log}${platform.log()}`);
});

it('no memory of the server is written to the disk when it crashes', async () => {
  const limits = await readFile(`/proc/${platform.pid}/limits`, 'utf8');
  expect(limits).toMatch(/^Max core file size +0 +0 +bytes/m);
});
