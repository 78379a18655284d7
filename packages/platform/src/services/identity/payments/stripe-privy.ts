import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { canonicalJson, type data, errors } from '@agentplatform/contract';
import type { Secret } from '../../../kernel/secrets/index.ts';
import type { PaymentData } from '../providers/payment-provider.ts';
import { needSecret, type PaymentTokenDeps } from './payment-secrets.ts';
import { readBody } from './request-body.ts';

const HOST = 'api.privy.io';
/** How long the vendor may take a signed request for true. */
const LIFE_MS = 5 * 60_000;
/** What the vendor's dashboard puts before the key. */
const KEY_PREFIX = 'wallet-auth:';

/**
 * What a request to Privy needs: the app's Basic credentials and, if wanted, a signature over the request. Form: docs.privy.io, "Implementing
 * signing directly" and "Request expiry". The wire names no method: requests with a body that are signed are POST.
 */
export async function privyToken(
  { appId }: Extract<PaymentData, { vendor: 'StripePrivy' }>,
  request: data.StripePrivyTokenRequestInput,
  deps: PaymentTokenDeps,
): Promise<data.StripePrivyTokenResponseOutput> {
  const { requestHost = HOST, requestPath, requestBody, includeAuthorizationSignature } = request;
  const body = readBody('paymentTokenRequest.stripePrivyTokenRequest.requestBody', requestBody);
  const appSecret = await needSecret('appSecret', deps);
  const basicAuthToken = Buffer.from(`${appId}:${appSecret.reveal()}`).toString('base64');
  if (!includeAuthorizationSignature) return { appId, basicAuthToken };

  const key = signingKey(await needSecret('authorizationPrivateKey', deps));
  const requestExpiry = deps.clock.now() + LIFE_MS;
  const payload = canonicalJson({
    version: 1,
    method: 'POST',
    url: `https://${requestHost}${requestPath}`.replace(/\/$/, ''),
    body,
    headers: { 'privy-app-id': appId, 'privy-request-expiry': String(requestExpiry) },
  });
  const authorizationSignature = sign('sha256', Buffer.from(payload), key).toString('base64');
  return { appId, basicAuthToken, authorizationSignature, requestExpiry };
}

/** An EC key on P-256, PKCS 8 in base64. */
function signingKey(secret: Secret): KeyObject {
  const text = secret.reveal().trim();
  const base64 = text.startsWith(KEY_PREFIX) ? text.slice(KEY_PREFIX.length) : text;
  try {
    const key = createPrivateKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'pkcs8' });
    if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key;
  } catch {
    // What Node says may hold a piece of it.
  }
  throw errors.validation(
    'The authorizationPrivateKey of the payment credential provider is not an EC key on P-256 (PKCS 8 in base64).',
    { remedy: 'Give it the key as Privy shows it, with UpdatePaymentCredentialProvider.' },
  );
}
