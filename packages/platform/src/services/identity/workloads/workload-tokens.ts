import { createSecretKey, type KeyObject } from 'node:crypto';
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib';
import { errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';
import { open, SecretIntegrityError, seal } from '../../../kernel/secrets/index.ts';
import {
  list,
  number,
  orAbsent,
  orNull,
  type Shape,
  StoredShapeError,
  storedText,
  text,
  tuple,
} from '../../../kernel/stored-shape.ts';
import type { WorkloadIdentity } from './workload-identity.ts';
import type { WorkloadUser } from './workload-user.ts';

/** Who shows a workload access token: an agent, for one of its users or for itself. */
export interface WorkloadBearer {
  accountId: string;
  /** Name of the workload identity. */
  workload: string;
  user: WorkloadUser | undefined;
  /** When the identity was made, in ms since the epoch; not of one that came with a resource, whose name no later resource has. */
  madeAt?: number | undefined;
  /** The user's own token, verified, with which the agent may act on his behalf. */
  subjectToken?: SubjectToken | undefined;
  /** The policy session that the agent goes on with, sealed by Policy; not a word of it is looked at here. */
  policySession?: string | undefined;
}

/** A user's own token, and who is asked for the keys that it is signed with. */
export interface SubjectToken {
  /** Undefined of one that is too long to travel. */
  token: string | undefined;
  /** Address of the discovery document; undefined where an authority of somebody's own vouches for it, which does not travel. */
  discoveryUrl: string | undefined;
}

export interface WorkloadToken {
  /** Characters of base64url that mean nothing to anybody but this platform. */
  token: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

export interface WorkloadTokensDeps {
  /** 32 secret bytes that outlive the server and that all servers of one database share. */
  key: Uint8Array;
  lifeMs: number;
  /** The identity of that name, as it is now. */
  find(accountId: string, name: string): Promise<Pick<WorkloadIdentity, 'createdAt' | 'owner'> | undefined>;
  clock: Clock;
}

type Claims = [
  accountId: string,
  workload: string,
  madeAt: number | null,
  expiresAt: number,
  user: string[],
  subjectToken?: [token: string | null, discoveryUrl: string | null] | null,
  policySession?: string,
];

const CLAIMS: Shape<Claims> = tuple(
  text,
  text,
  orNull(number),
  number,
  list(text),
  orAbsent(orNull(tuple(orNull(text), orNull(text)))),
  orAbsent(text),
);
const CONTEXT = 'agentplatform-workload-token';
/** Of a user's names: twice what the wire takes as a user id, so that no token is too long for a header. */
const MAX_USER_BYTES = 2048;
/** Of a user's own token (ADR 33). */
const MAX_SUBJECT_TOKEN_BYTES = 4096;
/** Of a token that is issued, with all that travels in it: agents get it by two names, and their servers take some 16 KB of headers. */
const MAX_ISSUED_CHARS = 7_168;
/** From here on it is packed: nothing shorter comes near the bound. */
const PACK_FROM_BYTES = 2_048;
/** Marks a packed token. Claims that are not packed begin with a bracket. */
const PACKED = Buffer.of(0);
/** Compresses by the frequency of single bytes only. So the length of a token does not reveal whether two parts of it are equal (as in the CRIME attack). */
const PACKING = { strategy: constants.Z_HUFFMAN_ONLY };
const MAX_UNPACKED_BYTES = 64 * 1024;
/** Longer than any token made here. */
const MAX_TOKEN_CHARS = 24_576;
/** What the tokens used last say is kept in memory: a request asks twice, and an agent asks again. At most 6 MB. */
const AT_HAND = 256;

/** Makes and opens workload access tokens: sealed statements of who works for whom. None is stored. */
export class WorkloadTokens {
  readonly #deps: WorkloadTokensDeps;
  readonly #key: KeyObject;
  /** By token. What has been opened once says the same for ever; whether it still counts is asked each time. */
  readonly #opened = new Lru<string, Readonly<Claims>>(AT_HAND);

  constructor(deps: WorkloadTokensDeps) {
    this.#deps = deps;
    this.#key = createSecretKey(deps.key);
  }

  /**
   * A token for this bearer from now on, never longer than agents' servers take. Where all of it is too long together, the user's own token leaves a mark.
   * Throws ValidationException where the names are too long for it.
   */
  issue(bearer: WorkloadBearer): WorkloadToken {
    const expiresAt = this.#deps.clock.now() + this.#deps.lifeMs;
    const { subjectToken } = bearer;
    let token = this.#sealed(claimsOf(bearer, expiresAt));
    if (token.length > MAX_ISSUED_CHARS && subjectToken)
      token = this.#sealed(claimsOf({ ...bearer, subjectToken: { ...subjectToken, token: undefined } }, expiresAt));
    if (token.length > MAX_ISSUED_CHARS)
      throw errors.validation(`The workload access token has more than ${MAX_ISSUED_CHARS} characters.`, {
        remedy: 'Use a shorter name of the user, or begin the policy session with a token that has fewer claims.',
      });
    return { token, expiresAt };
  }

  /**
   * Whose token it is, for a caller of that account. Rejects with UnauthorizedException, the same for every token that is not
   * one of ours for this account and an identity that there is, or that has expired.
   */
  async open(token: string, accountId: string): Promise<WorkloadBearer> {
    const [account, workload, madeAt, expiresAt, names, subjectToken, policySession] = this.#read(token) ?? refuse();
    if (account !== accountId || expiresAt <= this.#deps.clock.now()) refuse();
    const identity = await this.#deps.find(accountId, workload);
    if (!identity) refuse();
    // A caller may give his the name that a resource's had.
    if (madeAt === null ? identity.owner === undefined : madeAt !== identity.createdAt) refuse();
    return {
      ...{ accountId, workload, user: userOf(names), madeAt: madeAt ?? undefined },
      ...(subjectToken && { subjectToken: arrived(subjectToken) }),
      ...(policySession !== undefined && { policySession }),
    };
  }

  #sealed(claims: Claims): string {
    const plain = Buffer.from(JSON.stringify(claims));
    const packed = plain.length < PACK_FROM_BYTES ? plain : Buffer.concat([PACKED, deflateRawSync(plain, PACKING)]);
    return seal(this.#key, packed, CONTEXT).toString('base64url');
  }

  #read(token: string): Readonly<Claims> | undefined {
    const known = this.#opened.get(token);
    if (known) return known;
    const claims = this.#unseal(token);
    if (claims) this.#opened.set(token, claims);
    return claims;
  }

  #unseal(token: string): Claims | undefined {
    if (token.length > MAX_TOKEN_CHARS) return undefined;
    const sealed = Buffer.from(token, 'base64url');
    // Letters that decode to the same bytes would make a second token of the first.
    if (sealed.toString('base64url') !== token) return undefined;
    try {
      const opened = open(this.#key, sealed, CONTEXT);
      const plain =
        opened[0] === PACKED[0] ? inflateRawSync(opened.subarray(1), { maxOutputLength: MAX_UNPACKED_BYTES }) : opened;
      return storedText(CLAIMS, plain.toString());
    } catch (error) {
      // Opened with our key, and not written as `issue` does: by another version of the platform.
      if (error instanceof SecretIntegrityError || error instanceof StoredShapeError) return undefined;
      throw error;
    }
  }
}

function claimsOf(bearer: WorkloadBearer, expiresAt: number): Claims {
  const { accountId, workload, user, madeAt, subjectToken, policySession } = bearer;
  const names = user === undefined ? [] : user.kind === 'id' ? [user.id] : [user.issuer, user.subject];
  if (Buffer.byteLength(names.join('')) > MAX_USER_BYTES)
    throw errors.validation(`The user's name is too long: more than ${MAX_USER_BYTES} bytes.`);
  const claims: Claims = [accountId, workload, madeAt ?? null, expiresAt, names];
  if (subjectToken || policySession) claims.push(subjectToken ? travelling(subjectToken) : null);
  if (policySession) claims.push(policySession);
  return claims;
}

function userOf([name, subject]: string[]): WorkloadUser | undefined {
  if (name === undefined) return undefined;
  return subject === undefined ? { kind: 'id', id: name } : { kind: 'token', issuer: name, subject };
}

/** A token that is too long leaves a mark, so that whoever wants to exchange it learns why there is none. */
function travelling({ token, discoveryUrl }: SubjectToken): [string | null, string | null] {
  const short = token !== undefined && Buffer.byteLength(token) <= MAX_SUBJECT_TOKEN_BYTES;
  return [short ? token : null, discoveryUrl ?? null];
}

function arrived([token, discoveryUrl]: [string | null, string | null]): SubjectToken {
  return { token: token ?? undefined, discoveryUrl: discoveryUrl ?? undefined };
}

function refuse(): never {
  throw errors.unauthorized('The workload access token is not one for this account, or is no longer valid.', {
    remedy: 'Use the token of the current request, or get a new one.',
  });
}
