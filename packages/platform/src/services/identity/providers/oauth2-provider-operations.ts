import type { control, Paginator } from '@agentplatform/contract';
import { errors } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { Executor } from '../../../kernel/storage/index.ts';
import type { CredentialProviders, GivenProvider } from './credential-providers.ts';
import {
  CLIENT_SECRET,
  givenProvider,
  isAnotherClient,
  isAnotherServer,
  type Oauth2Provider,
  type Oauth2Settings,
  shownConfig,
} from './oauth2-provider.ts';
import { PROVIDERS_A_PAGE, providerTimes } from './provider-list.ts';
import { type ProviderRightsDeps, providerRights } from './provider-rights.ts';
import { shownSecret } from './provider-secret.ts';

/** What this file serves. */
export const OAUTH2_PROVIDER_OPERATIONS = [
  'CreateOauth2CredentialProvider',
  'GetOauth2CredentialProvider',
  'UpdateOauth2CredentialProvider',
  'ListOauth2CredentialProviders',
  'DeleteOauth2CredentialProvider',
] as const;
export type Oauth2ProviderOperation = (typeof OAUTH2_PROVIDER_OPERATIONS)[number];

export interface Oauth2ProviderOperationsDeps extends ProviderRightsDeps {
  providers: CredentialProviders<Oauth2Settings>;
  paginator: Paginator;
  newProviderId(): string;
  /** Where that provider's server sends people back to. */
  callbackUrl(providerId: string): string;
  /** Why the platform will not call an address; undefined when it may. */
  refusalOf(url: string): Promise<string | undefined>;
  /** The PEM of the certificate authority that `named` refers to. Throws ValidationException if it is not a certificate. */
  certificateAuthority(
    named: readonly control.CertificateConfiguration[] | undefined,
    ctx: RequestContext,
  ): Promise<string | undefined>;
  /** Removes tokens and authorizations of a provider that is gone or has another client now, in the transaction that makes it so. */
  forget(of: { providerId: string }, tx: Executor): Promise<void>;
}

/** The operations on OAuth2 credential providers. A provider is READY once it is made: nothing of it is made later. */
export function oauth2ProviderOperations(deps: Oauth2ProviderOperationsDeps): HandlersOf<Oauth2ProviderOperation> {
  const { providers, paginator, callbackUrl } = deps;
  const { one, list } = providerRights(deps, providers);

  const described = (provider: Oauth2Provider) => ({
    ...secretOf(provider),
    name: provider.name,
    credentialProviderArn: provider.arn,
    callbackUrl: callbackUrl(provider.data.id),
    oauth2ProviderConfigOutput: shownConfig(provider),
    status: 'READY' as const,
  });
  const view = (provider: Oauth2Provider) => ({
    ...described(provider),
    credentialProviderVendor: provider.data.vendor,
    ...providerTimes(provider),
  });

  /** What has to be asked of others before a provider is written. */
  const checked = async (settings: Oauth2Settings, ctx: RequestContext): Promise<Oauth2Settings> => {
    for (const [field, url] of addressesOf(settings.oauthDiscovery)) {
      const refusal = await deps.refusalOf(url);
      if (refusal) throw errors.invalidField(field, refusal);
    }
    // Whoever may make a provider could have any key sign, and for any server.
    const key = settings.privateKeyJwt?.privateKeySource?.kmsKeySource?.kmsKeyArn;
    if (key !== undefined) await ctx.require('kms:Sign', key);
    const certificateAuthority = await deps.certificateAuthority(settings.certificateConfigurations, ctx);
    return { ...settings, certificateAuthority };
  };

  /** Tokens of another client mean nothing any more. */
  const forgetTokens = async (
    tx: Executor,
    { data: before }: Oauth2Provider,
    after?: Oauth2Provider,
  ): Promise<void> => {
    if (!after || isAnotherClient(before, after.data)) await deps.forget({ providerId: before.id }, tx);
  };

  return {
    CreateOauth2CredentialProvider: {
      resource: one,
      async handle(input, ctx) {
        const { data, secrets } = givenProvider(input, deps.newProviderId());
        const { name, tags } = input;
        return described(await providers.create({ name, tags, data: await checked(data, ctx), secrets }, ctx));
      },
    },
    GetOauth2CredentialProvider: {
      resource: one,
      handle: async ({ name }, { accountId }) => view(await providers.get(accountId, name)),
    },
    UpdateOauth2CredentialProvider: {
      resource: one,
      async handle(input, ctx) {
        const { data: before } = await providers.get(ctx.accountId, input.name);
        const settings = await checked(givenProvider(input, before.id, before).data, ctx);
        const change = (current: Oauth2Provider) => {
          const given = givenProvider(input, current.data.id, current.data);
          needSecretAnew(current, settings, given);
          return { ...given, data: { ...settings, id: current.data.id } };
        };
        return view(await providers.update(input.name, change, ctx, forgetTokens));
      },
    },
    ListOauth2CredentialProviders: {
      resource: list,
      async handle(input, { accountId }) {
        const scope = { operation: 'ListOauth2CredentialProviders', accountId };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PROVIDERS_A_PAGE }, (page) =>
          providers.list(accountId, page),
        );
        const credentialProviders = items.map((item) => ({
          name: item.name,
          credentialProviderArn: item.arn,
          credentialProviderVendor: item.data.vendor,
          ...providerTimes(item),
        }));
        return { credentialProviders, nextToken };
      },
    },
    DeleteOauth2CredentialProvider: {
      resource: one,
      async handle({ name }, { accountId }) {
        await providers.delete(accountId, name, forgetTokens);
        return {};
      },
    },
  };
}

/** A secret that nobody can read must not be sent to whatever address an update names. */
function needSecretAnew(current: Oauth2Provider, after: Oauth2Settings, given: GivenProvider<Oauth2Settings>): void {
  const kept = current.secrets[CLIENT_SECRET];
  const has = kept?.source === 'EXTERNAL' || kept?.set === true;
  const { value, config } = given.secrets[CLIENT_SECRET] ?? {};
  if (!has || value !== undefined || config !== undefined || !isAnotherServer(current.data, after)) return;
  throw errors.invalidField('clientSecret', 'must be given again where the server of the provider changes', {
    remedy: 'The secret that stands was given for the server before.',
  });
}

/** Where the client's secret stands, in the wire's words. */
function secretOf({ secrets }: Oauth2Provider) {
  const { arn, source, jsonKey } = shownSecret(secrets[CLIENT_SECRET]);
  return { clientSecretArn: arn, clientSecretSource: source, clientSecretJsonKey: jsonKey };
}

function addressesOf({ discoveryUrl, authorizationServerMetadata }: control.Oauth2Discovery): [string, string][] {
  if (discoveryUrl !== undefined) return [['oauthDiscovery.discoveryUrl', discoveryUrl]];
  const field = 'oauthDiscovery.authorizationServerMetadata';
  const { authorizationEndpoint = '', tokenEndpoint = '' } = authorizationServerMetadata ?? {};
  return [
    [`${field}.authorizationEndpoint`, authorizationEndpoint],
    [`${field}.tokenEndpoint`, tokenEndpoint],
  ];
}
