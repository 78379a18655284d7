import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type control, ServiceError } from '@agentplatform/contract';
import fc from 'fast-check';
import {
  type CryptoKey,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTPayload,
  SignJWT,
} from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { FakeClock } from '../fake-clock.ts';
import { createOutbound, type Outbound } from '../outbound/index.ts';
import { createJwtAuthenticator, type JwtAuthenticator } from './jwt.ts';
import { type CustomClaim, checkConfiguration, type JwtAuthorizerConfiguration } from './jwt-rules.ts';
import { createOidcDiscovery } from './oidc-discovery.ts';
import { type OidcServer, startOidcServer } from './testing/oidc-server.ts';

let provider: OidcServer;
let foreign: OidcServer;
let outbound: Outbound;
let clock: FakeClock;
let authenticator: JwtAuthenticator;
beforeAll(async () => {
  [provider, foreign] = await Promise.all([startOidcServer(), startOidcServer('ES256')]);
  outbound = createOutbound({ clock: systemClock, allowPrivate: ['127.0.0.0/8'] });
});
afterAll(() => Promise.all([provider.close(), foreign.close(), outbound.close()]));
const fresh = (): void => {
  clock = new FakeClock(Date.now());
  authenticator = createJwtAuthenticator({ clock, discovery: createOidcDiscovery({ outbound, clock }) });
};
beforeEach(fresh);

const rules = (over: Partial<JwtAuthorizerConfiguration> = {}): JwtAuthorizerConfiguration => ({
  discoveryUrl: provider.discoveryUrl,
  allowedAudience: ['urn:agents'],
  ...over,
});
async function outcome(token: string | undefined, over: Partial<JwtAuthorizerConfiguration> = {}): Promise<string> {
  try {
    const principal = await authenticator.authenticate(token, { accountId: '1', configuration: rules(over) });
    return principal.subject;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return `${error.status} ${error.message} ${error.headers['www-authenticate'] ?? ''}`;
  }
}

const FETCHED = ['/.well-known/openid-configuration', '/jwks'];

