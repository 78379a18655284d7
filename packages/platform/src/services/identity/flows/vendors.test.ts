import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { control } from '@agentplatform/contract';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Outbound } from '../../../kernel/outbound/index.ts';
import { secretMigrations } from '../../../kernel/secrets/index.ts';
import { migrate, storageMigrations } from '../../../kernel/storage/index.ts';
import { silent, type TemporaryDatabase, temporaryPglite } from '../../../kernel/storage/testing/databases.ts';
import { givenProvider } from '../providers/oauth2-provider.ts';
import { VENDORS } from '../providers/vendors.ts';
import { flowMigrations } from './tables.ts';
import { broughtBack, type FlowLab, openFlowLab, RETURN_URL } from './testing/flow-lab.ts';

type Vendor = control.CredentialProviderVendorType;

/** An exchange as the vendor's documentation has it. */
interface Documented {
  /** What a customer of the vendor says beside client id and secret. */
  config?: object;
  /** What the vendor publishes at its discovery address, where it does. */
  discovery?: { url: string; document: object };
  authorize: string;
  /** What the authorization page is asked for beside what every vendor is. */
  extras?: Record<string, string>;
  separator?: ',';
  token: string;
  client: 'basic' | 'post';
  /** False: it knows no PKCE. */
  pkce?: false;
  /** The answer to a code; `access_token` is `at-1`. */
  answer: object;
}

const BEARER = { access_token: 'at-1', token_type: 'Bearer', expires_in: 3600 };
const RENEWABLE = { ...BEARER, refresh_token: 'rt-1' };
const of = (base: string, [authorize, token]: [string, string]) => ({
  ...{ authorize: `${base}${authorize}`, token: `${base}${token}` },
});
/** A server of a customer's own that publishes where it is. */
const tenant = (issuer: string, paths: [string, string], base = issuer) => ({
  config: { issuer },
  discovery: {
    url: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    document: { issuer, authorization_endpoint: `${base}${paths[0]}`, token_endpoint: `${base}${paths[1]}` },
  },
  ...of(base, paths),
  client: 'post' as const,
  answer: { ...RENEWABLE, scope: 'one two' },
});

