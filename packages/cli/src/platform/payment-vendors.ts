import type { CreatePaymentCredentialProviderRequest } from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';

export const PAYMENT_VENDORS = ['coinbase', 'privy'] as const;

/** An app at a payment vendor, without its secrets. */
export interface PaymentWish {
  name: string;
  vendor: (typeof PAYMENT_VENDORS)[number];
  /** Of Coinbase. */
  apiKeyId?: string;
  /** Of Coinbase: whether there is a wallet secret, which only writing to wallets needs. */
  wallet?: boolean;
  /** Of Privy. */
  appId?: string;
  /** Of Privy. */
  authorizationId?: string;
}

/** The secrets that such a provider needs, by the wire's names. */
export function paymentSecrets({ vendor, wallet }: PaymentWish): string[] {
  if (vendor === 'privy') return ['appSecret', 'authorizationPrivateKey'];
  return wallet ? ['apiKeySecret', 'walletSecret'] : ['apiKeySecret'];
}

/** The names of the secrets in the JSON of a secret of the platform, in the place of their values. */
export function externalSecrets(names: string[], secretId: string): Record<string, unknown> {
  return Object.fromEntries(
    names.flatMap((name): [string, unknown][] => [
      [`${name}Source`, 'EXTERNAL'],
      [`${name}Config`, { secretId, jsonKey: name }],
    ]),
  );
}

/** The request that makes such a provider. Throws a `CliError` (usage) for an id that is missing or is the other vendor's. */
export function paymentRequest(
  wish: PaymentWish,
  secrets: Record<string, unknown> = {},
): CreatePaymentCredentialProviderRequest {
  const { name, vendor, wallet, apiKeyId, appId, authorizationId } = wish;
  if (vendor === 'coinbase') {
    if (apiKeyId === undefined || appId !== undefined || authorizationId !== undefined)
      throw new CliError('usage', 'coinbase needs --api-key-id, and neither --app-id nor --authorization-id.');
    const coinbaseCdpConfiguration = { apiKeyId, ...secrets };
    return { name, credentialProviderVendor: 'CoinbaseCDP', providerConfigurationInput: { coinbaseCdpConfiguration } };
  }
  if (appId === undefined || authorizationId === undefined || apiKeyId !== undefined || wallet)
    throw new CliError('usage', 'privy needs --app-id and --authorization-id, and neither --api-key-id nor --wallet.');
  const stripePrivyConfiguration = { appId, authorizationId, ...secrets };
  return { name, credentialProviderVendor: 'StripePrivy', providerConfigurationInput: { stripePrivyConfiguration } };
}