describe('a token of a real OpenID provider', () => {
  it('is accepted, with its claims', async () => {
    const token = await provider.token();
    expect(await authenticator.authenticate(token, { accountId: '1', configuration: rules() })).toMatchObject({
      kind: 'oauth',
      accountId: '1',
      issuer: provider.issuer,
      vouchedBy: provider.issuer,
      subject: 'agent',
      claims: { client_id: 'agent', scope: 'read', team: 'red' },
      token,
    });
  });

  it('costs one discovery and one key set, whatever the number of tokens', async () => {
    const before = provider.seen.length;
    const tokens = await Promise.all([provider.token(), provider.token(), provider.token()]);
    await Promise.all(tokens.map((token) => outcome(token)));
    const fetched = provider.seen.slice(before).filter((path) => path !== '/token');
    expect(fetched).toEqual(FETCHED);
  });

  it('of a key that was rotated just after the keys were fetched is accepted at once', async () => {
    const old = await provider.token();
    expect(await outcome(old)).toBe('agent');
    await provider.rotate();
    const token = await provider.token();
    const before = provider.seen.length;
    expect(await outcome(token)).toBe('agent');
    expect(provider.seen.slice(before)).toEqual(FETCHED);
    // The old key is gone with the old set, remembered token or not.
    expect(await outcome(old)).toMatch(/^401 .* does not publish/);
    expect(provider.seen.length).toBe(before + 2);
  });

  it('of a key that is rotated in a flood of unknown ones is accepted within seconds, and the flood costs few fetches', async () => {
    const unknown = async (kid: string): Promise<string> =>
      new SignJWT({ iss: provider.issuer, aud: 'urn:agents', exp: clock.now() / 1000 + 60 })
        .setProtectedHeader({ alg: 'RS256', kid })
        .sign(provider.signingKey().key);
    const flood = async (count: number): Promise<void> => {
      const tokens = await Promise.all(Array.from({ length: count }, (_, n) => unknown(`made-up-${n}`)));
      for (const result of await Promise.all(tokens.map((token) => outcome(token))))
        expect(result).toMatch(/^401 .* does not publish/);
    };
    expect(await outcome(await provider.token())).toBe('agent');
    let before = provider.seen.length;
    await flood(50);
    await flood(50);
    expect(provider.seen.slice(before)).toEqual(FETCHED);
    await provider.rotate();
    const token = await provider.token();
    await flood(10);
    expect(await outcome(token)).toMatch(/^401 .* does not publish/);
    await clock.advance(5_000);
    before = provider.seen.length;
    await flood(50);
    expect(await outcome(token)).toBe('agent');
    expect(provider.seen.slice(before)).toEqual(FETCHED);
  });

  it('of an unknown key does not hammer a provider that is down', async () => {
    let up = true;
    let hits = 0;
    const { publicKey, privateKey } = await generateKeyPair('RS256');
    const keys = [{ ...(await exportJWK(publicKey)), kid: 'known' }];
    const server = createServer((req, res) => {
      hits++;
      if (!up) res.writeHead(500).end();
      else res.end(JSON.stringify(req.url === '/jwks' ? { keys } : { issuer: base, jwks_uri: `${base}/jwks` }));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const at = { discoveryUrl: `${base}/.well-known/openid-configuration` };
    const claims = { iss: base, sub: 'x', aud: 'urn:agents', exp: clock.now() / 1000 + 60 };
    const of = (kid: string): Promise<string> =>
      new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid }).sign(privateKey);
    expect(await outcome(await of('known'), at)).toBe('x');
    up = false;
    hits = 0;
    expect(await outcome(await of('unknown'), at)).toMatch(/^503 /);
    for (let n = 0; n < 20; n++) expect(await outcome(await of(`unknown-${n}`), at)).toMatch(/^401 /);
    expect(hits).toBe(1);
    expect(await outcome(await of('known'), at)).toBe('x');
    server.close();
  });

  it('is accepted with the last keys while the provider is away, and not for ever forgotten', async () => {
    const local = await startOidcServer();
    const token = await local.token();
    const at = { discoveryUrl: local.discoveryUrl };
    expect(await outcome(token, at)).toBe('agent');
    await local.close();
    await clock.advance(620_000);
    expect(await outcome(token, at)).toBe('agent');
    fresh();
    expect(await outcome(token, at)).toMatch(/^503 /);
  });
});

/** Whatever is accepted, and another algorithm that the very same key could sign with, where there is one. */
const ACCEPTED: [alg: string, other?: string][] = [
  ['RS256', 'RS384'],
  ['RS384', 'RS512'],
  ['RS512', 'PS256'],
  ['PS256', 'PS384'],
  ['PS384', 'PS512'],
  ['PS512', 'RS256'],
  ['ES256'],
  ['ES384'],
  ['ES512'],
  ['EdDSA'],
  ['Ed25519'],
];
describe.each(ACCEPTED)('a provider that signs with %s', (alg, other) => {
  let server: OidcServer;
  beforeAll(async () => {
    server = await startOidcServer(alg);
  });
  afterAll(() => server.close());
  const at = (): Partial<JwtAuthorizerConfiguration> => ({ discoveryUrl: server.discoveryUrl });
  const claims = (): JWTPayload => ({
    ...{ iss: server.issuer, aud: 'urn:agents', sub: 'x', exp: Math.floor(clock.now() / 1000) + 60 },
  });

  it('is believed', async () => {
    const token = await server.token();
    expect(decodeProtectedHeader(token)).toMatchObject({ alg });
    expect(await outcome(token, at())).toBe('agent');
  });

  it('is not believed for another key of the same kind and name', async () => {
    const { privateKey } = await generateKeyPair(alg);
    const { kid } = server.signingKey();
    const token = await new SignJWT(claims()).setProtectedHeader({ alg, kid }).sign(privateKey);
    expect(await outcome(token, at())).toMatch(/^401 The signature/);
  });

  it('is not believed for another algorithm with its own key', async () => {
    const { key, kid } = server.signingKey();
    const [, body, signature] = (await server.token()).split('.');
    for (const [label] of ACCEPTED.filter(([one]) => one !== alg)) {
      const header = Buffer.from(JSON.stringify({ alg: label, kid })).toString('base64url');
      expect(await outcome([header, body, signature].join('.'), at())).toMatch(/^401 /);
    }
    if (other === undefined) return;
    const signer = await importJWK(await exportJWK(key), other);
    const signed = await new SignJWT(claims()).setProtectedHeader({ alg: other, kid }).sign(signer);
    expect(await outcome(signed, at())).toMatch(/^401 .* does not publish/);
  });

  it('is not believed for "none", nor for a secret made of its public key', async () => {
    const { publicJwk, kid } = server.signingKey();
    const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    for (const none of ['none', 'None', ''])
      expect(await outcome(`${encode({ alg: none, kid })}.${encode(claims())}.`, at())).toMatch(/^401 /);
    const pem = await exportSPKI(await publicKeyOf(publicJwk, alg));
    const secrets = [pem, pem.trimEnd(), JSON.stringify(publicJwk), publicJwk.n ?? publicJwk.x ?? ''];
    for (const [hs, digest] of [
      ['HS256', 'sha256'],
      ['HS384', 'sha384'],
      ['HS512', 'sha512'],
    ] as const)
      for (const secret of secrets) {
        const signed = `${encode({ alg: hs, kid })}.${encode(claims())}`;
        const token = `${signed}.${createHmac(digest, secret).update(signed).digest('base64url')}`;
        expect(await outcome(token, at())).toMatch(/^401 The algorithm/);
      }
  });
});

