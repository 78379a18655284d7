import { generateKeyPairSync, sign } from 'node:crypto';
import { type CryptoKey, exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secretMigrations } from '../../../kernel/secrets/index.ts';
import { migrate, storageMigrations } from '../../../kernel/storage/index.ts';
import { silent, type TemporaryDatabase, temporaryPglite } from '../../../kernel/storage/testing/databases.ts';
import type { Oauth2Settings } from '../providers/oauth2-provider.ts';
import { flowMigrations } from './tables.ts';
import { type ConsentProvider, startConsentProvider } from './testing/consent-provider.ts';
import { type FlowLab, openFlowLab } from './testing/flow-lab.ts';
import type { TokenRequest } from './token-request.ts';

const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
const KEY_ARN = 'arn:aws:kms:us-east-1:111122223333:key/1b2c3d4e-0000-4000-8000-000000000001';
let database: TemporaryDatabase;
let lab: FlowLab;
let server: ConsentProvider;
let signing: ConsentProvider;

beforeAll(async () => {
  database = await temporaryPglite();
  await migrate(database.database, [...storageMigrations, ...secretMigrations, ...flowMigrations], silent);
  lab = await openFlowLab(database.database, { signer: (_algorithm, bytes) => sign('sha256', bytes, pair.privateKey) });
  await lab.workload('assistant');
  server = await startConsentProvider();
  const clientKey = { ...(await exportJWK(pair.publicKey)), kid: 'ours', alg: 'RS256', use: 'sig' };
  signing = await startConsentProvider({ clientKey });
});

afterAll(async () => {
  await lab?.close();
  await database?.dispose();
  await server?.close();
  await signing?.close();
});

const provider = (settings: Partial<Oauth2Settings>) =>
  lab.provider({ oauthDiscovery: { discoveryUrl: server.discoveryUrl }, ...settings });

async function exchange(
  settings: Partial<Oauth2Settings>,
  token: string | undefined,
  more: Partial<TokenRequest> = {},
) {
  const request = lab.request(await provider(settings), {
    ...{ user: { kind: 'token', issuer: server.issuer, subject: 'ada' }, scopes: ['read'] },
    subjectToken: { token, discoveryUrl: server.discoveryUrl },
    ...more,
  });
  return lab.first.exchanged.get(request, lab.caller, lab.signal);
}

const TOKEN_EXCHANGE = { onBehalfOf: { grantType: 'TOKEN_EXCHANGE' } } as const;

describe('an exchange of a user’s token', () => {
  it('is that of RFC 8693, with audiences and resources, and the vendor’s own parameters', async () => {
    await exchange(TOKEN_EXCHANGE, await server.userToken('ada'), {
      ...{ audiences: ['urn:stock'], resources: ['urn:orders'] },
      customParameters: { subject_token_type: 'urn:ietf:params:oauth:token-type:access_token' },
    });
    expect(Object.fromEntries(server.asked.at(-1) ?? [])).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: expect.stringMatching(/^ey/),
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      scope: 'read',
      audience: 'urn:stock',
      resource: 'urn:orders',
    });
  });

  it('is that of RFC 7523, and Microsoft’s own', async () => {
    await exchange({ onBehalfOf: { grantType: 'JWT_AUTHORIZATION_GRANT' } }, await server.userToken('ada'));
    const usual = {
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: expect.stringMatching(/^ey/),
      scope: 'read',
    };
    expect(Object.fromEntries(server.asked.at(-1) ?? [])).toEqual(usual);
    await exchange(
      { vendor: 'MicrosoftOauth2', clientAuthentication: 'CLIENT_SECRET_POST' },
      await server.userToken('ada'),
    );
    expect(Object.fromEntries(server.asked.at(-1) ?? [])).toMatchObject({
      ...usual,
      requested_token_use: 'on_behalf_of',
    });
  });

  it('says by no client who asks, where the provider is made so', async () => {
    const onBehalfOf = {
      grantType: 'TOKEN_EXCHANGE',
      onBehalfOfAuthenticationConfig: { clientAuthenticationMethod: 'NO_CLIENT' },
    } as const;
    const refused = exchange({ onBehalfOf, clientId: undefined }, await server.userToken('ada'));
    // This server knows no such exchange, and says so.
    await expect(refused).rejects.toMatchObject({ kind: 'refused' });
    expect(server.asked.at(-1)?.has('client_id')).toBe(false);
  });

  it('asks once for one token of a user, and again for another of his', async () => {
    const of = await provider(TOKEN_EXCHANGE);
    const get = (token: string) =>
      lab.first.exchanged.get(
        lab.request(of, {
          user: { kind: 'token', issuer: server.issuer, subject: 'ada' },
          subjectToken: { token, discoveryUrl: server.discoveryUrl },
        }),
        lab.caller,
        lab.signal,
      );
    const [one, other] = [await server.userToken('ada'), await server.userToken('ada', { less: true })];
    const before = server.asked.length;
    const tokens = [await get(one), await get(one), await get(other)];
    expect(tokens[0]).toBe(tokens[1]);
    expect(server.asked.length).toBe(before + 2);
  });

  it.each<[string, (key: CryptoKey) => Promise<string | undefined>]>([
    ['that has expired', (key) => forge(key, { exp: Math.floor(Date.now() / 1000) - 3600 })],
    ['that is not valid yet', (key) => forge(key, { nbf: Math.floor(Date.now() / 1000) + 3600 })],
    ['of another key', (key) => forge(key, {})],
    [
      'that is not signed',
      async () => `${json({ alg: 'none' })}.${json({ iss: server.issuer, sub: 'ada', exp: 9e9 })}.`,
    ],
    ['of another user', async () => server.userToken('eve')],
    ['that was too long to travel', async () => undefined],
  ])('is refused for a token %s, before anything is sent', async (_, make) => {
    const { privateKey } = await crypto.subtle.generateKey(
      { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
      true,
      ['sign', 'verify'],
    );
    const token = await make(privateKey);
    const before = server.asked.length;
    await expect(exchange(TOKEN_EXCHANGE, token)).rejects.toMatchObject({
      code: token === undefined ? 'ValidationException' : 'UnauthorizedException',
    });
    expect(server.asked.length).toBe(before);
    // The control.
    await exchange(TOKEN_EXCHANGE, await server.userToken('ada'));
    expect(server.asked.length).toBe(before + 1);
  });

  it('needs a provider that does it', async () => {
    await expect(exchange({}, await server.userToken('ada'))).rejects.toMatchObject({ code: 'ValidationException' });
  });
});

