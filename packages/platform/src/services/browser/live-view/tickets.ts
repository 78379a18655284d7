import { errors } from '@agentplatform/contract';
import type { AccessKeyStore, IamPrincipal } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { open, SecretIntegrityError, seal } from '../../../kernel/secrets/index.ts';
import { number, object, oneOf, orAbsent, storedText, text } from '../../../kernel/stored-shape.ts';
import type { StreamPath } from '../stream-path.ts';

/** What whoever holds a ticket may do: look on, or also take control. */
export type ViewMode = 'full' | 'read-only';

/** Lets a person watch one session, again and again, as long as the credentials count that the address was signed with. */
export interface ViewTicket extends StreamPath {
  mode: ViewMode;
  accountId: string;
  /** With what the address was signed. */
  accessKeyId: string;
  sessionToken?: string | undefined;
  /** Milliseconds since the epoch. */
  endsAt: number;
}

export interface ViewTicketsDeps {
  /** 32 bytes, the same on every server. */
  key: Uint8Array;
  keys: AccessKeyStore;
  clock: Clock;
}

const CONTEXT = 'live view of a browser session';
const SHAPE = object<ViewTicket>({
  browserId: text,
  sessionId: text,
  mode: oneOf('full', 'read-only'),
  accountId: text,
  accessKeyId: text,
  sessionToken: orAbsent(text),
  endsAt: number,
});

/**
 * Tickets of the live view. A presigned address counts for minutes; a person who has opened it reloads the page, and loses the connection, for
 * hours. The ticket stands in the fragment of the page's address, which no browser sends anywhere.
 */
export class ViewTickets {
  readonly #deps: ViewTicketsDeps;

  constructor(deps: ViewTicketsDeps) {
    this.#deps = deps;
  }

  /** A ticket as a text of `[A-Za-z0-9_-]`. */
  issue(ticket: ViewTicket): string {
    return seal(this.#deps.key, Buffer.from(JSON.stringify(ticket)), CONTEXT).toString('base64url');
  }

  /** What a ticket says that counts for this session. Throws AccessDeniedException for any other text. */
  read(sealed: string, { browserId, sessionId }: StreamPath): ViewTicket {
    const ticket = this.#open(sealed);
    if (ticket.browserId === browserId && ticket.sessionId === sessionId && ticket.endsAt > this.#deps.clock.now())
      return ticket;
    throw refused();
  }

  /** Who holds it: whoever has signed the address. Rejects with AccessDeniedException once these credentials are gone. */
  async holder({ accessKeyId, sessionToken }: ViewTicket): Promise<IamPrincipal> {
    const credential = await this.#deps.keys.find(accessKeyId, sessionToken);
    if (credential) return credential.principal;
    throw refused();
  }

  #open(sealed: string): ViewTicket {
    try {
      return storedText(SHAPE, open(this.#deps.key, Buffer.from(sealed, 'base64url'), CONTEXT).toString('utf8'));
    } catch (error) {
      if (error instanceof SecretIntegrityError) throw refused();
      throw error;
    }
  }
}

function refused() {
  return errors.accessDenied('The ticket of the live view does not count, or no longer.', {
    remedy: 'Open a new address: generate_live_view_url of BrowserClient signs one.',
  });
}