const DOCUMENTED: Record<Vendor, Documented> = {
  CustomOauth2: {
    ...tenant('https://id.example', ['/authorize', '/token']),
    config: { oauthDiscovery: { discoveryUrl: 'https://id.example/.well-known/openid-configuration' } },
    client: 'basic',
  },
  GoogleOauth2: {
    discovery: {
      url: 'https://accounts.google.com/.well-known/openid-configuration',
      document: {
        issuer: 'https://accounts.google.com',
        authorization_endpoint: 'https://accounts.google.com/o/oauth2/v2/auth',
        token_endpoint: 'https://oauth2.googleapis.com/token',
        revocation_endpoint: 'https://oauth2.googleapis.com/revoke',
      },
    },
    authorize: 'https://accounts.google.com/o/oauth2/v2/auth',
    extras: { access_type: 'offline', prompt: 'consent' },
    token: 'https://oauth2.googleapis.com/token',
    client: 'post',
    answer: { ...RENEWABLE, scope: 'one two', id_token: 'not looked at' },
  },
  GithubOauth2: {
    ...of('https://github.com/login/oauth', ['/authorize', '/access_token']),
    client: 'post',
    answer: { access_token: 'at-1', scope: 'one,two', token_type: 'bearer' },
  },
  SlackOauth2: {
    authorize: 'https://slack.com/oauth/v2_user/authorize',
    token: 'https://slack.com/api/oauth.v2.user.access',
    separator: ',',
    client: 'post',
    answer: { ok: true, access_token: 'at-1', token_type: 'user', scope: 'one,two', user_id: 'U1' },
  },
  SalesforceOauth2: {
    discovery: {
      url: 'https://login.salesforce.com/.well-known/openid-configuration',
      document: {
        issuer: 'https://login.salesforce.com',
        authorization_endpoint: 'https://login.salesforce.com/services/oauth2/authorize',
        token_endpoint: 'https://login.salesforce.com/services/oauth2/token',
      },
    },
    ...of('https://login.salesforce.com/services/oauth2', ['/authorize', '/token']),
    client: 'post',
    // It says no time.
    answer: {
      access_token: 'at-1',
      token_type: 'Bearer',
      refresh_token: 'rt-1',
      instance_url: 'https://x.example',
      issued_at: '1',
    },
  },
  MicrosoftOauth2: {
    config: { tenantId: 'contoso.example' },
    discovery: {
      url: 'https://login.microsoftonline.com/contoso.example/v2.0/.well-known/openid-configuration',
      document: {
        issuer: 'https://login.microsoftonline.com/11111111-2222/v2.0',
        authorization_endpoint: 'https://login.microsoftonline.com/contoso.example/oauth2/v2.0/authorize',
        token_endpoint: 'https://login.microsoftonline.com/contoso.example/oauth2/v2.0/token',
      },
    },
    ...of('https://login.microsoftonline.com/contoso.example/oauth2/v2.0', ['/authorize', '/token']),
    client: 'post',
    answer: { ...RENEWABLE, scope: 'one two', ext_expires_in: 3599 },
  },
  AtlassianOauth2: {
    ...of('https://auth.atlassian.com', ['/authorize', '/oauth/token']),
    extras: { audience: 'api.atlassian.com', prompt: 'consent' },
    client: 'post',
    pkce: false,
    answer: { ...RENEWABLE, scope: 'one two' },
  },
  LinkedinOauth2: {
    ...of('https://www.linkedin.com/oauth/v2', ['/authorization', '/accessToken']),
    client: 'post',
    pkce: false,
    answer: {
      access_token: 'at-1',
      expires_in: 5_184_000,
      refresh_token: 'rt-1',
      refresh_token_expires_in: 1,
      scope: 'one,two',
    },
  },
  XOauth2: {
    authorize: 'https://x.com/i/oauth2/authorize',
    token: 'https://api.x.com/2/oauth2/token',
    client: 'basic',
    answer: { ...RENEWABLE, token_type: 'bearer', scope: 'one two' },
  },
  OktaOauth2: tenant('https://acme.okta.example', ['/oauth2/v1/authorize', '/oauth2/v1/token']),
  OneLoginOauth2: tenant('https://acme.onelogin.example/oidc/2', ['/auth', '/token']),
  PingOneOauth2: tenant('https://auth.pingone.example/env/as', ['/authorize', '/token']),
  FacebookOauth2: {
    authorize: 'https://www.facebook.com/dialog/oauth',
    token: 'https://graph.facebook.com/oauth/access_token',
    separator: ',',
    client: 'post',
    answer: { access_token: 'at-1', token_type: 'bearer', expires_in: 5_183_944 },
  },
  YandexOauth2: {
    ...of('https://oauth.yandex.com', ['/authorize', '/token']),
    client: 'post',
    answer: { ...RENEWABLE, token_type: 'bearer', scope: 'one two' },
  },
  RedditOauth2: {
    ...of('https://www.reddit.com/api/v1', ['/authorize', '/access_token']),
    extras: { duration: 'permanent' },
    client: 'basic',
    pkce: false,
    answer: { ...RENEWABLE, token_type: 'bearer', scope: 'one two' },
  },
  ZoomOauth2: {
    ...of('https://zoom.us/oauth', ['/authorize', '/token']),
    client: 'basic',
    answer: { ...RENEWABLE, token_type: 'bearer', scope: 'one two', api_url: 'https://api.zoom.us' },
  },
  TwitchOauth2: {
    ...of('https://id.twitch.tv/oauth2', ['/authorize', '/token']),
    client: 'post',
    pkce: false,
    answer: { ...RENEWABLE, token_type: 'bearer', scope: ['one', 'two'] },
  },
  SpotifyOauth2: {
    ...of('https://accounts.spotify.com', ['/authorize', '/api/token']),
    client: 'basic',
    answer: { ...RENEWABLE, scope: 'one two' },
  },
  DropboxOauth2: {
    authorize: 'https://www.dropbox.com/oauth2/authorize',
    extras: { token_access_type: 'offline' },
    token: 'https://api.dropboxapi.com/oauth2/token',
    client: 'post',
    answer: { ...RENEWABLE, token_type: 'bearer', scope: 'one two', uid: '1', account_id: 'dbid:1' },
  },
  NotionOauth2: {
    ...of('https://api.notion.com/v1/oauth', ['/authorize', '/token']),
    extras: { owner: 'user' },
    client: 'basic',
    pkce: false,
    // It says no time, and nothing of scopes.
    answer: {
      access_token: 'at-1',
      token_type: 'bearer',
      refresh_token: 'rt-1',
      bot_id: 'b',
      workspace_id: 'w',
      owner: { type: 'user' },
    },
  },
  HubspotOauth2: {
    authorize: 'https://app.hubspot.com/oauth/authorize',
    token: 'https://api.hubapi.com/oauth/v1/token',
    client: 'post',
    pkce: false,
    answer: { access_token: 'at-1', token_type: 'bearer', refresh_token: 'rt-1', expires_in: 1800 },
  },
  CyberArkOauth2: tenant('https://acme.cyberark.example/oauth2/app', ['/authorize', '/token']),
  FusionAuthOauth2: tenant('https://auth.fusion.example', ['/oauth2/authorize', '/oauth2/token']),
  // Its issuer ends with a slash.
  Auth0Oauth2: {
    ...tenant('https://acme.auth0.example/', ['/authorize', '/oauth/token'], 'https://acme.auth0.example'),
  },
  CognitoOauth2: tenant(
    'https://cognito-idp.us-east-1.example/us-east-1_abc',
    ['/oauth2/authorize', '/oauth2/token'],
    'https://acme.auth.us-east-1.example',
  ),
};

