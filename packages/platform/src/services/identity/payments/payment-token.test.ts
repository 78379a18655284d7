import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { inspect } from 'node:util';
import type { data } from '@agentplatform/contract';
import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import canonicalize from 'canonicalize';
import { expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { Secret } from '../../../kernel/secrets/index.ts';
import type { PaymentData } from '../providers/payment-provider.ts';
import { paymentToken } from './payment-token.ts';

const clock = new FakeClock();
const coinbase: PaymentData = { vendor: 'CoinbaseCDP', apiKeyId: 'key-1' };
const privy: PaymentData = { vendor: 'StripePrivy', appId: 'app-1', authorizationId: 'quorum-1' };
const REFUSED = { code: 'ValidationException' };

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const otherEc = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const edwards = generateKeyPairSync('ed25519');
const pkcs8 = ({ privateKey }: { privateKey: KeyObject }): string =>
  privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64');

/** As the vendor shows it: the seed and the public key. */
function edwardsSecret(): string {
  const { d = '', x = '' } = edwards.privateKey.export({ format: 'jwk' });
  return Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]).toString('base64');
}

const ask = (provider: PaymentData, request: data.PaymentTokenRequestInput, secrets: Record<string, string>) =>
  paymentToken(provider, request, {
    clock,
    secrets: async (field) => {
      const value = secrets[field];
      return value === undefined ? undefined : new Secret(value);
    },
  });

/** The point of a key on P-256, or the bytes of one on Ed25519. */
function raw(publicKey: KeyObject): Uint8Array {
  const { x = '', y } = publicKey.export({ format: 'jwk' });
  const first = Buffer.from(x, 'base64url');
  return y === undefined
    ? first
    : Buffer.concat([[4], first, Buffer.from(y, 'base64url')].map((part) => Buffer.from(part)));
}

/** A JWT that these keys have signed, by a library that the platform does not use; undefined for any other. */
function readJwt(token: string, publicKey: KeyObject) {
  const [head = '', body = '', signature = ''] = token.split('.');
  const [message, bytes] = [Buffer.from(`${head}.${body}`), Buffer.from(signature, 'base64url')];
  const valid =
    publicKey.asymmetricKeyType === 'ed25519'
      ? ed25519.verify(bytes, message, raw(publicKey))
      : p256.verify(bytes, message, raw(publicKey), { lowS: false });
  const json = (part: string): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString());
  return valid ? { header: json(head), claims: json(body) } : undefined;
}

const get: data.CoinbaseCdpTokenRequestInput = { requestMethod: 'GET', requestPath: '/platform/v2/evm/accounts' };
const now = () => Math.floor(clock.now() / 1000);

it('Coinbase gets a JWT by an Ed25519 or an EC key, for one request and two minutes', async () => {
  const pem = ec.privateKey.export({ type: 'sec1', format: 'pem' }).toString();
  const kinds = [
    { secret: edwardsSecret(), publicKey: edwards.publicKey, alg: 'EdDSA' },
    { secret: pem, publicKey: ec.publicKey, alg: 'ES256' },
    {
      secret: ec.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      publicKey: ec.publicKey,
      alg: 'ES256',
    },
  ];
  for (const { secret, publicKey, alg } of kinds) {
    const request = { ...get, requestPath: `${get.requestPath}?limit=2` };
    const answer = await ask(coinbase, { coinbaseCdpTokenRequest: request }, { apiKeySecret: secret });
    const token = answer.coinbaseCdpTokenResponse?.bearerToken ?? '';
    expect(readJwt(token, publicKey)).toEqual({
      header: { alg, kid: 'key-1', typ: 'JWT', nonce: expect.stringMatching(/^[0-9a-f]{32}$/) },
      claims: {
        sub: 'key-1',
        iss: 'cdp',
        uris: ['GET api.cdp.coinbase.com/platform/v2/evm/accounts'],
        iat: now(),
        nbf: now(),
        exp: now() + 120,
      },
    });
    expect(answer.coinbaseCdpTokenResponse?.walletAuthToken).toBeUndefined();
    // The control: the library tells a signature from none.
    expect(
      readJwt(token, alg === 'EdDSA' ? generateKeyPairSync('ed25519').publicKey : otherEc.publicKey),
    ).toBeUndefined();
    const again = await ask(coinbase, { coinbaseCdpTokenRequest: request }, { apiKeySecret: secret });
    expect(again.coinbaseCdpTokenResponse?.bearerToken).not.toBe(token);
  }
});

