import { type ArnHome, resourceArn } from '@agentplatform/contract';
import { DEFAULT_VAULT } from '../vault/token-vault.ts';
import type { KeptSecret } from './provider-secret.ts';

/** In the table `resources`, and in ARNs. */
export type ProviderKind = 'api-key-credential-provider' | 'oauth2-credential-provider' | 'payment-credential-provider';

/** Knows how agents get a credential of another service. `Data` is what its kind keeps beside its secrets. */
export interface CredentialProvider<Data> {
  arn: string;
  accountId: string;
  /** Unique among those of its kind in the account. */
  name: string;
  data: Data;
  /** By the wire's name of the field that a secret is given in. */
  secrets: Readonly<Record<string, KeptSecret>>;
  tags: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

/** How one kind is told to people, and the last part of the names of its managed secrets. */
export const PROVIDER_WORDS: Readonly<Record<ProviderKind, { title: string; folder: string; list: string }>> = {
  'api-key-credential-provider': {
    title: 'API key credential provider',
    folder: 'apikey',
    list: 'ListApiKeyCredentialProviders',
  },
  'oauth2-credential-provider': {
    title: 'OAuth2 credential provider',
    folder: 'oauth2',
    list: 'ListOauth2CredentialProviders',
  },
  'payment-credential-provider': {
    title: 'payment credential provider',
    folder: 'payment',
    list: 'ListPaymentCredentialProviders',
  },
};

export function providerArn(kind: ProviderKind, home: ArnHome, name: string): string {
  return resourceArn(kind, home, DEFAULT_VAULT, name);
}