describe('a client', () => {
  const machine = async (settings: Partial<Oauth2Settings>) =>
    lab.first.machine(lab.request(await lab.provider(settings), { scopes: ['read'] }), lab.caller, lab);

  it('signs for itself with a key that stays where it is', async () => {
    const settings: Partial<Oauth2Settings> = {
      oauthDiscovery: { discoveryUrl: signing.discoveryUrl },
      clientAuthentication: 'PRIVATE_KEY_JWT',
      privateKeyJwt: {
        privateKeySource: { kmsKeySource: { kmsKeyArn: KEY_ARN } },
        signingAlgorithm: 'RS256',
        additionalHeaderClaims: { kid: 'ours' },
        additionalPayloadClaims: { team: 'red' },
      },
    };
    expect(await machine(settings)).toMatch(/^[\w-]+$/);
    const assertion = signing.asked.at(-1)?.get('client_assertion') ?? '';
    const [header, payload] = assertion
      .split('.')
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()));
    expect(header).toEqual({ kid: 'ours', alg: 'RS256', typ: 'JWT' });
    expect(payload).toMatchObject({
      iss: 'the-agents',
      sub: 'the-agents',
      aud: `${signing.issuer}/token`,
      team: 'red',
    });
    expect(payload.exp - payload.iat).toBe(60);
  });

  it('with a wrong secret is refused in the words of OAuth', async () => {
    const wrong = await lab.provider({ oauthDiscovery: { discoveryUrl: server.discoveryUrl } }, 'another-secret');
    const refused = lab.first.machine(lab.request(wrong), lab.caller, lab);
    await expect(refused).rejects.toMatchObject({ kind: 'refused', code: 'invalid_client' });
  });

  it('is not sent to private addresses, by discovery, by an address that it names, or by a redirect', async () => {
    const closed = await openFlowLab(database.database, { allowPrivate: [] });
    try {
      for (const oauthDiscovery of [
        { discoveryUrl: server.discoveryUrl },
        {
          authorizationServerMetadata: {
            issuer: 'https://i.example',
            authorizationEndpoint: 'https://i.example/',
            tokenEndpoint: `${server.issuer}/token`,
          },
        },
        {
          authorizationServerMetadata: {
            issuer: 'https://i.example',
            authorizationEndpoint: 'https://i.example/',
            tokenEndpoint: 'http://169.254.169.254/',
          },
        },
      ]) {
        const before = server.asked.length;
        const private_ = await closed.provider({ oauthDiscovery });
        const refused = closed.first.machine(closed.request(private_), closed.caller, closed);
        await expect(refused).rejects.toMatchObject({ kind: 'nonsense' });
        expect(server.asked.length).toBe(before);
      }
    } finally {
      await closed.close();
    }
    expect(await machine({ oauthDiscovery: { discoveryUrl: server.discoveryUrl } })).toMatch(/^[\w-]+$/);
  });

  it('finds its server by both forms of discovery, and by explicit addresses', async () => {
    const explicit = {
      issuer: server.issuer,
      authorizationEndpoint: `${server.issuer}/auth`,
      tokenEndpoint: `${server.issuer}/token`,
    };
    expect(await machine({ oauthDiscovery: { authorizationServerMetadata: explicit } })).toMatch(/^[\w-]+$/);
    const discoveryUrl = `${server.issuer}/.well-known/oauth-authorization-server`;
    const known = (await fetch(discoveryUrl)).ok;
    const found = machine({ oauthDiscovery: { discoveryUrl } });
    if (known) expect(await found).toMatch(/^[\w-]+$/);
    else await expect(found).rejects.toMatchObject({ kind: 'nonsense', message: expect.stringContaining('404') });
  });
});

function json(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

async function forge(key: CryptoKey, claims: Record<string, unknown>): Promise<string> {
  return new SignJWT({
    iss: server.issuer,
    sub: 'ada',
    aud: 'agents',
    exp: Math.floor(Date.now() / 1000) + 600,
    ...claims,
  })
    .setProtectedHeader({ alg: 'RS256', kid: 'one' })
    .sign(key);
}
