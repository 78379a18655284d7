import type { CredentialProvider } from './credential-provider.ts';

/** The model's own maximum for the kinds that name none below it. */
export const PROVIDERS_A_PAGE = 20;

/** When a provider was made and changed, as the wire has it. */
export function providerTimes({ createdAt, updatedAt }: Pick<CredentialProvider<unknown>, 'createdAt' | 'updatedAt'>) {
  return { createdTime: new Date(createdAt), lastUpdatedTime: new Date(updatedAt) };
}
