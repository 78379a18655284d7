import { hash } from 'node:crypto';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import type { WorkloadBearer } from '../workloads/workload-tokens.ts';
import type { WorkloadUser } from '../workloads/workload-user.ts';

/** What an agent asks for. */
export interface TokenRequest {
  provider: Oauth2Provider;
  /** Who asks, for whom. */
  bearer: WorkloadBearer;
  /** Each once, in order. */
  scopes: readonly string[];
  resources: readonly string[];
  audiences: readonly string[];
  customParameters: Readonly<Record<string, string>>;
}

/** Each once, in order: who asks for the same asks for the same token. */
export function asSet(texts: readonly string[] = []): string[] {
  return [...new Set(texts)].sort();
}

/** The names of a user, whose two kinds never meet: none for nobody, one for an id, two for issuer and subject. */
export function namesOf(user: WorkloadUser | undefined): string[] {
  if (user === undefined) return [];
  return user.kind === 'id' ? [user.id] : [user.issuer, user.subject];
}

/** The key of the token that equal requests share. The key reveals nothing about the token. `beside` contains further values in which requests may differ. */
export function tokenKey({ provider, bearer, ...request }: TokenRequest, beside: readonly unknown[]): string {
  const { accountId, workload, madeAt = null, user } = bearer;
  const { scopes, resources, audiences } = request;
  const whose = [accountId, provider.data.id, workload, madeAt, namesOf(user)];
  return hash('sha256', JSON.stringify([...whose, scopes, resources, audiences, ...beside]), 'base64url');
}

/** What of the request goes to a provider, with the scopes as that vendor writes them. `checkCustomParameters` has seen to what is the caller's. */
export function grantParameters(
  request: Pick<TokenRequest, 'scopes' | 'resources' | 'audiences' | 'customParameters'>,
  scopeSeparator: string,
): URLSearchParams {
  const { scopes, resources, audiences, customParameters } = request;
  const parameters = new URLSearchParams();
  if (scopes.length > 0) parameters.set('scope', scopes.join(scopeSeparator));
  for (const resource of resources) parameters.append('resource', resource);
  for (const audience of audiences) parameters.append('audience', audience);
  for (const [name, value] of Object.entries(customParameters)) if (!parameters.has(name)) parameters.set(name, value);
  return parameters;
}
