import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { Lru } from '../lru.ts';

/** Derives signing keys (four HMACs each) and keeps those of recent credentials, days, regions and services. */
export class SigningKeys {
  readonly #keys: Lru<string, { secret: string; key: KeyObject }>;

  constructor(limit = 4096) {
    this.#keys = new Lru(limit);
  }

  /** `scope` is `DATE/REGION/SERVICE/aws4_request`. */
  get(accessKeyId: string, secret: string, scope: string): KeyObject {
    const id = `${accessKeyId}/${scope}`;
    const known = this.#keys.get(id);
    if (known && known.secret === secret) return known.key;
    const bytes = scope
      .split('/')
      .reduce((from, part) => createHmac('sha256', from).update(part).digest(), Buffer.from(`AWS4${secret}`));
    // A KeyObject makes each HMAC six times cheaper than the same bytes: Node would wrap those at every use.
    const key = createSecretKey(bytes);
    this.#keys.set(id, { secret, key });
    return key;
  }
}
