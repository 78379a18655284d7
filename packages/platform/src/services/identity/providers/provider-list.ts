import type { OperationName, Paginator } from '@agentplatform/contract';
import type { CredentialProvider } from './credential-provider.ts';
import type { CredentialProviders } from './credential-providers.ts';

/** The model's own maximum for the kinds that name none below it. */
const PAGE_SIZE = 20;

/** One page of an account's providers of a kind, and the token for the next one. */
export async function providerPage<Data>(
  { providers, paginator }: { providers: CredentialProviders<Data>; paginator: Paginator },
  { operation, accountId }: { operation: OperationName; accountId: string },
  { maxResults, nextToken }: { maxResults?: number | undefined; nextToken?: string | undefined },
): Promise<{ items: CredentialProvider<Data>[]; nextToken: string | undefined }> {
  const scope = { operation, accountId };
  const { items, next } = await providers.list(accountId, {
    limit: maxResults ?? PAGE_SIZE,
    after: nextToken === undefined ? undefined : String(paginator.decode(scope, nextToken)),
  });
  return { items, nextToken: next === undefined ? undefined : paginator.encode(scope, next) };
}

/** When a provider was made and changed, as the wire has it. */
export function providerTimes({ createdAt, updatedAt }: Pick<CredentialProvider<unknown>, 'createdAt' | 'updatedAt'>) {
  return { createdTime: new Date(createdAt), lastUpdatedTime: new Date(updatedAt) };
}
