import { errors } from '@agentplatform/contract';
import fc from 'fast-check';
import { generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createJwtAuthenticator, createOidcDiscovery } from '../../../kernel/auth/index.ts';
import { type OidcServer, startOidcServer } from '../../../kernel/auth/testing/oidc-server.ts';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { createOutbound, type Outbound, refusalOf } from '../../../kernel/outbound/index.ts';
import { type UserTokenDeps, userOfToken } from './workload-user.ts';

const ACCOUNT = '111122223333';
const INVALID = { code: 'ValidationException' };
const NOT_GENUINE = { code: 'UnauthorizedException' };

let provider: OidcServer;
let clock: FakeClock;
let open: Outbound;
let guarded: Outbound;

beforeAll(async () => {
  provider = await startOidcServer();
  clock = new FakeClock(Date.now());
  open = createOutbound({ clock, allowPrivate: ['127.0.0.0/8'] });
  guarded = createOutbound({ clock });
});
afterAll(() => Promise.all([provider.close(), open.close(), guarded.close()]));

function depsOf(outbound: Outbound): UserTokenDeps {
  return {
    jwt: createJwtAuthenticator({ discovery: createOidcDiscovery({ outbound, clock }), clock }),
    refusalOf: (url) => refusalOf(outbound, url),
  };
}
const userOf = (token: string, outbound = open) => userOfToken(token, ACCOUNT, depsOf(outbound));

/** A token with the provider's own signature, unless another key is given. */
function signed(claims: object, key = provider.signingKey().key): Promise<string> {
  const { kid } = provider.signingKey();
  return new SignJWT({ iss: provider.issuer, sub: 'ada', exp: clock.now() / 1000 + 600, ...claims })
    .setProtectedHeader({ alg: 'RS256', kid })
    .sign(key);
}

describe('the user of a token', () => {
  it('is the subject of its issuer, when the issuer has signed it', async () => {
    expect(await userOf(await provider.token())).toEqual({
      kind: 'token',
      issuer: provider.issuer,
      subject: 'agent',
    });
    const token = await signed({});
    expect(await userOf(token)).toMatchObject({ subject: 'ada' });
    await expect(userOf(`${token.slice(0, -8)}AAAAAAAA`)).rejects.toMatchObject(NOT_GENUINE);
    const { privateKey } = await generateKeyPair('RS256');
    await expect(userOf(await signed({}, privateKey))).rejects.toMatchObject(NOT_GENUINE);
    await expect(userOf(await signed({ exp: clock.now() / 1000 - 600 }))).rejects.toMatchObject(NOT_GENUINE);
    await expect(userOf(await signed({ sub: undefined }))).rejects.toMatchObject(INVALID);
  });

  it("cannot be claimed with another issuer's name: that one is asked for its keys", async () => {
    const other = await startOidcServer();
    try {
      const forged = await signed({ iss: other.issuer });
      const before = other.seen.length;
      await expect(userOf(forged)).rejects.toMatchObject(NOT_GENUINE);
      expect(other.seen.length).toBeGreaterThan(before);
    } finally {
      await other.close();
    }
  });

  it('is not asked for at an address that the platform does not call', async () => {
    const token = await signed({});
    const before = provider.seen.length;
    expect(await userOf(token)).toMatchObject({ subject: 'ada' });
    const asked = provider.seen.length;
    // The channel is there where the range was opened; closed, nobody is called.
    expect(asked).toBeGreaterThan(before);
    await expect(userOf(token, guarded)).rejects.toMatchObject({
      ...INVALID,
      message: expect.stringContaining('userToken.iss names a loopback'),
    });
    await expect(userOf(await signed({ iss: 'http://169.254.169.254' }))).rejects.toMatchObject(INVALID);
    expect(provider.seen.length).toBe(asked);
  });

  it.each(['', 'urn:issuer', 'ftp://a.example', 'https://a.example?x=', 'https://a.example#x', 'https://', 17, null])(
    'has no issuer that is no address: %j',
    async (iss) => {
      const deps: UserTokenDeps = {
        ...depsOf(open),
        jwt: { authenticate: () => Promise.reject(errors.internal('asked')) },
      };
      await expect(userOfToken(await signed({ iss }), ACCOUNT, deps)).rejects.toMatchObject(INVALID);
    },
  );

  it('is in nothing that is no token', async () => {
    const part = fc.base64String({ maxLength: 40 });
    const anything = fc.oneof(
      fc.string(),
      fc.tuple(part, part, part).map((parts) => parts.join('.')),
    );
    await fc.assert(
      fc.asyncProperty(anything, async (text) => {
        await expect(userOf(text)).rejects.toMatchObject(INVALID);
      }),
    );
  });
});
