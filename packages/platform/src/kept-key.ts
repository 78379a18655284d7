import { randomBytes } from 'node:crypto';
import { Secret, type Secrets } from './kernel/secrets/index.ts';

/** The key that page tokens are sealed with: made once, so that a token outlives a restart. */
export async function pageKey(secrets: Secrets, accountId: string): Promise<Uint8Array> {
  const name = { accountId, name: 'platform/page-tokens' };
  const kept = await secrets.get(name);
  if (kept) return Buffer.from(kept.reveal(), 'base64');
  const key = randomBytes(32);
  await secrets.put(name, new Secret(key.toString('base64')));
  return key;
}