async function publicKeyOf(jwk: JWK, alg: string): Promise<CryptoKey> {
  const key = await importJWK(jwk, alg, { extractable: true });
  if (key instanceof Uint8Array) throw new Error('a key that is no secret was asked for');
  return key;
}

describe('refused', () => {
  it('with all that is missing at once: audience, client, claims and scopes; 403 where it is scopes alone', async () => {
    const claim = (name: string): CustomClaim => ({
      ...{ inboundTokenClaimName: name, inboundTokenClaimValueType: 'STRING' },
      authorizingClaimMatchValue: { claimMatchOperator: 'EQUALS', claimMatchValue: { matchValueString: 'blue' } },
    });
    const wrong = {
      ...{ allowedAudience: ['urn:other'], allowedClients: ['someone'], allowedScopes: ['write', 'admin'] },
      customClaims: [claim('team'), claim('tier')],
    };
    const told =
      'The token is for another audience. The token was issued to another client. The claim "team" is not the one required. ' +
      'The claim "tier" is not the one required. The token needs one of the scopes: write admin.';
    const description = told.replaceAll('"', "'");
    const token = await provider.token();
    expect(await outcome(token, wrong)).toBe(
      `401 ${told} Bearer error="invalid_token", error_description="${description}", scope="write admin"`,
    );
    expect(await outcome(token, { ...wrong, allowedScopes: ['read'] })).not.toContain('scope');
    expect(await outcome(token, { allowedScopes: ['write', 'admin'] })).toMatch(
      /^403 The token needs one of the scopes/,
    );
    const many = Array.from({ length: 500 }, (_, n) => claim(`claim-${n}`));
    const [, header = ''] = (await outcome(token, { customClaims: many })).split(' Bearer ');
    expect(header.length).toBeLessThan(2_100);
  });

  it.each<[string, Partial<JwtAuthorizerConfiguration>, RegExp]>([
    ['another audience', { allowedAudience: ['urn:other'] }, /^401 .*another audience/],
    ['another client', { allowedClients: ['someone'] }, /^401 .*another client/],
    ['missing scope', { allowedScopes: ['write', 'admin'] }, /^403 .*insufficient_scope.*scope="write admin"/],
  ])('%s', async (_, over, expected) => expect(await outcome(await provider.token(), over)).toMatch(expected));

  it('another issuer, even with the same key id', async () => {
    expect(await outcome(await foreign.token())).toMatch(/^401 /);
  });

  it('none at all, with a plain challenge', async () => {
    for (const none of [undefined, '']) {
      expect(await outcome(none)).toBe('401 The request carries no bearer token. Bearer');
      expect(await outcome(none, { allowedScopes: ['read'] })).toMatch(/Bearer scope="read"$/);
    }
  });

  it('expired, also when it was accepted before', async () => {
    const token = await provider.token();
    expect(await outcome(token)).toBe('agent');
    await clock.advance(659_000);
    expect(await outcome(token)).toBe('agent');
    await clock.advance(2_000);
    expect(await outcome(token)).toMatch(/^401 .*expired/);
  });

  describe('forged with the provider’s own key at hand', () => {
    const forge = async (claims: Record<string, unknown>, header: object = {}): Promise<string> => {
      const { key, kid } = provider.signingKey();
      const now = Math.floor(clock.now() / 1000);
      const all = { iss: provider.issuer, aud: 'urn:agents', sub: 'x', iat: now, exp: now + 60, ...claims };
      return new SignJWT(all).setProtectedHeader({ alg: 'RS256', kid, ...header }).sign(key);
    };
    const seconds = (): number => Math.floor(clock.now() / 1000);

    it('control: is accepted when everything is right', async () => {
      expect(await outcome(await forge({}))).toBe('x');
    });

    it.each<[string, () => Record<string, unknown>, RegExp]>([
      ['no expiry', () => ({ exp: undefined }), /"exp"/],
      ['past', () => ({ exp: seconds() - 61 }), /expired/],
      ['not yet', () => ({ nbf: seconds() + 61 }), /not valid yet/],
      ['issued in the future', () => ({ iat: seconds() + 61 }), /not valid yet/],
      ['a foreign issuer', () => ({ iss: 'https://example.com' }), /another issuer/],
      ['the issuer with a slash', () => ({ iss: `${provider.issuer}/` }), /another issuer/],
      ['no audience', () => ({ aud: undefined }), /another audience/],
      ['an odd audience', () => ({ aud: { 'urn:agents': 1 } }), /another audience/],
    ])('%s', async (_, claims, expected) => expect(await outcome(await forge(claims()))).toMatch(expected));

    it('but within the skew', async () => {
      expect(await outcome(await forge({ exp: seconds() - 59, nbf: seconds() + 59, iat: seconds() + 59 }))).toBe('x');
    });

    it('one changed part', async () => {
      const token = await forge({});
      for (let i = 0; i < token.length; i += 7) {
        const altered = token.slice(0, i) + (token[i] === 'A' ? 'B' : 'A') + token.slice(i + 1);
        expect(await outcome(altered)).toMatch(/^401 /);
      }
    });
  });

  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const body = (): string =>
    encode({ iss: provider.issuer, aud: 'urn:agents', sub: 'x', exp: Math.floor(clock.now() / 1000) + 60 });

  it('alg none, in every spelling', async () => {
    for (const alg of ['none', 'None', 'NONE', '']) {
      expect(await outcome(`${encode({ alg })}.${body()}.`)).toMatch(/^401 /);
      expect(await outcome(`${encode({ alg, kid: provider.signingKey().kid })}.${body()}.AAAA`)).toMatch(/^401 /);
    }
  });

  it('HS256 with the public key as the secret', async () => {
    const { publicJwk, kid } = provider.signingKey();
    const secrets = [JSON.stringify(publicJwk), publicJwk.n ?? '', Buffer.from(publicJwk.n ?? '', 'base64url')];
    for (const secret of secrets) {
      const signed = `${encode({ alg: 'HS256', kid })}.${body()}`;
      const signature = createHmac('sha256', secret).update(signed).digest('base64url');
      expect(await outcome(`${signed}.${signature}`)).toMatch(/^401 The algorithm/);
    }
  });

  it('a key that the token brings along', async () => {
    const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
    const jwk = await crypto.subtle.exportKey('jwk', publicKey);
    for (const header of [{ jwk }, { jku: `${foreign.issuer}/jwks` }]) {
      const token = await new SignJWT(JSON.parse(Buffer.from(body(), 'base64url').toString()))
        .setProtectedHeader({ alg: 'RS256', kid: provider.signingKey().kid, ...header })
        .sign(privateKey);
      expect(await outcome(token)).toMatch(/^401 The signature/);
    }
  });

  it('huge and malformed tokens, and any text', async () => {
    expect(await outcome(`${encode({ alg: 'RS256' })}.${'a'.repeat(20_000)}.x`)).toMatch(/^401 .*longer than/);
    const part = fc.oneof(
      fc.string(),
      fc.json().map((json) => Buffer.from(json).toString('base64url')),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 4 }), async (parts) => {
        expect(await outcome(parts.join('.') || 'x')).toMatch(/^401 /);
      }),
    );
  });
});

