import { type Grants, grantId } from '../flows/grants.ts';
import type { Grant } from '../flows/stored-tokens.ts';
import { titleOf } from './consent-routes.ts';
import type { GrantHolder } from './grant-link.ts';
import { revokedNotice, type ShownGrant } from './grants-page.ts';

/** A person's newest grants, as he sees them, and whether there are older ones. */
export async function shownGrants(
  grants: Grants,
  { accountId, userNames }: GrantHolder,
): Promise<{ grants: ShownGrant[]; more: boolean }> {
  const found = await grants.list(accountId, { userNames });
  const all = found.grants.map((grant) => shown(grants, accountId, grant));
  return { grants: await Promise.all(all), more: found.next !== undefined };
}

/** Takes back one of that person's grants and says what became of it; undefined where he has none of that name. */
export async function revokeShown(
  grants: Grants,
  { accountId, userNames }: GrantHolder,
  { id, signal }: { id: string; signal: AbortSignal },
): Promise<string | undefined> {
  const grant = await grants.find(accountId, id, { userNames });
  if (!grant) return undefined;
  const before = await shown(grants, accountId, grant);
  return revokedNotice(before, await grants.revoke(accountId, grant, signal));
}

async function shown(grants: Grants, accountId: string, grant: Grant): Promise<ShownGrant> {
  const { key, workload: agent, providerArn, scopes, grantedAt } = grant;
  const provider = await grants.providerOf(accountId, grant);
  const title = provider ? titleOf(provider) : providerArn.slice(providerArn.lastIndexOf('/') + 1);
  return {
    id: grantId(key),
    agent,
    providerArn,
    title,
    vendor: provider?.data.vendor ?? 'CustomOauth2',
    scopes,
    grantedAt,
  };
}
