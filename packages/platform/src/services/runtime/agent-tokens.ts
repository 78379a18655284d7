import { CARRIED_SESSION_HEADER } from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { Lru } from '../../kernel/lru.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { IdentityPort, WorkloadUser } from '../identity/index.ts';
import { USER_HEADER } from './container-headers.ts';
import type { Runtime } from './runtime.ts';

interface Held {
  token: string;
  /** Milliseconds since the epoch. */
  renewAt: number;
}

/** The part of its time that a token has left at least when an agent gets it. */
const LEFT = 0.5;
/** Agents and users that called last; sealing one takes some 25 µs. */
const AT_HAND = 1000;

/** The workload access tokens that agents get with requests: those of who called last are at hand, so that a request seals none. */
export class AgentTokens {
  readonly #identity: Pick<IdentityPort, 'issueToken'>;
  readonly #clock: Clock;
  readonly #held = new Lru<string, Held>(AT_HAND);

  constructor(identity: Pick<IdentityPort, 'issueToken'>, clock: Clock) {
    this.#identity = identity;
    this.#clock = clock;
  }

  /** The token for a request of this caller, whose right to name its user has been looked at. */
  of(
    { accountId, id: workload }: Pick<Runtime, 'accountId' | 'id'>,
    caller: Pick<RequestContext, 'principal' | 'headers'>,
  ): string {
    const { principal } = caller;
    const oauth = principal.kind === 'oauth' ? principal : undefined;
    const user = userOf(caller);
    // All that a token says, told apart whatever the names are. The user's own token is told by its digest.
    const policySession = policySessionOf(caller);
    const bearer = JSON.stringify([accountId, workload, user, oauth?.digest, policySession]);
    const now = this.#clock.now();
    const held = this.#held.get(bearer);
    if (held && now < held.renewAt) return held.token;
    const subjectToken = user && oauth && { token: oauth.token, discoveryUrl: oauth.discoveryUrl };
    const { token, expiresAt } = this.#identity.issueToken({ accountId, workload, user, subjectToken, policySession });
    this.#held.set(bearer, { token, renewAt: now + (expiresAt - now) * LEFT });
    return token;
  }
}

/** The form of a sealed policy session. Other values cannot be opened anyway. */
const SEALED = /^[\w-]{40,1536}$/;

function policySessionOf({ headers }: Pick<RequestContext, 'headers'>): string | undefined {
  const sealed = headers[CARRIED_SESSION_HEADER];
  return typeof sealed === 'string' && SEALED.test(sealed) ? sealed : undefined;
}

/** Whom a caller speaks for: the subject of his token, else whom the user header names; else nobody but the agent itself. */
function userOf({ principal, headers }: Pick<RequestContext, 'principal' | 'headers'>): WorkloadUser | undefined {
  if (principal.kind === 'oauth') {
    const { vouchedBy, subject } = principal;
    return subject === '' ? undefined : { kind: 'token', issuer: vouchedBy, subject };
  }
  const id = headers[USER_HEADER];
  return typeof id === 'string' && id !== '' ? { kind: 'id', id } : undefined;
}
