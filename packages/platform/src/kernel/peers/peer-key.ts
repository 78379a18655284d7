import { randomBytes } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { Secret, type Secrets } from '../secrets/index.ts';

/** How long a key is used before it is looked at again: two servers that start first at once may each have made one. */
const FRESH_MS = 10_000;

/** The key that the servers of one database share, made by whichever needs it first. */
export function peerKey(secrets: Secrets, accountId: string, clock: Clock): () => Promise<Uint8Array> {
  const name = { accountId, name: 'platform/peers' };
  let known: { key: Promise<Uint8Array>; at: number } | undefined;
  const read = async (): Promise<Uint8Array> => {
    const kept = await secrets.get(name);
    if (kept) return Buffer.from(kept.reveal(), 'base64');
    const made = randomBytes(32);
    await secrets.put(name, new Secret(made.toString('base64')));
    return made;
  };
  return () => {
    if (known && clock.monotonic() - known.at < FRESH_MS) return known.key;
    const key = read();
    known = { key, at: clock.monotonic() };
    key.catch(() => {
      known = undefined;
    });
    return key;
  };
}