it('Coinbase gets a second JWT for wallets, which is bound to the body', async () => {
  const secrets = { apiKeySecret: edwardsSecret(), walletSecret: pkcs8(ec) };
  const post = {
    requestMethod: 'POST',
    requestPath: '/platform/v2/evm/accounts',
    includeWalletAuthToken: true,
  } as const;
  const walletOf = async (requestBody?: string) => {
    const request = { ...post, requestHost: 'sandbox.cdp.example', ...(requestBody ? { requestBody } : {}) };
    const { coinbaseCdpTokenResponse: made } = await ask(coinbase, { coinbaseCdpTokenRequest: request }, secrets);
    return readJwt(made?.walletAuthToken ?? '', ec.publicKey);
  };
  const body = { name: 'my account', zeta: [{ b: 1, a: null }], alpha: { y: true, x: 'é' } };
  const reqHash = createHash('sha256')
    .update(canonicalize(body) ?? '')
    .digest('hex');
  for (const text of [
    JSON.stringify(body),
    JSON.stringify(body, null, 2),
    '{"zeta":[{"a":null,"b":1}],"alpha":{"x":"\\u00e9","y":true},"name":"my account"}',
  ])
    expect(await walletOf(text)).toEqual({
      header: { alg: 'ES256', typ: 'JWT' },
      claims: {
        uris: ['POST sandbox.cdp.example/platform/v2/evm/accounts'],
        reqHash,
        iat: now(),
        nbf: now(),
        jti: expect.stringMatching(/^[0-9a-f]{32}$/),
      },
    });
  expect((await walletOf('{"name":"another"}'))?.claims.reqHash).not.toBe(reqHash);
  for (const nothing of [undefined, '{}']) expect((await walletOf(nothing))?.claims).not.toHaveProperty('reqHash');
  for (const wrong of ['not JSON', '[1]', '"text"', 'null', '7'])
    await expect(walletOf(wrong)).rejects.toMatchObject(REFUSED);
});

it("Privy gets the app's credentials, and a signature over the canonical request", async () => {
  const body = { method: 'eth_signTypedData_v4', params: { z: 1e21, a: [0.1, -0, 'x\n"'] }, chain_type: 'ethereum' };
  const requestPath = '/v1/wallets/w1/rpc';
  for (const authorizationPrivateKey of [`wallet-auth:${pkcs8(ec)}`, pkcs8(ec)]) {
    const secrets = { appSecret: 's3cret', authorizationPrivateKey };
    const request = { requestPath, requestBody: JSON.stringify(body), includeAuthorizationSignature: true };
    const { stripePrivyTokenResponse: made } = await ask(privy, { stripePrivyTokenRequest: request }, secrets);
    const requestExpiry = clock.now() + 300_000;
    expect(made).toEqual({
      appId: 'app-1',
      basicAuthToken: Buffer.from('app-1:s3cret').toString('base64'),
      authorizationSignature: expect.any(String),
      requestExpiry,
    });
    const signature = Buffer.from(made?.authorizationSignature ?? '', 'base64');
    const signs = (changed: object, publicKey = ec.publicKey): boolean => {
      const payload = {
        version: 1,
        method: 'POST',
        url: `https://api.privy.io${requestPath}`,
        body,
        headers: { 'privy-app-id': 'app-1', 'privy-request-expiry': String(requestExpiry) },
        ...changed,
      };
      const message = Buffer.from(canonicalize(payload) ?? '');
      return p256.verify(signature, message, raw(publicKey), { format: 'der', lowS: false });
    };
    expect(signs({})).toBe(true);
    expect(signs({ body: { ...body, method: 'other' } })).toBe(false);
    expect(signs({ url: `https://api.privy.io${requestPath}/` })).toBe(false);
    expect(signs({}, otherEc.publicKey)).toBe(false);
  }
  const plain = { requestPath, requestBody: '{}' };
  const { stripePrivyTokenResponse: unsigned } = await ask(
    privy,
    { stripePrivyTokenRequest: plain },
    { appSecret: 's' },
  );
  expect(unsigned).toEqual({ appId: 'app-1', basicAuthToken: Buffer.from('app-1:s').toString('base64') });
});

