import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { errors } from '@agentplatform/contract';
import { ownerOf, type Principal } from '../../../kernel/auth/index.ts';
import { Lru } from '../../../kernel/lru.ts';
import { open, SecretIntegrityError, seal } from '../../../kernel/secrets/index.ts';
import { object, oneOf, record, storedText, text } from '../../../kernel/stored-shape.ts';
import { type PolicyPrincipal, policyPrincipal } from '../decisions/policy-principal.ts';

/** A policy session that goes on at another gateway: an agent, whom a caller asked through one gateway, asks there. */
export interface CarriedSession {
  accountId: string;
  id: string;
  /** Whose it is, as `PolicySession` has it. */
  owner: string;
  /** Whom policies decide about: the first caller, whoever asks for him. */
  principal: PolicyPrincipal;
}

const CONTEXT = 'agentplatform-policy-session';
/** It travels in a workload access token, which agents get twice in headers. */
const MOST_CHARS = 1_536;
const MOST_SEALED = 1_000;
const MOST_BYTES = 64 * 1024;

const shape = object<CarriedSession>({
  ...{ accountId: text, id: text, owner: text },
  principal: object<PolicyPrincipal>({ type: oneOf('OAuthUser', 'IamEntity'), id: text, tags: record(text) }),
});

/** Seals and opens the policy sessions that travel with an agent's work. */
export class CarriedSessions {
  readonly #key: KeyObject;
  /** By the digest of what is sealed: the same session is the same text, so that what is kept by it is found again. */
  readonly #sealed = new Lru<string, string>(MOST_SEALED);

  /** `key`: 32 secret bytes that all servers of one database share. */
  constructor(key: Uint8Array) {
    this.#key = createSecretKey(key);
  }

  /** The session that a caller named, or the one that he goes on with. Undefined without one, for nobody, and where the caller's claims are too long to travel. */
  seal(
    { principal, accountId, id }: { principal: Principal; accountId: string; id: string | undefined },
    carried: CarriedSession | undefined,
  ): string | undefined {
    const who = policyPrincipal(principal);
    const own = id !== undefined && who && { accountId, id, owner: ownerOf(principal), principal: who };
    const session = carried ?? own;
    if (!session) return undefined;
    const plain = JSON.stringify(session);
    const digest = createHash('sha256').update(plain).digest('base64url');
    const known = this.#sealed.get(digest);
    if (known !== undefined) return known;
    const sealed = seal(this.#key, deflateRawSync(plain), CONTEXT).toString('base64url');
    if (sealed.length > MOST_CHARS) return undefined;
    this.#sealed.set(digest, sealed);
    return sealed;
  }

  /** Rejects with UnauthorizedException what was not sealed here for that account. */
  open(sealed: string, accountId: string): CarriedSession {
    const session = this.#opened(sealed);
    if (session?.accountId === accountId) return session;
    throw errors.unauthorized('The workload access token names a policy session that is not of this account.');
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