/** A request that a vendor got. */
interface Came {
  url: string;
  method: string;
  headers: Record<string, string>;
  body: URLSearchParams;
}

let database: TemporaryDatabase;
let lab: FlowLab;
let came: Came[] = [];
/** What stands where; everything else is not there. */
let answers: Record<string, object> = {};

function answerOf(url: string, status: number, body: object): Awaited<ReturnType<Outbound['fetch']>> {
  const text = JSON.stringify(body);
  return {
    ...{ status, url, headers: { 'content-type': 'application/json' }, body: Readable.from([text]) },
    ...{ bytes: async () => Buffer.from(text), text: async () => text, json: async () => JSON.parse(text) },
  };
}

beforeAll(async () => {
  database = await temporaryPglite();
  await migrate(database.database, [...storageMigrations, ...secretMigrations, ...flowMigrations], silent);
  const fetch: Outbound['fetch'] = async (at, { method = 'GET', headers = {}, body = '' } = {}) => {
    const url = String(at);
    const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
    came.push({ url, method, headers: Object.fromEntries(lower), body: new URLSearchParams(String(body)) });
    const answer = answers[url];
    return answerOf(url, answer ? 200 : 404, answer ?? {});
  };
  lab = await openFlowLab(database.database, { fetch });
  await lab.workload('assistant');
});
afterAll(async () => {
  await lab?.close();
  await database?.dispose();
});

/** What a client says of itself in a token request. */
function expectClient({ headers, body }: Came, how: Documented['client']): void {
  const basic = `Basic ${btoa('the-agents:a-client-secret-4711')}`;
  const sent = [headers.authorization, body.get('client_id'), body.get('client_secret')];
  expect(sent).toEqual(how === 'basic' ? [basic, null, null] : [undefined, 'the-agents', 'a-client-secret-4711']);
}

