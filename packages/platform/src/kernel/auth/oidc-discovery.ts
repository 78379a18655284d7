import { createLocalJWKSet, type JSONWebKeySet, type JWK, type JWTVerifyGetKey } from 'jose';
import type { Clock } from '../clock.ts';
import { Lru } from '../lru.ts';
import type { Outbound } from '../outbound/index.ts';

/** What an OpenID provider says of itself, with its keys. */
export interface Issuer {
  issuer: string;
  getKey: JWTVerifyGetKey;
  /** Counts the fetches of the keys; two equal numbers mean the same keys. */
  generation: number;
}

export interface OidcDiscovery {
  /** From memory, or fetched; `ca` (PEM) is believed for it beside the usual authorities. Throws `DiscoveryError`. */
  issuer(discoveryUrl: string, ca?: string): Promise<Issuer>;
  /**
   * The same with keys fetched again, because a token names one that is not among them: at once, then at most once per
   * `refetchMs`, however many tokens ask, so that a fresh key is known soon and a flood of made-up names costs its issuer little.
   */
  refreshed(discoveryUrl: string, ca?: string): Promise<Issuer>;
}

export interface OidcDiscoveryDeps {
  /** The guard: discovery documents name further addresses. */
  outbound: Pick<Outbound, 'fetch'>;
  clock: Clock;
  /** How long a fetched set serves; default 10 minutes. */
  maxAgeMs?: number;
  /** Least time between two fetches for one provider, failed ones included; default 30 seconds. */
  cooldownMs?: number;
  /** Least time between two fetches for one provider that unknown keys ask for; default 5 seconds. */
  refetchMs?: number;
}

/** The provider cannot be asked or answers nonsense; the message is fit for the owner of the resource. */
export class DiscoveryError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'DiscoveryError';
  }
}

const PROVIDERS = 500;
const MAX_BYTES = 512 * 1024;
const MAX_KEYS = 100;
const TIMEOUT_MS = 5_000;

interface Entry {
  fetchedAt: number;
  attemptedAt: number;
  /** When an unknown key was the reason for the last time. */
  refetchedAt: number;
  value: Issuer | undefined;
  failure: DiscoveryError | undefined;
  pending: Promise<Issuer> | undefined;
}

/** Discovery documents and key sets (OpenID Connect Discovery 1.0, RFC 7517), fetched through the guard and kept for a while. */
export function createOidcDiscovery(deps: OidcDiscoveryDeps): OidcDiscovery {
  const { clock, maxAgeMs = 600_000, cooldownMs = 30_000, refetchMs = 5_000 } = deps;
  const entries = new Lru<string, Entry>(PROVIDERS);

  async function getJson(url: string, what: string, ca: string | undefined): Promise<Record<string, unknown>> {
    try {
      const answer = await deps.outbound.fetch(url, {
        headers: { accept: 'application/json' },
        maxBytes: MAX_BYTES,
        timeoutMs: TIMEOUT_MS,
        redirects: 3,
        ca,
      });
      if (answer.status !== 200) {
        answer.body.on('error', () => {}).destroy();
        throw new Error(`it answers ${answer.status}`);
      }
      const body = await answer.json();
      if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Error('it is not a JSON object');
      return { ...body };
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new DiscoveryError(`The ${what} ${url} cannot be used: ${why}`, { cause });
    }
  }

  async function fetchIssuer(discoveryUrl: string, ca: string | undefined, generation: number): Promise<Issuer> {
    const document = await getJson(discoveryUrl, 'discovery document', ca);
    const { issuer, jwks_uri: jwksUri } = document;
    // Not compared with the URL: some large providers publish an issuer of another host. The owner of the resource
    // chose the document, so it is the anchor; tokens must carry exactly its issuer and be signed by its keys.
    if (typeof issuer !== 'string' || issuer === '') throw new DiscoveryError(`${discoveryUrl} names no issuer`);
    if (typeof jwksUri !== 'string') throw new DiscoveryError(`${discoveryUrl} names no jwks_uri`);
    const { keys } = await getJson(jwksUri, 'key set', ca);
    if (!Array.isArray(keys) || keys.length > MAX_KEYS) {
      throw new DiscoveryError(`The key set ${jwksUri} must hold at most ${MAX_KEYS} keys`);
    }
    return { issuer, getKey: createLocalJWKSet(objects(keys)), generation };
  }

  function load(discoveryUrl: string, ca: string | undefined, entry: Entry): Promise<Issuer> {
    entry.attemptedAt = clock.now();
    entry.pending ??= fetchIssuer(discoveryUrl, ca, (entry.value?.generation ?? 0) + 1)
      .then((value) => {
        Object.assign(entry, { value, fetchedAt: clock.now(), failure: undefined });
        return value;
      })
      .catch((error: unknown) => {
        entry.failure = error instanceof DiscoveryError ? error : new DiscoveryError(String(error), { cause: error });
        throw entry.failure;
      })
      .finally(() => {
        entry.pending = undefined;
      });
    return entry.pending;
  }

  /** What one authority vouches for is nothing to those who do not believe it. */
  function entryOf(discoveryUrl: string, ca: string | undefined): Entry {
    const name = ca === undefined ? discoveryUrl : `${discoveryUrl}\n${ca}`;
    let entry = entries.get(name);
    if (!entry) {
      const never = Number.NEGATIVE_INFINITY;
      const at = { fetchedAt: never, attemptedAt: never, refetchedAt: never };
      entry = { ...at, value: undefined, failure: undefined, pending: undefined };
      entries.set(name, entry);
    }
    return entry;
  }

  return {
    async issuer(discoveryUrl, ca) {
      const entry = entryOf(discoveryUrl, ca);
      const now = clock.now();
      if (entry.value && now - entry.fetchedAt < maxAgeMs) return entry.value;
      if (entry.pending) return entry.pending;
      if (now - entry.attemptedAt < cooldownMs) {
        if (entry.value) return entry.value;
        if (entry.failure) throw entry.failure;
      }
      const stale = entry.value;
      // A provider that is down for a moment does not lock out holders of tokens that its last keys can verify.
      return stale ? load(discoveryUrl, ca, entry).catch(() => stale) : load(discoveryUrl, ca, entry);
    },
    async refreshed(discoveryUrl, ca) {
      const entry = entryOf(discoveryUrl, ca);
      if (entry.pending) return entry.pending;
      if (entry.value && clock.now() - entry.refetchedAt < refetchMs) return entry.value;
      entry.refetchedAt = clock.now();
      return load(discoveryUrl, ca, entry);
    },
  };
}

/** Which of them may verify a token is decided by the pinned algorithms, none of which takes a symmetric key. */
function objects(keys: unknown[]): JSONWebKeySet {
  return { keys: keys.filter((key): key is JWK => typeof key === 'object' && key !== null) };
}
