import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, jwtVerify, SignJWT } from 'jose';
import Provider from 'oidc-provider';

/** A real authorization server whose people consent at once: whom it is asked for by `login_hint`. */
export interface ConsentProvider {
  issuer: string;
  discoveryUrl: string;
  clientId: string;
  clientSecret: string;
  /** What came to its token endpoint since the start. */
  asked: URLSearchParams[];
  /** A token of that user, for the audience `agents`, signed by this provider. */
  userToken(subject: string, claims?: Record<string, unknown>): Promise<string>;
  /** Who the bearer of an access token is, by the provider's own word. */
  whoIs(accessToken: string): Promise<string | undefined>;
  /** Whether an access token counts, a client's own among them. */
  isActive(accessToken: string): Promise<boolean>;
  revoke(refreshToken: string): Promise<void>;
  /** Takes the place of the token endpoint until it is called off. */
  instead(listener: RequestListener | undefined): void;
  /** Who logs in where the client names nobody; ada unless said otherwise. */
  loginAs(subject: string): void;
  /** The same, of the revocation endpoint. */
  insteadOfRevoking(listener: RequestListener | undefined): void;
  close(): Promise<void>;
}

export interface ConsentProviderOptions {
  /** Exact addresses that people may be sent back to; known late, so it may be filled later. */
  redirectUris?: string[];
  /** Seconds that an access token counts. */
  lifeSeconds?: number;
  /** Seconds that it says that one does, where that is something else. */
  saysSeconds?: number;
  /** A public key, for a client that signs (`private_key_jwt`). */
  clientKey?: JWK;
}

const CLIENT = { id: 'the-agents', secret: 'a-client-secret-4711' };