it('what cannot be signed is refused by the name of what is wrong, and nothing of a secret is in it', async () => {
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const garbage = Buffer.from('c4nary '.repeat(9)).toString('base64');
  const wallet = { ...get, includeWalletAuthToken: true };
  const signed = { requestPath: '/v1/x', requestBody: '{}', includeAuthorizationSignature: true };
  const good = edwardsSecret();
  const wrong: [PaymentData, data.PaymentTokenRequestInput, Record<string, string>, RegExp][] = [
    [coinbase, { coinbaseCdpTokenRequest: get }, {}, /no apiKeySecret/],
    [coinbase, { coinbaseCdpTokenRequest: get }, { apiKeySecret: garbage }, /apiKeySecret .* is not/],
    [
      coinbase,
      { coinbaseCdpTokenRequest: get },
      { apiKeySecret: `-----BEGIN EC PRIVATE KEY-----\n${garbage}` },
      /apiKeySecret/,
    ],
    [
      coinbase,
      { coinbaseCdpTokenRequest: get },
      { apiKeySecret: p384.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() },
      /apiKeySecret/,
    ],
    [coinbase, { coinbaseCdpTokenRequest: wallet }, { apiKeySecret: good }, /no walletSecret/],
    [
      coinbase,
      { coinbaseCdpTokenRequest: wallet },
      { apiKeySecret: good, walletSecret: garbage },
      /walletSecret .* is not/,
    ],
    [coinbase, { coinbaseCdpTokenRequest: wallet }, { apiKeySecret: good, walletSecret: pkcs8(p384) }, /walletSecret/],
    [
      coinbase,
      { coinbaseCdpTokenRequest: wallet },
      { apiKeySecret: good, walletSecret: pkcs8(edwards) },
      /walletSecret/,
    ],
    [coinbase, { stripePrivyTokenRequest: signed }, { apiKeySecret: good }, /coinbaseCdpTokenRequest/],
    [privy, { coinbaseCdpTokenRequest: get }, { appSecret: 'x' }, /stripePrivyTokenRequest/],
    [
      privy,
      { stripePrivyTokenRequest: { ...signed, requestBody: 'c4nary' } },
      { appSecret: 'x' },
      /requestBody must be JSON/,
    ],
    [privy, { stripePrivyTokenRequest: signed }, {}, /no appSecret/],
    [privy, { stripePrivyTokenRequest: signed }, { appSecret: 'x' }, /no authorizationPrivateKey/],
    [
      privy,
      { stripePrivyTokenRequest: signed },
      { appSecret: 'x', authorizationPrivateKey: garbage },
      /authorizationPrivateKey .* is not/,
    ],
  ];
  for (const [provider, request, secrets, message] of wrong) {
    const error: unknown = await ask(provider, request, secrets).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ ...REFUSED, message: expect.stringMatching(message) });
    const shown = inspect(error, { depth: 9 });
    for (const secret of [garbage, 'c4nary', ...Object.values(secrets).filter((one) => one.length > 9)])
      expect(shown).not.toContain(secret);
  }
});
