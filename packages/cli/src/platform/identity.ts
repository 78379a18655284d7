import type {
  BedrockAgentCoreControlClient,
  CreateApiKeyCredentialProviderRequest,
  CreateOauth2CredentialProviderRequest,
  CreatePaymentCredentialProviderRequest,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';

/** The kinds of credential providers; names are unique within a kind. */
export const PROVIDER_KINDS = ['api-key', 'oauth2', 'payment'] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** A credential provider as lists show it. */
export interface ListedProvider {
  name: string;
  kind: ProviderKind;
  /** Of an OAuth2 or payment provider. */
  vendor?: string;
  arn: string;
}

/** All credential providers, by name. */
export async function listProviders(client: BedrockAgentCoreControlClient): Promise<ListedProvider[]> {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const found: ListedProvider[] = [];
  for await (const { credentialProviders = [] } of sdk.paginateListApiKeyCredentialProviders({ client }, {}))
    for (const { name = '', credentialProviderArn: arn = '' } of credentialProviders)
      found.push({ name, kind: 'api-key', arn });
  for await (const { credentialProviders = [] } of sdk.paginateListOauth2CredentialProviders({ client }, {}))
    for (const {
      name = '',
      credentialProviderVendor: vendor = '',
      credentialProviderArn: arn = '',
    } of credentialProviders)
      found.push({ name, kind: 'oauth2', vendor, arn });
  for await (const { credentialProviders = [] } of sdk.paginateListPaymentCredentialProviders({ client }, {}))
    for (const {
      name = '',
      credentialProviderVendor: vendor = '',
      credentialProviderArn: arn = '',
    } of credentialProviders)
      found.push({ name, kind: 'payment', vendor, arn });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The kind of the provider of that name. Rejects with a `CliError`: not there, or there are several and `wanted` says not which. */
export async function kindOf(
  client: BedrockAgentCoreControlClient,
  name: string,
  wanted?: ProviderKind,
): Promise<ProviderKind> {
  if (wanted !== undefined) return wanted;
  const [only, ...others] = (await listProviders(client)).filter((one) => one.name === name);
  if (!only)
    throw new CliError('notFound', `There is no credential provider ${name}.`, 'List them: agentcore identity list');
  if (others.length === 0) return only.kind;
  const kinds = [only, ...others].map(({ kind }) => `--kind ${kind}`).join(' or ');
  throw new CliError('usage', `There are several providers named ${name}.`, `Say which: ${kinds}`);
}

/** Everything that the platform shows of a provider; secrets are no part of it. */
export async function showProvider(client: BedrockAgentCoreControlClient, kind: ProviderKind, name: string) {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const { $metadata: _, ...shown } = await {
    'api-key': () => client.send(new sdk.GetApiKeyCredentialProviderCommand({ name })),
    oauth2: () => client.send(new sdk.GetOauth2CredentialProviderCommand({ name })),
    payment: () => client.send(new sdk.GetPaymentCredentialProviderCommand({ name })),
  }[kind]();
  return { kind, ...shown };
}

export async function removeProvider(client: BedrockAgentCoreControlClient, kind: ProviderKind, name: string) {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  await {
    'api-key': () => client.send(new sdk.DeleteApiKeyCredentialProviderCommand({ name })),
    oauth2: () => client.send(new sdk.DeleteOauth2CredentialProviderCommand({ name })),
    payment: () => client.send(new sdk.DeletePaymentCredentialProviderCommand({ name })),
  }[kind]();
}

export async function addApiKey(client: BedrockAgentCoreControlClient, wish: CreateApiKeyCredentialProviderRequest) {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const { $metadata: _, ...made } = await client.send(new sdk.CreateApiKeyCredentialProviderCommand(wish));
  return made;
}

export async function addOauth2(client: BedrockAgentCoreControlClient, wish: CreateOauth2CredentialProviderRequest) {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const { $metadata: _, ...made } = await client.send(new sdk.CreateOauth2CredentialProviderCommand(wish));
  return made;
}

export async function addPayment(client: BedrockAgentCoreControlClient, wish: CreatePaymentCredentialProviderRequest) {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
  const { $metadata: _, ...made } = await client.send(new sdk.CreatePaymentCredentialProviderCommand(wish));
  return made;
}