export async function startConsentProvider(options: ConsentProviderOptions = {}): Promise<ConsentProvider> {
  const { lifeSeconds = 600, saysSeconds, clientKey } = options;
  let listener: RequestListener = (_req, res) => res.writeHead(503).end();
  let loginAs = 'ada';
  let instead: RequestListener | undefined;
  let insteadOfRevoking: RequestListener | undefined;
  const asked: URLSearchParams[] = [];
  const server = createServer((req, res) => {
    const path = (req.url ?? '').split('?')[0];
    if (path === '/token/revocation' && insteadOfRevoking) return insteadOfRevoking(req, res);
    if (path !== '/token') return listener(req, res);
    if (instead) return instead(req, res);
    // Read by the provider as well: its parser takes what was read before.
    const parts: Buffer[] = [];
    req.on('data', (part: Buffer) => parts.push(part));
    req.on('end', () => {
      const body = Buffer.concat(parts).toString();
      asked.push(new URLSearchParams(body));
      Object.assign(req, { body: Object.fromEntries(new URLSearchParams(body)) });
      listener(req, res);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const keys = await generateKeyPair('RS256', { extractable: true });
  const jwk = { ...(await exportJWK(keys.privateKey)), kid: 'one', alg: 'RS256', use: 'sig' };
  const authentication = clientKey
    ? { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [clientKey] } }
    : { client_secret: CLIENT.secret };
  const provider = new Provider(issuer, {
    jwks: { keys: [jwk] },
    clients: [
      {
        client_id: CLIENT.id,
        ...authentication,
        grant_types: ['authorization_code', 'refresh_token', 'client_credentials', EXCHANGE, JWT_BEARER],
        redirect_uris: options.redirectUris ?? ['https://nowhere.example/'],
        response_types: ['code'],
      },
    ],
    scopes: ['openid', 'offline_access', 'read', 'write'],
    pkce: { required: () => true },
    ttl: {
      AccessToken: lifeSeconds,
      ClientCredentials: lifeSeconds,
      RefreshToken: 86_400,
      Grant: 86_400,
      Session: 3600,
      Interaction: 600,
    },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    findAccount: async (_ctx: unknown, accountId: string) => ({ accountId, claims: async () => ({ sub: accountId }) }),
    interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    loadExistingGrant: async (ctx: { oidc: { client: { clientId: string }; session: { accountId: string } } }) => {
      const grant = new provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope('openid offline_access read write');
      grant.addResourceScope('urn:orders', 'read write');
      await grant.save();
      return grant;
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      revocation: { enabled: true },
      introspection: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          audience: resource,
          scope: 'read write',
          accessTokenFormat: 'opaque',
          accessTokenTTL: lifeSeconds,
        }),
      },
    },
  });

  /** Both grants that exchange a token: RFC 8693, and RFC 7523 section 2.1. The token is one of this provider's users. */
  const exchange = async (ctx: ExchangeContext): Promise<void> => {
    const { subject_token: subject, assertion, scope, audience, actor_token: actor } = ctx.oidc.params;
    const { payload } = await jwtVerify(subject ?? assertion ?? '', keys.publicKey, { issuer, audience: 'agents' });
    ctx.status = 200;
    ctx.body = {
      access_token: await new SignJWT({ scope, act: actor === undefined ? undefined : { token: actor } })
        .setProtectedHeader({ alg: 'RS256', kid: 'one' })
        .setIssuer(issuer)
        .setSubject(payload.sub ?? '')
        .setAudience(String(audience ?? 'urn:orders'))
        .setExpirationTime('5m')
        .sign(keys.privateKey),
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: 300,
    };
  };
  const handler = (async (...given: unknown[]) => {
    const ctx = given.find((one): one is ExchangeContext => typeof one === 'object' && one !== null && 'oidc' in one);
    if (!ctx) throw new Error('the provider calls grants otherwise now');
    await exchange(ctx);
  }) as (...given: never[]) => Promise<void>;
  const beside = [
    'subject_token_type',
    'actor_token',
    'actor_token_type',
    'scope',
    'audience',
    'resource',
    'requested_token_use',
  ];
  provider.registerGrantType(EXCHANGE, handler, ['subject_token', ...beside]);
  provider.registerGrantType(JWT_BEARER, handler, ['assertion', ...beside]);

  provider.use(async (ctx, next) => {
    await next();
    if (saysSeconds !== undefined && ctx.path === '/token' && ctx.body.expires_in !== undefined)
      ctx.body = { ...ctx.body, expires_in: saysSeconds };
  });
  const call = provider.callback();
  const interact = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const { params } = await provider.interactionDetails(req, res);
    await provider.interactionFinished(req, res, { login: { accountId: params.login_hint ?? loginAs }, consent: {} });
  };
  listener = (req, res) => {
    if (req.url?.startsWith('/interaction/'))
      void interact(req, res).catch((error) => res.writeHead(500).end(String(error)));
    else void call(req, res);
  };
  const post = async (path: string, form: Record<string, string>): Promise<Response> =>
    fetch(`${issuer}${path}`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${CLIENT.id}:${CLIENT.secret}`)}` },
      body: new URLSearchParams(form),
    });
  const introspect = async (token: string) =>
    (await (await post('/token/introspection', { token })).json()) as { active: boolean; sub?: string };
  return {
    issuer,
    discoveryUrl: `${issuer}/.well-known/openid-configuration`,
    clientId: CLIENT.id,
    clientSecret: CLIENT.secret,
    asked,
    userToken: (subject, claims = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', kid: 'one' })
        .setIssuer(issuer)
        .setSubject(subject)
        .setAudience('agents')
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(keys.privateKey),
    async whoIs(token) {
      const { active, sub } = await introspect(token);
      return active ? sub : undefined;
    },
    isActive: async (token) => (await introspect(token)).active,
    async revoke(token) {
      await post('/token/revocation', { token });
    },
    instead(listener) {
      instead = listener;
    },
    loginAs(subject) {
      loginAs = subject;
    },
    insteadOfRevoking(listener) {
      insteadOfRevoking = listener;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

interface ExchangeContext {
  status: number;
  body: unknown;
  oidc: { params: Record<string, string | undefined> };
}
