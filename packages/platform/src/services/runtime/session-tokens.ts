import type { Clock } from '../../kernel/clock.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { IdentityPort, WorkloadUser } from '../identity/index.ts';
import { USER_HEADER } from './container-headers.ts';
import type { Runtime } from './runtime.ts';

interface Held {
  token: string;
  user: WorkloadUser | undefined;
  /** Milliseconds since the epoch. */
  renewAt: number;
}

/** The part of its time that a token has left at least when an agent gets it. */
const LEFT = 0.5;

/**
 * The workload access tokens that agents get with requests. Each session has the one of its last user at hand, so that a request
 * seals none; what is at hand goes with the session.
 */
export class SessionTokens {
  readonly #identity: Pick<IdentityPort, 'issueToken'>;
  readonly #clock: Clock;
  readonly #held = new WeakMap<object, Held>();

  constructor(identity: Pick<IdentityPort, 'issueToken'>, clock: Clock) {
    this.#identity = identity;
    this.#clock = clock;
  }

  /** The token for a request of this caller, whose right to name its user has been looked at. */
  of(
    session: object,
    runtime: Pick<Runtime, 'accountId' | 'id'>,
    caller: Pick<RequestContext, 'principal' | 'headers'>,
  ): string {
    const user = userOf(caller);
    const now = this.#clock.now();
    const held = this.#held.get(session);
    if (held && now < held.renewAt && sameUser(held.user, user)) return held.token;
    const { token, expiresAt } = this.#identity.issueToken({
      accountId: runtime.accountId,
      workload: runtime.id,
      user,
    });
    this.#held.set(session, { token, user, renewAt: now + (expiresAt - now) * LEFT });
    return token;
  }
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

function sameUser(one: WorkloadUser | undefined, other: WorkloadUser | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one.kind === 'id') return other.kind === 'id' && one.id === other.id;
  return other.kind === 'token' && one.issuer === other.issuer && one.subject === other.subject;
}