describe('rules', () => {
  const custom = (type: 'STRING' | 'STRING_ARRAY', name: string, operator: string, value: object): CustomClaim =>
    ({
      inboundTokenClaimName: name,
      inboundTokenClaimValueType: type,
      authorizingClaimMatchValue: { claimMatchOperator: operator, claimMatchValue: value },
    }) as CustomClaim;

  describe('of claims, by every operator', () => {
    const claimOf = async (value: unknown): Promise<string> => {
      const { key, kid } = provider.signingKey();
      const claims = { iss: provider.issuer, aud: 'urn:agents', sub: 'x', exp: clock.now() / 1000 + 60, custom: value };
      return new SignJWT(claims as JWTPayload).setProtectedHeader({ alg: 'RS256', kid }).sign(key);
    };
    const rulesOf = {
      EQUALS: custom('STRING', 'custom', 'EQUALS', { matchValueString: 'ops' }),
      CONTAINS: custom('STRING_ARRAY', 'custom', 'CONTAINS', { matchValueString: 'ops' }),
      CONTAINS_ANY: custom('STRING_ARRAY', 'custom', 'CONTAINS_ANY', { matchValueStringList: ['dev', 'ops'] }),
    } satisfies Record<control.ClaimMatchOperatorType, CustomClaim>;

    it.each<[keyof typeof rulesOf, string, unknown, boolean]>([
      ['EQUALS', 'match', 'ops', true],
      ['EQUALS', 'no match', 'dev', false],
      ['EQUALS', 'other letters', 'OPS', false],
      ['EQUALS', 'more around it', ' ops', false],
      ['EQUALS', 'empty', '', false],
      ['EQUALS', 'wrong type: list', ['ops'], false],
      ['EQUALS', 'wrong type: object', { ops: 'ops' }, false],
      ['EQUALS', 'wrong type: number', 1, false],
      ['EQUALS', 'wrong type: boolean', true, false],
      ['EQUALS', 'null', null, false],
      ['EQUALS', 'absent', undefined, false],
      ['CONTAINS', 'match', ['a', 'ops'], true],
      ['CONTAINS', 'no match', ['a', 'dev'], false],
      ['CONTAINS', 'part of a value', ['opsx'], false],
      ['CONTAINS', 'empty', [], false],
      ['CONTAINS', 'nested', [['ops']], false],
      ['CONTAINS', 'wrong type: string', 'ops', false],
      ['CONTAINS', 'wrong type: words of a string', 'a ops', false],
      ['CONTAINS', 'wrong type: object', { 0: 'ops', length: 1 }, false],
      ['CONTAINS', 'wrong type: number', 1, false],
      ['CONTAINS', 'null', null, false],
      ['CONTAINS', 'absent', undefined, false],
      ['CONTAINS_ANY', 'match of the first', ['dev'], true],
      ['CONTAINS_ANY', 'match of the last', ['a', 'ops'], true],
      ['CONTAINS_ANY', 'match beside values of other types', [1, null, 'ops'], true],
      ['CONTAINS_ANY', 'no match', ['a'], false],
      ['CONTAINS_ANY', 'part of a value', ['de', 'op'], false],
      ['CONTAINS_ANY', 'empty', [], false],
      ['CONTAINS_ANY', 'nested', [['ops']], false],
      ['CONTAINS_ANY', 'wrong type: string', 'ops', false],
      ['CONTAINS_ANY', 'wrong type: object', { 0: 'ops', length: 1 }, false],
      ['CONTAINS_ANY', 'wrong type: number', 1, false],
      ['CONTAINS_ANY', 'null', null, false],
      ['CONTAINS_ANY', 'absent', undefined, false],
    ])('%s, %s: %j is %s', async (operator, _, value, accepted) => {
      const result = await outcome(await claimOf(value), { customClaims: [rulesOf[operator]] });
      if (accepted) expect(result).toBe('x');
      else expect(result).toMatch(/^401 The claim "custom" is not the one required\./);
    });

    it('all of which must hold together', async () => {
      const token = await claimOf(['ops']);
      const { CONTAINS, CONTAINS_ANY, EQUALS } = rulesOf;
      expect(await outcome(token, { customClaims: [CONTAINS, CONTAINS_ANY] })).toBe('x');
      expect(await outcome(token, { customClaims: [CONTAINS, EQUALS] })).toMatch(/^401 The claim/);
    });
  });

  it.each<[Partial<JwtAuthorizerConfiguration>, boolean]>([
    [{ allowedAudience: ['x', 'urn:agents'] }, true],
    [{ allowedAudience: undefined, allowedClients: ['agent'] }, true],
    [{ allowedScopes: ['admin', 'read'] }, true],
    [{ customClaims: [custom('STRING', 'team', 'EQUALS', { matchValueString: 'red' })] }, true],
    [{ customClaims: [custom('STRING', 'team', 'EQUALS', { matchValueString: 'blue' })] }, false],
    [{ customClaims: [custom('STRING', 'roles', 'EQUALS', { matchValueString: 'ops' })] }, false],
    [{ customClaims: [custom('STRING', 'constructor', 'EQUALS', { matchValueString: 'ops' })] }, false],
    [{ customClaims: [custom('STRING_ARRAY', 'roles', 'CONTAINS', { matchValueString: 'ops' })] }, true],
    [{ customClaims: [custom('STRING_ARRAY', 'roles', 'CONTAINS', { matchValueString: 'op' })] }, false],
    [{ customClaims: [custom('STRING_ARRAY', 'team', 'CONTAINS', { matchValueString: 'red' })] }, false],
    [{ customClaims: [custom('STRING_ARRAY', 'roles', 'CONTAINS_ANY', { matchValueStringList: ['x', 'dev'] })] }, true],
    [{ customClaims: [custom('STRING_ARRAY', 'roles', 'CONTAINS_ANY', { matchValueStringList: ['x'] })] }, false],
  ])('%j: %s', async (over, accepted) => {
    const result = await outcome(await provider.token(), over);
    if (accepted) expect(result).toBe('agent');
    else expect(result).toMatch(/^401 /);
  });

  it('are checked when configured', () => {
    const at = { discoveryUrl: 'https://example.com/.well-known/openid-configuration' };
    expect(checkConfiguration(at)?.field).toBe('customJWTAuthorizer');
    expect(checkConfiguration({ ...at, allowedClients: ['a'] })).toBeUndefined();
    const value = { matchValueString: 'x' };
    const list = { matchValueStringList: ['x'] };
    for (const good of [
      custom('STRING', 'a', 'EQUALS', value),
      custom('STRING_ARRAY', 'a', 'CONTAINS', value),
      custom('STRING_ARRAY', 'a', 'CONTAINS_ANY', list),
    ]) {
      expect(checkConfiguration({ ...at, customClaims: [good] })).toBeUndefined();
    }
    for (const bad of [
      custom('STRING', 'a', 'CONTAINS', value),
      custom('STRING', 'a', 'EQUALS', list),
      custom('STRING_ARRAY', 'a', 'EQUALS', value),
      custom('STRING_ARRAY', 'a', 'CONTAINS', list),
      custom('STRING_ARRAY', 'a', 'CONTAINS_ANY', value),
    ]) {
      expect(checkConfiguration({ ...at, customClaims: [bad] })?.field).toBe('customClaims[0]');
    }
  });
});

