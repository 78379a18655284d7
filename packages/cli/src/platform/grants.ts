import { CliError } from '../cli-error.ts';
import { adminJson, segment } from './admin.ts';
import type { Connection } from './connection.ts';

/** Which grants are meant; a user is one id, or issuer and subject. */
export interface GrantFilter {
  user?: string | undefined;
  issuer?: string | undefined;
  subject?: string | undefined;
  provider?: string | undefined;
  workload?: string | undefined;
}

/** What a user has allowed an agent at a provider. */
export interface ListedGrant {
  id: string;
  workload: string;
  credentialProviderArn: string;
  user: { userId: string } | { issuer: string; subject: string };
  scopes: string[];
  grantedAt: string;
}

/** What became of it at its provider. */
export type AtProvider = 'revoked' | 'not-offered' | 'failed';

interface GrantsPage {
  grants: ListedGrant[];
  nextToken?: string;
}

/** All grants of that filter, newest first, page by page. */
export async function listGrants(
  connection: Connection,
  { user, ...rest }: GrantFilter,
  signal: AbortSignal,
): Promise<ListedGrant[]> {
  const filter = Object.entries({ userId: user, ...rest }).filter(
    (one): one is [string, string] => one[1] !== undefined,
  );
  const found: ListedGrant[] = [];
  let nextToken: string | undefined;
  do {
    const query = Object.fromEntries(nextToken === undefined ? filter : [...filter, ['nextToken', nextToken]]);
    const page = await adminJson(connection, { path: '/identity/grants', query, signal });
    if (!isPage(page)) throw new CliError('failure', 'The platform answered without grants.');
    found.push(...page.grants);
    nextToken = page.nextToken;
  } while (nextToken !== undefined);
  return found;
}

/** Ends a grant. Rejects with a `CliError` (notFound) where there is none of that id. */
export async function revokeGrant(connection: Connection, id: string, signal: AbortSignal): Promise<AtProvider> {
  const path = `/identity/grants/${segment(id)}`;
  const done = await adminJson(connection, { method: 'DELETE', path, signal });
  const said: unknown = typeof done === 'object' && done !== null ? Reflect.get(done, 'atProvider') : undefined;
  if (said === 'revoked' || said === 'not-offered') return said;
  return 'failed';
}

function isPage(value: unknown): value is GrantsPage {
  return typeof value === 'object' && value !== null && Array.isArray(Reflect.get(value, 'grants'));
}
