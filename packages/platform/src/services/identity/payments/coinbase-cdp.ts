import { createHash, createPrivateKey, type KeyObject, randomBytes } from 'node:crypto';
import { canonicalJson, type data, errors } from '@agentplatform/contract';
import { SignJWT } from 'jose';
import type { Secret } from '../../../kernel/secrets/index.ts';
import type { PaymentData } from '../providers/payment-provider.ts';
import { needSecret, type PaymentTokenDeps } from './payment-secrets.ts';
import { readBody } from './request-body.ts';

const HOST = 'api.cdp.coinbase.com';
/** The vendor's own default, and what its server takes at most. */
const LIFE_SECONDS = 120;

/**
 * Tokens of the Coinbase Developer Platform for one request: a JWT by the API key, and by the wallet secret another that is bound to the
 * body. Form: docs.cdp.coinbase.com, "CDP API authentication".
 */
export async function coinbaseToken(
  { apiKeyId }: Extract<PaymentData, { vendor: 'CoinbaseCDP' }>,
  request: data.CoinbaseCdpTokenRequestInput,
  deps: PaymentTokenDeps,
): Promise<data.CoinbaseCdpTokenResponseOutput> {
  const { requestMethod, requestHost = HOST, requestPath, includeWalletAuthToken } = request;
  // What comes behind the path is no part of what the vendor compares.
  const uris = [`${requestMethod} ${requestHost}${requestPath.split('?')[0]}`];
  const now = Math.floor(deps.clock.now() / 1000);
  const key = apiKey(await needSecret('apiKeySecret', deps));
  const alg = key.asymmetricKeyType === 'ed25519' ? 'EdDSA' : 'ES256';
  const bearerToken = await new SignJWT({ sub: apiKeyId, iss: 'cdp', uris })
    .setProtectedHeader({ alg, kid: apiKeyId, typ: 'JWT', nonce: nonce() })
    .setIssuedAt(now)
    .setNotBefore(now)
    .setExpirationTime(now + LIFE_SECONDS)
    .sign(key);
  if (!includeWalletAuthToken) return { bearerToken };

  const wallet = walletKey(await needSecret('walletSecret', deps));
  const walletAuthToken = await new SignJWT({ uris, ...requestHash(request.requestBody) })
    .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
    .setIssuedAt(now)
    .setNotBefore(now)
    .setJti(nonce())
    .sign(wallet);
  return { bearerToken, walletAuthToken };
}

/** Of a body with members; one without has no hash. */
function requestHash(text: string | undefined): { reqHash?: string } {
  const body = text === undefined ? {} : readBody('paymentTokenRequest.coinbaseCdpTokenRequest.requestBody', text);
  if (Object.keys(body).length === 0) return {};
  return { reqHash: createHash('sha256').update(canonicalJson(body)).digest('hex') };
}

/** An Ed25519 key as the vendor gives it, seed and public key in base64, or an EC key in PEM. */
function apiKey(secret: Secret): KeyObject {
  const text = secret.reveal();
  const bytes = Buffer.from(text, 'base64');
  try {
    if (text.includes('-----BEGIN')) return ecKey(createPrivateKey(text));
    if (bytes.length === 64) {
      const [d, x] = [bytes.subarray(0, 32), bytes.subarray(32)].map((part) => part.toString('base64url'));
      return createPrivateKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', d, x } });
    }
  } catch {
    // What Node says may hold a piece of it.
  }
  throw unfit('apiKeySecret', 'an Ed25519 key (64 bytes in base64) nor an EC key on P-256 in PEM');
}

/** An EC key, PKCS 8 in base64. */
function walletKey(secret: Secret): KeyObject {
  try {
    return ecKey(createPrivateKey({ key: Buffer.from(secret.reveal(), 'base64'), format: 'der', type: 'pkcs8' }));
  } catch {
    throw unfit('walletSecret', 'an EC key on P-256 (PKCS 8 in base64)');
  }
}

function ecKey(key: KeyObject): KeyObject {
  if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key;
  throw new Error('not a key on P-256');
}

function unfit(field: string, wanted: string): Error {
  return errors.validation(`The ${field} of the payment credential provider is not ${wanted}.`, {
    remedy: 'Give it the secret as the Coinbase Developer Platform shows it, with UpdatePaymentCredentialProvider.',
  });
}

function nonce(): string {
  return randomBytes(16).toString('hex');
}