it.each(Object.entries(DOCUMENTED) as [Vendor, Documented][])(
  '%s is asked as its documentation says',
  async (vendor, told) => {
    const { separator = ' ', extras = {}, pkce = true } = told;
    came = [];
    answers = { [told.token]: told.answer, ...(told.discovery && { [told.discovery.url]: told.discovery.document }) };
    const { member } = VENDORS[vendor];
    const input = { [member]: { clientId: 'the-agents', clientSecret: 'given below', ...told.config } };
    const { data } = givenProvider(
      { credentialProviderVendor: vendor, oauth2ProviderConfigInput: input as never },
      crypto.randomUUID(),
    );
    const provider = await lab.provider(data);
    const request = lab.request(provider, {
      user: { kind: 'id', id: 'ada' },
      scopes: ['one', 'two'],
      customParameters: {},
    });

    const { sessionUri = '' } = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
    const authorization = await lab.first.federation.open(sessionUri);
    if (!authorization) throw new Error('there is nothing to allow');
    const page = new URL(await lab.first.federation.allow(authorization, 'browser'));
    expect(`${page.origin}${page.pathname}`).toBe(told.authorize);
    const { state = '', code_challenge: challenge, ...asked } = Object.fromEntries(page.searchParams);
    const callback = `https://agents.example/identities/oauth2/callback/${data.id}`;
    expect(asked).toEqual({
      ...{
        response_type: 'code',
        client_id: 'the-agents',
        redirect_uri: callback,
        scope: `one${separator}two`,
        ...extras,
      },
      ...(pkce && { code_challenge_method: 'S256' }),
    });
    expect(state).toMatch(/^[\w-]{43}$/);
    expect(challenge).toEqual(pkce ? expect.stringMatching(/^[\w-]{43}$/) : undefined);

    const back = new URL(`${callback}?${new URLSearchParams({ code: 'the-code', state })}`);
    const session = broughtBack(await lab.back(lab.first, back, 'browser'));
    await lab.first.federation.complete(session, { userId: 'ada' }, lab.caller);
    const [redeemed] = came.filter(({ url }) => url === told.token);
    if (!redeemed) throw new Error('the token endpoint was not asked');
    expect(redeemed).toMatchObject({
      method: 'POST',
      headers: {
        accept: 'application/json',
        'content-type': expect.stringMatching(/^application\/x-www-form-urlencoded/),
        'user-agent': 'agentplatform',
      },
    });
    expectClient(redeemed, told.client);
    const {
      client_id: _id,
      client_secret: _secret,
      code_verifier: verifier,
      ...grant
    } = Object.fromEntries(redeemed.body);
    expect(grant).toEqual({ grant_type: 'authorization_code', code: 'the-code', redirect_uri: callback });
    expect(verifier && createHash('sha256').update(verifier).digest('base64url')).toBe(challenge);
    expect((await lab.ask(lab.first, request)).accessToken).toBe('at-1');

    // Renewed where it ends and can be.
    const { expires_in: seconds, refresh_token: refreshToken } = told.answer as Partial<typeof RENEWABLE>;
    if (seconds === undefined || refreshToken === undefined) return;
    answers[told.token] = { ...told.answer, access_token: 'at-2', refresh_token: 'rt-2' };
    lab.clock.jump(seconds * 1000);
    expect((await lab.ask(lab.first, request)).accessToken).toBe('at-2');
    const renewed = came.at(-1);
    if (!renewed) throw new Error('the token endpoint was not asked');
    expectClient(renewed, told.client);
    expect(Object.fromEntries(renewed.body)).toMatchObject({ grant_type: 'refresh_token', refresh_token: 'rt-1' });
  },
);

it('are all there, and each that is sent no PKCE is named among the differences', async () => {
  expect(Object.keys(DOCUMENTED).toSorted()).toEqual(Object.keys(VENDORS).toSorted());
  expect(Object.keys(DOCUMENTED)).toHaveLength(25);
  const page = await readFile(new URL('../../../../../../docs/deviations/identity.md', import.meta.url), 'utf8');
  const [, section = ''] = page.split('## Vendors without PKCE');
  const without = Object.values(VENDORS).filter(({ pkce }) => !pkce);
  for (const { title } of without) expect(section.split('\n## ')[0]).toContain(title);
});

it.each([
  ['Slack', 'SlackOauth2', { ok: false, error: 'invalid_code' }],
  ['GitHub', 'GithubOauth2', { error: 'bad_verification_code', error_description: 'The code is incorrect.' }],
] as const)('%s says no with status 200, and the consent has failed', async (_name, vendor, refusal) => {
  const { token } = DOCUMENTED[vendor];
  answers = { [token]: refusal };
  const { member } = VENDORS[vendor];
  const input = { [member]: { clientId: 'the-agents', clientSecret: 'given below' } };
  const { data } = givenProvider(
    { credentialProviderVendor: vendor, oauth2ProviderConfigInput: input as never },
    crypto.randomUUID(),
  );
  const request = lab.request(await lab.provider(data), { user: { kind: 'id', id: 'bob' }, customParameters: {} });
  const { sessionUri = '' } = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
  const authorization = await lab.first.federation.open(sessionUri);
  if (!authorization) throw new Error('there is nothing to allow');
  const page = new URL(await lab.first.federation.allow(authorization, 'browser'));
  const parameters = new URLSearchParams({ code: 'the-code', state: page.searchParams.get('state') ?? '' });
  const back = new URL(`https://agents.example/identities/oauth2/callback/${data.id}?${parameters}`);
  const session = broughtBack(await lab.back(lab.first, back, 'browser'));
  await expect(lab.first.federation.complete(session, { userId: 'bob' }, lab.caller)).rejects.toMatchObject({
    code: 'ValidationException',
    message: expect.stringContaining(refusal.error),
  });
  expect(await lab.ask(lab.first, request, { sessionUri })).toMatchObject({ sessionStatus: 'FAILED' });
});