describe('discovery', () => {
  const answering = async (respond: (path: string, base: string) => unknown) => {
    let hits = 0;
    const server = createServer((req, res) => {
      hits++;
      res.end(JSON.stringify(respond(req.url ?? '', base)));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const discoveryUrl = `${base}/.well-known/openid-configuration`;
    return { discoveryUrl, hits: () => hits, close: () => server.close() };
  };

  it('goes through the guard, both for the document and for the keys that it names', async () => {
    const token = await provider.token();
    const closed = createOutbound({ clock: systemClock });
    const guarded = createOidcDiscovery({ outbound: closed, clock });
    await expect(guarded.issuer(provider.discoveryUrl)).rejects.toThrow(/is a loopback address/);
    await closed.close();
    const inward = await answering((_, base) => ({ issuer: base, jwks_uri: 'http://169.254.169.254/jwks' }));
    expect(await outcome(token, { discoveryUrl: inward.discoveryUrl })).toMatch(/^503 /);
    inward.close();
  });

  it.each<[string, (path: string, base: string) => unknown]>([
    ['no object', () => []],
    ['no issuer', (_, base) => ({ jwks_uri: `${base}/jwks` })],
    ['no keys', (_, base) => ({ issuer: base })],
    [
      'too many keys',
      (path, base) => (path === '/jwks' ? { keys: Array(101).fill({}) } : { issuer: base, jwks_uri: `${base}/jwks` }),
    ],
    ['a megabyte', () => ({ issuer: 'x'.repeat(1_000_000) })],
  ])('with %s is 503, and asked again only after the cooldown', async (_, respond) => {
    const bad = await answering(respond);
    const token = await provider.token();
    const at = { discoveryUrl: bad.discoveryUrl };
    expect(await outcome(token, at)).toMatch(/^503 /);
    const hits = bad.hits();
    expect(await outcome(token, at)).toMatch(/^503 /);
    expect(bad.hits()).toBe(hits);
    await clock.advance(30_000);
    expect(await outcome(token, at)).toMatch(/^503 /);
    expect(bad.hits()).toBe(hits * 2);
    bad.close();
  });

  it('vouches for users of its own issuer alone, whichever a document names', async () => {
    const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), kid: 'k' };
    let named = provider.issuer;
    const chosen = await answering((path, base) =>
      path === '/jwks' ? { keys: [jwk] } : { issuer: named, jwks_uri: `${base}/jwks` },
    );
    const base = chosen.discoveryUrl.replace('/.well-known/openid-configuration', '');
    const principalOf = async (issuer: string, discoveryUrl: string) => {
      fresh();
      named = issuer;
      const claims = { iss: issuer, aud: 'urn:agents', sub: 'ada', exp: clock.now() / 1000 + 60 };
      const token = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'k' }).sign(privateKey);
      return authenticator.authenticate(token, { accountId: '1', configuration: rules({ discoveryUrl }) });
    };
    const below = `${base}/pages/.well-known/openid-configuration`;
    for (const [issuer, discoveryUrl] of [
      [provider.issuer, chosen.discoveryUrl],
      [base, below],
    ] as const)
      expect(await principalOf(issuer, discoveryUrl)).toMatchObject({
        issuer,
        subject: 'ada',
        vouchedBy: discoveryUrl,
      });
    // The control: its own it may name, written as it likes.
    for (const issuer of [base, `${base}/`])
      expect(await principalOf(issuer, chosen.discoveryUrl)).toMatchObject({ issuer, vouchedBy: issuer });
    // A document in the form of RFC 8414, where the issuer's path comes last, names keys all the same, and vouches as itself.
    for (const path of ['', '/tenant']) {
      const [issuer, discoveryUrl] = [`${base}${path}`, `${base}/.well-known/oauth-authorization-server${path}`];
      expect(await principalOf(issuer, discoveryUrl)).toMatchObject({ issuer, vouchedBy: discoveryUrl });
    }
    chosen.close();
  });

  it('never verifies with a symmetric key from a published set', async () => {
    const secret = Buffer.alloc(32, 7).toString('base64url');
    const oct = { kty: 'oct', k: secret, kid: 'k', alg: 'HS256' };
    const weak = await answering((path, base) =>
      path === '/jwks' ? { keys: [oct, null, 'x'] } : { issuer: base, jwks_uri: `${base}/jwks` },
    );
    const base = weak.discoveryUrl.replace('/.well-known/openid-configuration', '');
    const claims = { ...decodeJwt(await provider.token()), iss: base };
    const token = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'k' }).sign(Buffer.alloc(32, 7));
    expect(await outcome(token, { discoveryUrl: weak.discoveryUrl })).toMatch(/^401 /);
    weak.close();
  });
});
