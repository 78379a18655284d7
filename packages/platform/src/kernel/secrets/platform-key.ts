import { randomBytes } from 'node:crypto';
import { Secret } from './secret.ts';
import type { Secrets } from './secrets.ts';

/** A key of 32 bytes for one use: made once for all servers of a database, so that what is sealed or signed with it outlives a restart. */
export async function platformKey(
  secrets: Secrets,
  accountId: string,
  use:
    | 'audit'
    | 'page-tokens'
    | 'peers'
    | 'sandbox-credentials'
    | 'workload-tokens'
    | 'grant-links'
    | 'policy-sessions'
    | 'live-views',
): Promise<Uint8Array> {
  const name = { accountId, name: `platform/${use}` };
  const kept = await secrets.keep(name, new Secret(randomBytes(32).toString('base64')));
  return Buffer.from(kept.reveal(), 'base64');
}
