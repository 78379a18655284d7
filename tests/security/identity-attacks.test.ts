import { createHmac } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import {
  CompleteResourceTokenAuthCommand,
  GetResourceApiKeyCommand,
  GetResourceOauth2TokenCommand,
  type GetResourceOauth2TokenCommandInput,
  GetWorkloadAccessTokenCommand,
  GetWorkloadAccessTokenForJWTCommand,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateApiKeyCredentialProviderCommand,
  CreateConsentPortalCommand,
  CreateOauth2CredentialProviderCommand,
  CreateWorkloadIdentityCommand,
  GetOauth2CredentialProviderCommand,
  UpdateOauth2CredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { Browser } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import {
  type ConsentProvider,
  startConsentProvider,
} from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider } from '../support/consent-platform.ts';
import { deployAgent } from '../support/deploy.ts';
import { newRole, newUser } from '../support/iam.ts';
import { sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { attempt, ENDLESS, MIB, SENSELESS, SILENT } from './hostile-server.ts';

/**
 * Attacks on Identity by their names, at the doors of a platform that runs, each with its control. Where one stands elsewhere, too:
 *
 * | attack | elsewhere |
 * |---|---|
 * | wrong audience, `alg: none`, HS256 with the public key, expired, not yet valid, rotated key, keys that a token brings, long tokens | `kernel/auth/jwt.test.ts` |
 * | the same of the token that is exchanged for a user | `flows/exchanges.test.ts` |
 * | replayed state, foreign state, login CSRF of a consent, mixed-up issuer, open redirect of a consent | `flows/flows.test.ts` |
 * | open redirect, login CSRF and session fixation of a portal | `e2e/consent-browser.test.ts` |
 * | private addresses at every hop, pinned addresses | `kernel/outbound/outbound.test.ts`, `security/dns-rebinding.test.ts`, `flows/exchanges.test.ts` |
 * | confused deputy: another user's or agent's session, another account's token | `flows/flows.test.ts`, `workloads/workload-tokens.test.ts` |
 * | two users in one browser | `e2e/identity-tokens.test.ts` |
 * | a token endpoint that answers garbage, HTML or 10 MB, or repeats a secret | `flows/flows.test.ts` |
 * | issuers of users' tokens that answer slowly, without end or without sense | `security/identity-providers.test.ts` |
 */
const BACK = 'https://app.example/back';
/** Where nothing may be called, and the one address of loopback that may. */
const [INSIDE, OPEN] = ['127.0.0.2', '127.0.0.1'];

let platform: TestPlatform;
let clients: Clients;
let issuer: OidcServer;
let orders: ConsentProvider;
let runtime: string;
let home: string;

beforeAll(async () => {
  issuer = await startOidcServer();
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', `${OPEN}/32`] });
  clients = clientsOf(platform);
  home = `arn:aws:bedrock-agentcore:${platform.ready.region}:${platform.ready.accountId}`;
  orders = await connectConsentProvider(clients, 'orders');
  const application = { name: 'assistant', allowedResourceOauth2ReturnUrls: [BACK] };
  await clients.control.send(new CreateWorkloadIdentityCommand(application));
  // Without an application that could confirm whose consent it was: the page does.
  for (const name of ['kiosk', 'other']) await clients.control.send(new CreateWorkloadIdentityCommand({ name }));
  ({ arn: runtime } = await deployAgent(platform, clients, {
    folder: join(import.meta.dirname, '../support/probe-agent'),
    authorizerConfiguration: {
      customJWTAuthorizer: { discoveryUrl: issuer.discoveryUrl, allowedAudience: ['urn:agents'] },
    },
  }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await orders?.close();
  await issuer?.close();
});

/** The name of the error, or of none. */
const refusal = async (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => 'taken',
    (error: Error) => error.name,
  );

const workloadToken = async (userId: string, workloadName = 'assistant'): Promise<string> =>
  (await clients.data.send(new GetWorkloadAccessTokenForUserIdCommand({ workloadName, userId }))).workloadAccessToken ??
  '';

/** Asks for a token of a user at `orders`. */
const federate = (
  workloadIdentityToken: string,
  more: Partial<GetResourceOauth2TokenCommandInput> = {},
  of = clients,
) =>
  of.data.send(
    new GetResourceOauth2TokenCommand({
      ...{ workloadIdentityToken, resourceCredentialProviderName: 'orders', scopes: ['openid', 'read'] },
      ...{ oauth2Flow: 'USER_FEDERATION', customParameters: { login_hint: 'ada', prompt: 'login' } },
      ...more,
    }),
  );

/** What a person's browser does up to where the provider sends it back to the platform. */
async function allowed(authorizationUrl: string, browser: Browser): Promise<URL> {
  const { location } = await browser.decide(authorizationUrl);
  const { url } = await browser.follow(location ?? '', ({ pathname }) => pathname.includes('/oauth2/callback/'));
  return new URL(url);
}

describe('a user’s token', () => {
  const seconds = (): number => Math.floor(Date.now() / 1000);
  const claims = (more: JWTPayload = {}): JWTPayload => ({
    ...{ iss: issuer.issuer, sub: 'ada', aud: 'urn:agents', iat: seconds(), exp: seconds() + 300 },
    ...more,
  });
  const sign = (said: JWTPayload, header: object = {}, key = issuer.signingKey().key): Promise<string> =>
    new SignJWT(said).setProtectedHeader({ alg: 'RS256', kid: issuer.signingKey().kid, ...header }).sign(key);
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const another = async () => (await generateKeyPair('RS256')).privateKey;
  /** The public key as whoever verifies might have it at hand, as the secret of a MAC. */
  const mac = (secret: string): string => {
    const signed = `${encode({ alg: 'HS256', kid: issuer.signingKey().kid })}.${encode(claims())}`;
    return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
  };

  const FORGED: Record<string, () => Promise<string> | string> = {
    'alg none': () => `${encode({ alg: 'none' })}.${encode(claims())}.`,
    'alg none with a signature': () => `${encode({ alg: 'NONE' })}.${encode(claims())}.AAAA`,
    'HS256 with the public key': () => mac(JSON.stringify(issuer.signingKey().publicJwk)),
    'HS256 with the modulus': () => mac(issuer.signingKey().publicJwk.n ?? ''),
    expired: () => sign(claims({ exp: seconds() - 120 })),
    'without an end': () => sign(claims({ exp: undefined })),
    'not yet valid': () => sign(claims({ nbf: seconds() + 120 })),
    'issued later': () => sign(claims({ iat: seconds() + 120 })),
    'of another key under the same kid': async () => sign(claims(), {}, await another()),
    'of another key without a kid': async () => sign(claims(), { kid: undefined }, await another()),
    'kid: a path': async () => sign(claims(), { kid: '../../../../dev/null' }, await another()),
    'kid: a statement': async () => sign(claims(), { kid: "x' UNION SELECT 'AAAA" }, await another()),
    'kid: an address': async () => sign(claims(), { kid: `${issuer.issuer}/jwks` }, await another()),
    'kid: a member of every object': async () => sign(claims(), { kid: '__proto__' }, await another()),
    'a key of its own': async () => {
      const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
      return sign(claims(), { jwk: await crypto.subtle.exportKey('jwk', publicKey) }, privateKey);
    },
    'keys at an address of its own': async () => sign(claims(), { jku: 'http://127.0.0.2/' }, await another()),
    'an extension that must be understood': () =>
      new SignJWT(claims())
        .setProtectedHeader({ alg: 'RS256', kid: issuer.signingKey().kid, crit: ['x-unknown'], 'x-unknown': 1 })
        .sign(issuer.signingKey().key, { crit: { 'x-unknown': true } }),
    'of 1 MB': () => sign(claims({ more: 'x'.repeat(MIB) })),
  };

  /** A session that waits for a word of whose it is; `done` after that word. */
  let session: { id: string; uri: string; token: string };
  beforeAll(async () => {
    const userToken = await sign(claims());
    const command = new GetWorkloadAccessTokenForJWTCommand({ workloadName: 'assistant', userToken });
    const token = (await clients.data.send(command)).workloadAccessToken ?? '';
    const begun = await federate(token, { resourceOauth2ReturnUrl: BACK });
    const browser = new Browser();
    const back = await allowed(begun.authorizationUrl ?? '', browser);
    const { url } = await browser.follow(back.href, ({ host }) => host === 'app.example');
    session = { id: new URL(url).searchParams.get('session_id') ?? '', uri: begun.sessionUri ?? '', token };
  });

  const DOORS: Record<string, (userToken: string) => Promise<string>> = {
    GetWorkloadAccessTokenForJWT: (userToken) =>
      refusal(clients.data.send(new GetWorkloadAccessTokenForJWTCommand({ workloadName: 'assistant', userToken }))),
    CompleteResourceTokenAuth: (userToken) =>
      refusal(
        clients.data.send(
          new CompleteResourceTokenAuthCommand({ sessionUri: session.id, userIdentifier: { userToken } }),
        ),
      ),
    InvokeAgentRuntime: async (userToken) => {
      const answer = await fetch(`${platform.ready.endpoint}/runtimes/${encodeURIComponent(runtime)}/invocations`, {
        method: 'POST',
        headers: {
          ...{ authorization: `Bearer ${userToken}`, 'content-type': 'application/json' },
          'x-amzn-bedrock-agentcore-runtime-session-id': sessionId('attacks'),
        },
        body: '{"do":"count"}',
      });
      await answer.text();
      if (answer.ok) return 'taken';
      return answer.status === 431
        ? 'too large'
        : (answer.headers.get('x-amzn-errortype') ?? '').split(':')[0] || `${answer.status}`;
    },
  };
  const wanted = (attack: string, door: string): string => {
    if (attack === 'of 1 MB') return door === 'InvokeAgentRuntime' ? 'too large' : 'ValidationException';
    // The model's own pattern wants a signature in a member.
    const noMember = attack === 'alg none' && door !== 'InvokeAgentRuntime';
    return noMember ? 'ValidationException' : 'UnauthorizedException';
  };

  it.each(Object.entries(FORGED))('is taken at no door: %s', async (attack, forge) => {
    const token = await forge();
    for (const [door, ask] of Object.entries(DOORS))
      expect([door, await ask(token)]).toEqual([door, wanted(attack, door)]);
    // Nothing has changed: the session waits as before.
    expect(
      (await federate(session.token, { resourceOauth2ReturnUrl: BACK, sessionUri: session.uri })).accessToken,
    ).toBe(undefined);
  });

  it('for another audience is none of a runtime’s', async () => {
    const invoke = DOORS.InvokeAgentRuntime as (token: string) => Promise<string>;
    for (const aud of ['urn:others', ['urn:others'], 'urn:agents.evil', 'URN:AGENTS', undefined])
      expect(await invoke(await sign(claims({ aud })))).toBe('UnauthorizedException');
    expect(await invoke(await sign(claims({ aud: ['urn:others', 'urn:agents'] })))).toBe('taken');
  });

  it('of another user completes nothing; the control, of the user himself, opens every door', async () => {
    const ask = (token: string) => DOORS.CompleteResourceTokenAuth?.(token);
    expect(await ask(await sign(claims({ sub: 'eve' })))).toBe('AccessDeniedException');
    for (const [door, open] of Object.entries(DOORS))
      expect([door, await open(await sign(claims()))]).toEqual([door, 'taken']);
    const { accessToken = '' } = await federate(session.token, {
      resourceOauth2ReturnUrl: BACK,
      sessionUri: session.uri,
    });
    expect(await orders.whoIs(accessToken)).toBe('ada');
  });
});

describe('the statement of who signed in at a portal', () => {
  it('counts for this client and this try alone', async () => {
    const { control } = clients;
    const settings = (server?: ConsentProvider) => ({
      ...{ name: 'staff', credentialProviderVendor: 'CustomOauth2' as const },
      oauth2ProviderConfigInput: {
        customOauth2ProviderConfig: {
          oauthDiscovery: {
            discoveryUrl: server?.discoveryUrl ?? 'https://later.example/.well-known/openid-configuration',
          },
          ...{ clientId: server?.clientId ?? 'later', clientSecret: server?.clientSecret ?? 'later' },
        },
      },
    });
    const { credentialProviderArn = '' } = await control.send(new CreateOauth2CredentialProviderCommand(settings()));
    const right = { Effect: 'Allow', Action: 'bedrock-agentcore:GetResourceOauth2Token', Resource: '*' };
    const { portalUrl = '' } = await control.send(
      new CreateConsentPortalCommand({
        ...{ name: 'people', executionRoleArn: await newRole(platform, 'people', [right]) },
        idpConfig: { credentialProviderArn, scopes: ['openid'] },
        sources: [{ identifier: 'tools-a1b2c3d4e5', type: 'agentcore-gateway' }],
      }),
    );
    const staff = await startConsentProvider({ redirectUris: [`${portalUrl}/callback`] });
    try {
      await control.send(new UpdateOauth2CredentialProviderCommand(settings(staff)));
      /** What the portal answers when the provider states that; `undefined`: what it says by itself. */
      const signedIn = async (state: ((nonce: string) => Promise<string>) | undefined): Promise<boolean> => {
        const browser = new Browser();
        const { location } = { location: (await browser.send(`${portalUrl}/sign-in`)).headers.get('location') };
        const nonce = new URL(location ?? '').searchParams.get('nonce') ?? '';
        const { url } = await browser.follow(location ?? '', ({ pathname }) => pathname.endsWith('/callback'));
        if (state) {
          const idToken = await state(nonce);
          staff.instead((_req, res) =>
            res
              .setHeader('content-type', 'application/json')
              .end(JSON.stringify({ access_token: 'a', token_type: 'Bearer', id_token: idToken })),
          );
        }
        const { status } = await browser.send(url);
        staff.instead(undefined);
        const page = await (await browser.send(portalUrl)).text();
        expect(status).toBe(page.includes('You are signed in') ? 303 : 502);
        return status === 303;
      };
      const unsigned = (nonce: string): string =>
        [{ alg: 'none' }, { iss: staff.issuer, aud: staff.clientId, sub: 'ada', nonce, exp: 9e9, iat: 1 }]
          .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
          .join('.');
      // Genuine, and for the audience `agents`.
      expect(await signedIn((nonce) => staff.userToken('ada', { nonce }))).toBe(false);
      expect(await signedIn(async (nonce) => `${unsigned(nonce)}.`)).toBe(false);
      expect(await signedIn(async () => 'x'.repeat(MIB / 8))).toBe(false);
      expect(await signedIn(undefined)).toBe(true);
    } finally {
      await staff.close();
    }
  });
});

describe('the answer of a provider to a consent', () => {
  it('counts once, in the browser that went, with the state of that consent', async () => {
    const [ada, victim] = [new Browser(), new Browser()];
    const token = await workloadToken('csrf');
    const asked = { resourceOauth2ReturnUrl: BACK };
    const begun = await federate(token, asked);
    const back = await allowed(begun.authorizationUrl ?? '', ada);
    // Login CSRF: the victim follows the link that ends somebody else's consent.
    expect((await victim.send(back.href)).status).toBe(403);
    const foreign = new URL(back);
    const second = await federate(await workloadToken('csrf-2'), asked);
    const theirs = await allowed(second.authorizationUrl ?? '', victim);
    foreign.searchParams.set('state', theirs.searchParams.get('state') ?? '');
    expect((await ada.send(foreign.href)).status).toBe(403);
    const none = new URL(back);
    none.searchParams.delete('state');
    expect((await ada.send(none.href)).status).toBe(403);
    // The control, and the same once more.
    const answer = await ada.send(back.href);
    expect([answer.status, answer.headers.get('location')]).toEqual([
      303,
      expect.stringContaining(`${BACK}?session_id=`),
    ]);
    expect((await ada.send(back.href)).status).toBe(403);
  });

  it('from another issuer ends the consent (mix-up), and nothing is sent there', async () => {
    const browser = new Browser();
    const token = await workloadToken('mix-up', 'kiosk');
    const begun = await federate(token);
    const back = await allowed(begun.authorizationUrl ?? '', browser);
    back.searchParams.set('iss', 'https://mallory.example');
    const before = orders.asked.length;
    expect((await browser.send(back.href)).status).toBe(400);
    expect(orders.asked.length).toBe(before);
    const { sessionUri } = begun;
    expect(await federate(token, { sessionUri })).toMatchObject({ sessionStatus: 'FAILED' });
    // The control: it begins again.
    const again = await federate(token);
    const good = await allowed(again.authorizationUrl ?? '', browser);
    expect((await browser.send(good.href)).status).toBe(200);
    expect((await federate(token, { sessionUri: again.sessionUri })).accessToken).toMatch(/^[\w-]+$/);
  });

  it('leads nowhere but to an address of the workload (open redirect)', async () => {
    const token = await workloadToken('redirect');
    for (const resourceOauth2ReturnUrl of [
      'https://evil.example/',
      `${BACK}.evil.example`,
      `${BACK}/`,
      '//evil.example',
    ])
      expect(await refusal(federate(token, { resourceOauth2ReturnUrl }))).toBe('ValidationException');
    const { authorizationUrl = '' } = await federate(token, { resourceOauth2ReturnUrl: BACK });
    const browser = new Browser();
    const back = await allowed(authorizationUrl, browser);
    for (const name of ['redirect_uri', 'return_to', 'next', 'session_id', 'resourceOauth2ReturnUrl'])
      back.searchParams.set(name, 'https://evil.example/');
    const location = (await browser.send(back.href)).headers.get('location') ?? '';
    expect(location).toMatch(/^https:\/\/app\.example\/back\?session_id=/);
    expect(location).not.toContain('evil');
  });
});

describe('a confused deputy', () => {
  it('gets nothing with another’s token, of another’s provider, or for another’s user', async () => {
    await clients.control.send(new CreateApiKeyCredentialProviderCommand({ name: 'theirs', apiKey: 'their-key-4711' }));
    await clients.control.send(new CreateApiKeyCredentialProviderCommand({ name: 'mine', apiKey: 'my-key' }));
    const actions = ['GetResourceApiKey', 'GetResourceOauth2Token', 'GetWorkloadAccessTokenForUserId'];
    const allow = (...Resource: string[]) => ({
      ...{ Effect: 'Allow', Action: actions.map((name) => `bedrock-agentcore:${name}`), Resource },
    });
    const directory = `${home}:workload-identity-directory/default`;
    const credentials = await newUser(platform, 'deputy', [
      allow(directory, `${directory}/workload-identity/other`, `${home}:token-vault/default`),
      allow(`${home}:token-vault/default/apikeycredentialprovider/mine`),
    ]);
    const deputy = clientsOf(platform, { credentials });
    const DENIED = 'AccessDeniedException';
    try {
      const own = await workloadToken('eve', 'other');
      const stolen = await workloadToken('ada', 'kiosk');
      const key = (workloadIdentityToken: string, resourceCredentialProviderName: string) =>
        deputy.data.send(new GetResourceApiKeyCommand({ workloadIdentityToken, resourceCredentialProviderName }));
      expect(await refusal(key(own, 'theirs'))).toBe(DENIED);
      expect(await refusal(key(stolen, 'mine'))).toBe(DENIED);
      expect(await refusal(federate(own, {}, deputy))).toBe(DENIED);
      expect(await refusal(federate(stolen, {}, deputy))).toBe(DENIED);
      const forAda = (workloadName: string) =>
        deputy.data.send(new GetWorkloadAccessTokenForUserIdCommand({ workloadName, userId: 'ada' }));
      expect(await refusal(forAda('kiosk'))).toBe(DENIED);
      // The controls.
      expect((await key(own, 'mine')).apiKey).toBe('my-key');
      expect(await refusal(forAda('other'))).toBe('taken');
      // Ada has consented to `kiosk`: to `other` she has not.
      const first = await federate(await workloadToken('ada-9', 'kiosk'));
      const browser = new Browser();
      await browser.send((await allowed(first.authorizationUrl ?? '', browser)).href);
      expect((await federate(await workloadToken('ada-9', 'kiosk'))).accessToken).toMatch(/^[\w-]+$/);
      expect((await federate(await workloadToken('ada-9', 'other'))).accessToken).toBeUndefined();
      expect((await federate(await workloadToken('eve-9', 'kiosk'))).accessToken).toBeUndefined();
    } finally {
      deputy.close();
    }
  });
});

/** A server that answers by path. */
async function serve(host: string, listener: RequestListener) {
  const seen: string[] = [];
  const server = createServer((req, res) => {
    seen.push(req.url ?? '');
    listener(req, res);
  });
  await new Promise<void>((done) => server.listen(0, host, done));
  const origin = `http://${host}:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  };
  return { origin, seen, close };
}

let providers = 0;
/** Asks for the agent's own token of a provider with those settings; gives the error's name. */
async function machine(oauthDiscovery: object): Promise<unknown> {
  const name = `attacked-${providers++}`;
  const customOauth2ProviderConfig = {
    oauthDiscovery: oauthDiscovery as never,
    clientId: 'the-agents',
    clientSecret: 'a-client-secret-4711',
  };
  await clients.control.send(
    new CreateOauth2CredentialProviderCommand({
      ...{ name, credentialProviderVendor: 'CustomOauth2' },
      oauth2ProviderConfigInput: { customOauth2ProviderConfig },
    }),
  );
  const { workloadAccessToken } = await clients.data.send(
    new GetWorkloadAccessTokenCommand({ workloadName: 'assistant' }),
  );
  const ask = new GetResourceOauth2TokenCommand({
    ...{ workloadIdentityToken: workloadAccessToken, resourceCredentialProviderName: name },
    ...{ scopes: ['read'], oauth2Flow: 'M2M' },
  });
  return clients.data.send(ask);
}

const wellKnown = (issuer: string): object => ({ discoveryUrl: `${issuer}/.well-known/openid-configuration` });

describe('an address inside', () => {
  it('is called by no hop: discovery, where it redirects, what it names, where that redirects', async () => {
    const token = JSON.stringify({ access_token: 'from-inside', token_type: 'Bearer', expires_in: 60 });
    const document = (tokens: string) =>
      JSON.stringify({ issuer: 'https://i.example', token_endpoint: `${tokens}/token` });
    /** Documents are kept for a while: each try has one of its own. */
    const unread = (origin: string): object => wellKnown(`${origin}/${providers}`);
    let hop: { discovery: string; tokens: string; redirect: string | undefined };
    const listener: RequestListener = (req, res) => {
      res.setHeader('content-type', 'application/json');
      const path = req.url ?? '';
      if (path.includes('/.well-known/') && hop.redirect)
        return res.writeHead(302, { location: `${hop.redirect}/document` }).end();
      if (path === '/token' && hop.tokens === 'redirected')
        return res.writeHead(307, { location: `${inside.origin}/token` }).end();
      return res.end(path === '/token' ? token : document(hop.tokens === 'redirected' ? outside.origin : hop.tokens));
    };
    const [inside, outside] = [await serve(INSIDE, listener), await serve(OPEN, listener)];
    try {
      const HOPS: Record<string, typeof hop> = {
        'the discovery document': { discovery: inside.origin, tokens: outside.origin, redirect: undefined },
        'a redirect of it': { discovery: outside.origin, tokens: outside.origin, redirect: inside.origin },
        'a name for it': {
          discovery: inside.origin.replace(INSIDE, '[::ffff:127.0.0.2]'),
          tokens: outside.origin,
          redirect: undefined,
        },
        'the token endpoint': { discovery: outside.origin, tokens: inside.origin, redirect: undefined },
        'a redirect of that': { discovery: outside.origin, tokens: 'redirected', redirect: undefined },
      };
      for (const [name, one] of Object.entries(HOPS)) {
        hop = one;
        expect([name, await refusal(machine(unread(one.discovery)))]).toEqual([name, 'ValidationException']);
        expect([name, inside.seen]).toEqual([name, []]);
      }
      // The controls: the same hops between addresses that are open, but for the last, which carries a secret.
      hop = { discovery: outside.origin, tokens: outside.origin, redirect: undefined };
      expect(await refusal(machine(unread(outside.origin)))).toBe('taken');
      const other = await serve(OPEN, listener);
      hop = { ...hop, redirect: other.origin };
      expect(await refusal(machine(unread(outside.origin)))).toBe('taken');
      expect(other.seen).toEqual(['/document']);
      await other.close();
    } finally {
      await inside.close();
      await outside.close();
    }
  });
});

describe('a provider', () => {
  const FAILED = /^(ValidationException|ServiceUnavailableException)$/;

  it.each([
    ['discovery', (origin: string) => wellKnown(origin)],
    [
      'token endpoint',
      (origin: string) => ({
        authorizationServerMetadata: {
          ...{ issuer: 'https://i.example', authorizationEndpoint: 'https://i.example/' },
          tokenEndpoint: `${origin}/token`,
        },
      }),
    ],
  ])(
    'that is slow, endless or senseless at its %s: in bounded time and bytes, by a class of the wire',
    async (_, at) => {
      const all = { ...SILENT, ...ENDLESS, ...SENSELESS };
      const came = await attempt(all, (origin) => machine(at(origin)));
      for (const { name, error, requests, sent } of came) {
        expect([name, error]).toEqual([name, expect.objectContaining({ name: expect.stringMatching(FAILED) })]);
        expect(requests, name).toBeLessThanOrEqual(4);
        if (name !== 'an endless extension of a chunk') expect(sent, name).toBeLessThan(16 * MIB * 3);
        expect(String(error), name).not.toContain('a-client-secret-4711');
      }
      // The control: one in its senses beside them.
      expect(await refusal(machine(wellKnown(orders.issuer)))).toBe('taken');
      const { callbackUrl } = await clients.control.send(new GetOauth2CredentialProviderCommand({ name: 'orders' }));
      expect(callbackUrl).toContain('/identities/oauth2/callback/');
    },
    120_000,
  );
});
