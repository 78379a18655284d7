import { type control, errors, type Paginator } from '@agentplatform/contract';
import type { HandlersOf } from '../../../kernel/service.ts';
import { object, type Shape } from '../../../kernel/stored-shape.ts';
import type { CredentialProvider } from './credential-provider.ts';
import type { CredentialProviders } from './credential-providers.ts';
import { PROVIDERS_A_PAGE, providerTimes } from './provider-list.ts';
import { type ProviderRightsDeps, providerRights } from './provider-rights.ts';
import { type GivenSecret, shownSecret } from './provider-secret.ts';

/** An API key provider is its key alone. */
export type ApiKeyData = Record<string, never>;

export interface ApiKeyOperationsDeps extends ProviderRightsDeps {
  apiKeys: CredentialProviders<ApiKeyData>;
  paginator: Paginator;
}

/** What this file serves. */
export const API_KEY_OPERATIONS = [
  'CreateApiKeyCredentialProvider',
  'GetApiKeyCredentialProvider',
  'UpdateApiKeyCredentialProvider',
  'ListApiKeyCredentialProviders',
  'DeleteApiKeyCredentialProvider',
  'GetResourceApiKey',
] as const;
export type ApiKeyOperation = (typeof API_KEY_OPERATIONS)[number];

type Call = control.CreateApiKeyCredentialProviderRequest | control.UpdateApiKeyCredentialProviderRequest;

/** Keys of other services, which agents get by the name of their provider. */
export function apiKeyOperations(deps: ApiKeyOperationsDeps): HandlersOf<ApiKeyOperation> {
  const { apiKeys, paginator } = deps;
  const { one, list, use } = providerRights(deps, apiKeys);

  return {
    CreateApiKeyCredentialProvider: {
      resource: one,
      handle: async (input, ctx) =>
        described(await apiKeys.create({ name: input.name, ...given(input), tags: input.tags }, ctx)),
    },
    GetApiKeyCredentialProvider: {
      resource: one,
      handle: async ({ name }, { accountId }) => view(await apiKeys.get(accountId, name)),
    },
    UpdateApiKeyCredentialProvider: {
      resource: one,
      handle: async (input, ctx) => view(await apiKeys.update(input.name, () => given(input), ctx)),
    },
    ListApiKeyCredentialProviders: {
      resource: list,
      async handle(input, { accountId }) {
        const scope = { operation: 'ListApiKeyCredentialProviders', accountId };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PROVIDERS_A_PAGE }, (page) =>
          apiKeys.list(accountId, page),
        );
        const credentialProviders = items.map((item) => ({ ...named(item), ...providerTimes(item) }));
        return { credentialProviders, nextToken };
      },
    },
    DeleteApiKeyCredentialProvider: {
      resource: one,
      async handle({ name }, { accountId }) {
        await apiKeys.delete(accountId, name);
        return {};
      },
    },
    GetResourceApiKey: {
      resource: use,
      async handle({ resourceCredentialProviderName: name }, ctx) {
        const provider = await apiKeys.get(ctx.accountId, name);
        const key = await apiKeys.secret(provider, 'apiKey', ctx);
        if (!key) throw errors.resourceNotFound(`The API key credential provider ${name} has no key any more.`);
        return { apiKey: key.reveal() };
      },
    },
  };
}

/** The stored data besides the key, which is empty. */
export const storedApiKey: Shape<ApiKeyData> = object({});

function given({ apiKey, apiKeySecretConfig, apiKeySecretSource }: Call) {
  const key: GivenSecret = {
    value: apiKey,
    source: apiKeySecretSource,
    config: apiKeySecretConfig,
    prefix: 'apiKeySecret',
  };
  return { data: {}, secrets: { apiKey: key } };
}

function named({ name, arn }: CredentialProvider<ApiKeyData>) {
  return { name, credentialProviderArn: arn };
}

function described(provider: CredentialProvider<ApiKeyData>): control.CreateApiKeyCredentialProviderResponse {
  const { arn, source, jsonKey } = shownSecret(provider.secrets.apiKey);
  return { ...named(provider), apiKeySecretArn: arn, apiKeySecretSource: source, apiKeySecretJsonKey: jsonKey };
}

function view(provider: CredentialProvider<ApiKeyData>): control.GetApiKeyCredentialProviderResponse {
  return { ...described(provider), ...providerTimes(provider) };
}
