import { type control, errors } from '@agentplatform/contract';
import { object, oneOf, type Shape, text } from '../../../kernel/stored-shape.ts';
import type { CredentialProvider } from './credential-provider.ts';
import type { GivenProvider } from './credential-providers.ts';
import { type GivenSecret, shownSecret } from './provider-secret.ts';

/** What is kept of a payment provider beside its secrets. */
export type PaymentData =
  | { vendor: 'CoinbaseCDP'; apiKeyId: string }
  | { vendor: 'StripePrivy'; appId: string; authorizationId: string };

const VENDOR = object({ vendor: oneOf('CoinbaseCDP', 'StripePrivy') });
const COINBASE: Shape<PaymentData> = object({ vendor: oneOf('CoinbaseCDP'), apiKeyId: text });
const PRIVY: Shape<PaymentData> = object({ vendor: oneOf('StripePrivy'), appId: text, authorizationId: text });

export const storedPayment: Shape<PaymentData> = (value, at) =>
  (VENDOR(value, at).vendor === 'CoinbaseCDP' ? COINBASE : PRIVY)(value, at);

/** Throws ValidationException unless the configuration is that of the vendor. */
export function givenPayment(
  vendor: control.PaymentCredentialProviderVendorType,
  input: control.PaymentProviderConfigurationInput,
): GivenProvider<PaymentData> {
  const { coinbaseCdpConfiguration: coinbase, stripePrivyConfiguration: privy } = input;
  if (vendor === 'CoinbaseCDP' && coinbase)
    return {
      data: { vendor, apiKeyId: coinbase.apiKeyId },
      secrets: {
        apiKeySecret: secretOf(coinbase.apiKeySecret, coinbase.apiKeySecretSource, coinbase.apiKeySecretConfig),
        // Writing to wallets alone needs it.
        walletSecret: {
          ...secretOf(coinbase.walletSecret, coinbase.walletSecretSource, coinbase.walletSecretConfig),
          optional: true,
        },
      },
    };
  if (vendor === 'StripePrivy' && privy)
    return {
      data: { vendor, appId: privy.appId, authorizationId: privy.authorizationId },
      secrets: {
        appSecret: secretOf(privy.appSecret, privy.appSecretSource, privy.appSecretConfig),
        authorizationPrivateKey: secretOf(
          privy.authorizationPrivateKey,
          privy.authorizationPrivateKeySource,
          privy.authorizationPrivateKeyConfig,
        ),
      },
    };
  const member = vendor === 'CoinbaseCDP' ? 'coinbaseCdpConfiguration' : 'stripePrivyConfiguration';
  throw errors.invalidField('providerConfigurationInput', `must have ${member}, which is that of ${vendor}`);
}

function secretOf(
  value: string | undefined,
  source: control.SecretSourceType | undefined,
  config: control.SecretReference | undefined,
): GivenSecret {
  return { value, source, config };
}

/** What the wire shows of the configuration: no secret, but where each stands. */
export function shownPayment({
  data,
  secrets,
}: CredentialProvider<PaymentData>): control.PaymentProviderConfigurationOutput {
  if (data.vendor === 'CoinbaseCDP') {
    const [key, wallet] = [shownSecret(secrets.apiKeySecret), shownSecret(secrets.walletSecret)];
    return {
      coinbaseCdpConfiguration: {
        apiKeyId: data.apiKeyId,
        ...{ apiKeySecretArn: key.arn, apiKeySecretSource: key.source, apiKeySecretJsonKey: key.jsonKey },
        ...{ walletSecretArn: wallet.arn, walletSecretSource: wallet.source, walletSecretJsonKey: wallet.jsonKey },
      },
    };
  }
  const [app, signing] = [shownSecret(secrets.appSecret), shownSecret(secrets.authorizationPrivateKey)];
  return {
    stripePrivyConfiguration: {
      appId: data.appId,
      authorizationId: data.authorizationId,
      ...{ appSecretArn: app.arn, appSecretSource: app.source, appSecretJsonKey: app.jsonKey },
      authorizationPrivateKeyArn: signing.arn,
      authorizationPrivateKeySource: signing.source,
      authorizationPrivateKeyJsonKey: signing.jsonKey,
    },
  };
}
