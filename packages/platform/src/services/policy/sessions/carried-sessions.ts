import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { errors } from '@agentplatform/contract';
import { type Claims, ownerOf, type Principal, tokenEnd } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';
import { open, SecretIntegrityError, seal } from '../../../kernel/secrets/index.ts';
import { number, object, storedText, text, wire } from '../../../kernel/stored-shape.ts';
import { type FirstCaller, policyPrincipal } from '../decisions/policy-principal.ts';

/** A policy session that goes on at another gateway: an agent, whom a caller asked through one gateway, asks there. */
export interface CarriedSession {
  accountId: string;
  id: string;
  /** Whose it is, as `PolicySession` has it. */
  owner: string;
  /** Whom policies decide about: the first caller, whoever asks for him. */
  first: FirstCaller;
  /** Who has vouched for the first caller; it is for each gateway to say whether that counts there. */
  vouchedBy: string;
  /** Milliseconds since the epoch. */
  endsAt: number;
}

/** Who asks a gateway in a policy session of his own. */
export interface SessionCaller {
  principal: Principal;
  accountId: string;
  /** As he named the session; undefined without one. */
  id: string | undefined;
  /** Who vouches for him at that gateway. */
  vouchedBy: string;
}

/** Change this when the sealed content changes. Sessions that were sealed before can then no longer be opened. */
const CONTEXT = 'agentplatform-policy-session-2';
/** How long a session can be carried on, counted from the request that began it. Carrying it on does not extend this time. */
const LIFE_MS = 60 * 60_000;
/** A session is sealed only if at least this part of its time is left. */
const LEFT = 0.5;
/** It travels in a workload access token, which agents get twice in headers. */
const MOST_CHARS = 1_536;
const MOST_SEALED = 1_000;
const MOST_BYTES = 64 * 1024;

const shape = object<CarriedSession>({
  ...{ accountId: text, id: text, owner: text, vouchedBy: text, endsAt: number },
  first: object<Pick<FirstCaller, 'id'>, Pick<Required<FirstCaller>, 'claims'>>(
    { id: text },
    { claims: wire<Claims>() },
  ),
});

interface Sealed {
  text: string;
  /** Milliseconds since the epoch. */
  renewAt: number;
}

export interface CarriedSessionsDeps {
  /** 32 secret bytes that all servers of one database share. */
  key: Uint8Array;
  clock: Clock;
}

/** Seals and opens the policy sessions that travel with an agent's work. */
export class CarriedSessions {
  readonly #key: KeyObject;
  readonly #clock: Clock;
  /** By the digest of what is sealed: the same session is the same text for a while, so that what is kept by it is found again. */
  readonly #sealed = new Lru<string, Sealed>(MOST_SEALED);

  constructor({ key, clock }: CarriedSessionsDeps) {
    this.#key = createSecretKey(key);
    this.#clock = clock;
  }

  /** The session that a caller named, or the one that he goes on with. Undefined without one, for nobody, and where the caller's claims are too long to travel. */
  seal(caller: SessionCaller, carried: CarriedSession | undefined): string | undefined {
    const session = carried ?? ownSession(caller);
    if (!session) return undefined;
    const now = this.#clock.now();
    const digest = createHash('sha256').update(JSON.stringify(session)).digest('base64url');
    const known = this.#sealed.get(digest);
    if (known && now < known.renewAt) return known.text;
    const endsAt = Math.min(session.endsAt, now + LIFE_MS);
    if (endsAt <= now) return undefined;
    const plain = deflateRawSync(JSON.stringify({ ...session, endsAt }));
    const sealed = seal(this.#key, plain, CONTEXT).toString('base64url');
    if (sealed.length > MOST_CHARS) return undefined;
    this.#sealed.set(digest, { text: sealed, renewAt: now + (endsAt - now) * LEFT });
    return sealed;
  }

  /** Rejects with UnauthorizedException what was not sealed here for that account, and a session that has ended. */
  open(sealed: string, accountId: string): CarriedSession {
    const session = this.#opened(sealed);
    if (session?.accountId !== accountId)
      throw errors.unauthorized('The workload access token names a policy session that is not of this account.');
    if (session.endsAt <= this.#clock.now())
      throw errors.unauthorized('The policy session of the workload access token has ended.', {
        remedy: `It lasts ${LIFE_MS / 60_000} minutes, and no longer than the token of its first caller. Ask the agent again.`,
      });
    return session;
  }

  #opened(sealed: string): CarriedSession | undefined {
    if (sealed.length > MOST_CHARS) return undefined;
    try {
      const bytes = open(this.#key, Buffer.from(sealed, 'base64url'), CONTEXT);
      return storedText(shape, inflateRawSync(bytes, { maxOutputLength: MOST_BYTES }).toString());
    } catch (error) {
      if (error instanceof SecretIntegrityError) return undefined;
      throw error;
    }
  }
}

/** Undefined without a session and for nobody. It ends with the caller's token, if he has one. */
function ownSession({ principal, accountId, id, vouchedBy }: SessionCaller): CarriedSession | undefined {
  const who = policyPrincipal(principal);
  if (id === undefined || !who) return undefined;
  const claims = principal.kind === 'oauth' ? principal.claims : undefined;
  const endsAt = claims ? tokenEnd(claims) : Number.MAX_SAFE_INTEGER;
  return { ...{ accountId, id, vouchedBy, endsAt }, owner: ownerOf(principal), first: { id: who.id, claims } };
}
