import type { control, Paginator } from '@agentplatform/contract';
import { errors } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { CredentialProviders } from './credential-providers.ts';
import {
  CLIENT_SECRET,
  givenProvider,
  isAnotherClient,
  type Oauth2Provider,
  type Oauth2Settings,
  shownConfig,
} from './oauth2-provider.ts';

export type Oauth2ProviderOperation =
  | 'CreateOauth2CredentialProvider'
  | 'GetOauth2CredentialProvider'
  | 'UpdateOauth2CredentialProvider'
  | 'ListOauth2CredentialProviders'
  | 'DeleteOauth2CredentialProvider';

export interface Oauth2ProviderOperationsDeps {
  providers: CredentialProviders<Oauth2Settings>;
  paginator: Paginator;
  /** ARN of an account's token vault. */
  vaultArn(accountId: string): string;
  newProviderId(): string;
  /** Where that provider's server sends people back to. */
  callbackUrl(providerId: string): string;
  /** Why the platform will not call an address; undefined when it may. */
  refusalOf(url: string): Promise<string | undefined>;
  /** PEM of the authority that is named; throws ValidationException for what is none. */
  certificateAuthority(
    named: readonly control.CertificateConfiguration[] | undefined,
    ctx: RequestContext,
  ): Promise<string | undefined>;
  /** Removes tokens and authorizations of a provider that is gone or has another client now. */
  forget(providerId: string): Promise<void>;
}

/** The model's own maximum. */
const PAGE_SIZE = 20;

/** The operations on OAuth2 credential providers. A provider is READY once it is made: nothing of it is made later. */
export function oauth2ProviderOperations(deps: Oauth2ProviderOperationsDeps): HandlersOf<Oauth2ProviderOperation> {
  const { providers, paginator, callbackUrl } = deps;
  const one = ({ name }: { name: string }, { accountId }: RequestContext): string => providers.arnOf(accountId, name);

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
    createdTime: new Date(provider.createdAt),
    lastUpdatedTime: new Date(provider.updatedAt),
  });

  /** What has to be asked of others before a provider is written. */
  const checked = async (settings: Oauth2Settings, ctx: RequestContext): Promise<Oauth2Settings> => {
    for (const [field, url] of addressesOf(settings.oauthDiscovery)) {
      const refusal = await deps.refusalOf(url);
      if (refusal) throw errors.invalidField(field, refusal);
    }
    const certificateAuthority = await deps.certificateAuthority(settings.certificateConfigurations, ctx);
    return { ...settings, certificateAuthority };
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
        const change = (current: Oauth2Provider) => ({
          ...givenProvider(input, current.data.id, current.data),
          data: { ...settings, id: current.data.id },
        });
        const changed = await providers.update(input.name, change, ctx);
        if (isAnotherClient(before, changed.data)) await deps.forget(before.id);
        return view(changed);
      },
    },
    ListOauth2CredentialProviders: {
      resource: (_input, { accountId }) => deps.vaultArn(accountId),
      async handle({ maxResults, nextToken }, { accountId }) {
        const scope = { operation: 'ListOauth2CredentialProviders', accountId } as const;
        const { items, next } = await providers.list(accountId, {
          limit: maxResults ?? PAGE_SIZE,
          after: nextToken === undefined ? undefined : String(paginator.decode(scope, nextToken)),
        });
        return {
          credentialProviders: items.map(({ name, arn, data, createdAt, updatedAt }) => ({
            name,
            credentialProviderArn: arn,
            credentialProviderVendor: data.vendor,
            createdTime: new Date(createdAt),
            lastUpdatedTime: new Date(updatedAt),
          })),
          nextToken: next === undefined ? undefined : paginator.encode(scope, next),
        };
      },
    },
    DeleteOauth2CredentialProvider: {
      resource: one,
      async handle({ name }, { accountId }) {
        const { data } = await providers.get(accountId, name);
        await providers.delete(accountId, name);
        await deps.forget(data.id);
        return {};
      },
    },
  };
}

/** Where the client's secret stands, in the wire's words. */
function secretOf({ secrets }: Oauth2Provider) {
  const kept = secrets[CLIENT_SECRET];
  if (!kept) throw new Error('a provider has no place for its client secret');
  return {
    clientSecretArn: { secretArn: kept.secretArn },
    clientSecretSource: kept.source,
    ...(kept.source === 'EXTERNAL' && { clientSecretJsonKey: kept.jsonKey }),
  };
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
