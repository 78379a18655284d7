import type { Clock } from '../../../kernel/clock.ts';
import { open, SecretIntegrityError, seal } from '../../../kernel/secrets/index.ts';
import { list, number, type Shape, storedText, text, tuple } from '../../../kernel/stored-shape.ts';

/** Whose grants a link shows. */
export interface GrantHolder {
  accountId: string;
  /** One for an id, two for issuer and subject. */
  userNames: string[];
}

export interface GrantLinksDeps {
  /** 32 secret bytes that outlive the server and that all servers of one database share. */
  key: Uint8Array;
  clock: Pick<Clock, 'now'>;
}

/** How long a link is valid: long enough to use the page that it opens. */
export const LINK_MS = 600_000;
const CLAIMS: Shape<[accountId: string, expiresAt: number, userNames: string[]]> = tuple(text, number, list(text));
const CONTEXT = 'agentplatform-grants-link';
/** Longer than any made here. */
const MAX_CHARS = 8192;

/** Makes and opens what a link to a person's grants carries: a sealed statement of whose they are. None is stored. */
export class GrantLinks {
  readonly #deps: GrantLinksDeps;

  constructor(deps: GrantLinksDeps) {
    this.#deps = deps;
  }

  issue({ accountId, userNames }: GrantHolder): { link: string; expiresAt: number } {
    const expiresAt = this.#deps.clock.now() + LINK_MS;
    const claims = Buffer.from(JSON.stringify([accountId, expiresAt, userNames]));
    return { link: seal(this.#deps.key, claims, CONTEXT).toString('base64url'), expiresAt };
  }

  /** The holder that a link names; undefined if the link is not of this platform or has expired. */
  open(link: string): GrantHolder | undefined {
    const sealed = Buffer.from(link.slice(0, MAX_CHARS), 'base64url');
    // Letters that decode to the same bytes would make a second link of the first.
    if (sealed.toString('base64url') !== link) return undefined;
    try {
      const [accountId, expiresAt, userNames] = storedText(CLAIMS, open(this.#deps.key, sealed, CONTEXT).toString());
      return expiresAt > this.#deps.clock.now() ? { accountId, userNames } : undefined;
    } catch (error) {
      if (error instanceof SecretIntegrityError) return undefined;
      throw error;
    }
  }
}
