import { type control, errors, type Paginator } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { HandlersOf } from '../../../kernel/service.ts';
import type { PaymentSecrets } from '../payments/payment-secrets.ts';
import { paymentToken } from '../payments/payment-token.ts';
import type { CredentialProvider } from './credential-provider.ts';
import type { CredentialProviders } from './credential-providers.ts';
import { givenPayment, type PaymentData, shownPayment } from './payment-provider.ts';
import { PROVIDERS_A_PAGE, providerTimes } from './provider-list.ts';
import { type ProviderRightsDeps, providerRights } from './provider-rights.ts';

export interface PaymentOperationsDeps extends ProviderRightsDeps {
  payments: CredentialProviders<PaymentData>;
  paginator: Paginator;
  clock: Clock;
}

/** What this file serves. */
export const PAYMENT_OPERATIONS = [
  'CreatePaymentCredentialProvider',
  'GetPaymentCredentialProvider',
  'UpdatePaymentCredentialProvider',
  'ListPaymentCredentialProviders',
  'DeletePaymentCredentialProvider',
  'GetResourcePaymentToken',
] as const;
export type PaymentOperation = (typeof PAYMENT_OPERATIONS)[number];

/** Credentials of payment vendors. They never leave the platform: agents get tokens that are made with them, each for one request. */
export function paymentOperations(deps: PaymentOperationsDeps): HandlersOf<PaymentOperation> {
  const { payments, paginator, clock } = deps;
  const { one, list, use } = providerRights(deps, payments);

  return {
    CreatePaymentCredentialProvider: {
      resource: one,
      async handle({ name, credentialProviderVendor, providerConfigurationInput, tags }, ctx) {
        const given = givenPayment(credentialProviderVendor, providerConfigurationInput);
        return described(await payments.create({ name, ...given, tags }, ctx));
      },
    },
    GetPaymentCredentialProvider: {
      resource: one,
      async handle({ name }, { accountId }) {
        const provider = await payments.get(accountId, name);
        return { ...described(provider), ...providerTimes(provider), tags: provider.tags };
      },
    },
    UpdatePaymentCredentialProvider: {
      resource: one,
      async handle({ name, credentialProviderVendor: vendor, providerConfigurationInput }, ctx) {
        const changed = await payments.update(
          name,
          ({ data }) => {
            if (data.vendor !== vendor)
              throw errors.invalidField('credentialProviderVendor', `is ${data.vendor}, and cannot be changed`);
            return givenPayment(vendor, providerConfigurationInput);
          },
          ctx,
        );
        return { ...described(changed), ...providerTimes(changed) };
      },
    },
    ListPaymentCredentialProviders: {
      resource: list,
      async handle(input, { accountId }) {
        const scope = { operation: 'ListPaymentCredentialProviders', accountId };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PROVIDERS_A_PAGE }, (page) =>
          payments.list(accountId, page),
        );
        return { credentialProviders: items.map((item) => ({ ...named(item), ...providerTimes(item) })), nextToken };
      },
    },
    DeletePaymentCredentialProvider: {
      resource: one,
      async handle({ name }, { accountId }) {
        await payments.delete(accountId, name);
        return {};
      },
    },
    GetResourcePaymentToken: {
      resource: use,
      async handle({ resourceCredentialProviderName: name, paymentTokenRequest }, ctx) {
        const provider = await payments.get(ctx.accountId, name);
        const secrets: PaymentSecrets = (field) => payments.secret(provider, field, ctx);
        const paymentTokenResponse = await paymentToken(provider.data, paymentTokenRequest, { secrets, clock });
        return { paymentTokenResponse };
      },
    },
  };
}

function named({ name, arn, data }: CredentialProvider<PaymentData>) {
  return { name, credentialProviderArn: arn, credentialProviderVendor: data.vendor };
}

function described(provider: CredentialProvider<PaymentData>): control.CreatePaymentCredentialProviderResponse {
  return { ...named(provider), providerConfigurationOutput: shownPayment(provider) };
}
