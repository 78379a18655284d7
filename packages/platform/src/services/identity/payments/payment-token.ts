import { type data, errors } from '@agentplatform/contract';
import type { PaymentData } from '../providers/payment-provider.ts';
import { coinbaseToken } from './coinbase-cdp.ts';
import type { PaymentTokenDeps } from './payment-secrets.ts';
import { privyToken } from './stripe-privy.ts';

/** What an agent puts into one request to the vendor. Throws ValidationException for a request that is another vendor's, or that cannot be signed. */
export async function paymentToken(
  provider: PaymentData,
  { coinbaseCdpTokenRequest: coinbase, stripePrivyTokenRequest: privy }: data.PaymentTokenRequestInput,
  deps: PaymentTokenDeps,
): Promise<data.PaymentTokenResponseOutput> {
  if (provider.vendor === 'CoinbaseCDP' && coinbase)
    return { coinbaseCdpTokenResponse: await coinbaseToken(provider, coinbase, deps) };
  if (provider.vendor === 'StripePrivy' && privy)
    return { stripePrivyTokenResponse: await privyToken(provider, privy, deps) };
  const member = provider.vendor === 'CoinbaseCDP' ? 'coinbaseCdpTokenRequest' : 'stripePrivyTokenRequest';
  throw errors.invalidField('paymentTokenRequest', `must have ${member}: the provider is of ${provider.vendor}`);
}
