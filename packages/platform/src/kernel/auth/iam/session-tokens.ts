import { createCipheriv, createDecipheriv } from 'node:crypto';
import { list, number, object, record, type Shape, storedText, text } from '../../stored-shape.ts';
import type { RandomBytes } from './ports.ts';

/** The content of a session token. A holder of the platform's key can read it without asking the database. */
export type SessionClaims = RoleSessionClaims | KeySessionClaims;

interface Session {
  accessKeyId: string;
  secretAccessKey: string;
  /** Milliseconds since the epoch. */
  issuedAt: number;
  expiresAt: number;
}

/** A session of a role. */
export interface RoleSessionClaims extends Session {
  roleName: string;
  /** Of the role as it was assumed: a role made anew under the same name is another. */
  roleId: string;
  sessionName: string;
  tags: Record<string, string>;
  sourceIdentity?: string | undefined;
  /** Sandbox without which they count for nothing. */
  sandboxId?: string | undefined;
  /** ARNs of what was given to whom it was issued for. */
  given?: readonly string[] | undefined;
}

/** Acts as the owner of a long-lived key, for as long as that key is valid. */
export interface KeySessionClaims extends Session {
  /** Id of that key. */
  ofKey: string;
}

const OF_ALL = { accessKeyId: text, secretAccessKey: text, issuedAt: number, expiresAt: number };
const OF_ROLE: Shape<RoleSessionClaims> = object(
  { ...OF_ALL, roleName: text, roleId: text, sessionName: text, tags: record(text) },
  { sourceIdentity: text, sandboxId: text, given: list(text) },
);
const OF_KEY: Shape<KeySessionClaims> = object({ ...OF_ALL, ofKey: text });
const CLAIMS: Shape<SessionClaims> = (value, at) =>
  Object(value).ofKey === undefined ? OF_ROLE(value, at) : OF_KEY(value, at);

const VERSION = 1;
const NONCE = 12;
const TAG = 16;
const MAX_TOKEN_CHARS = 8_192;

/** Makes and reads session tokens: claims under AES-256-GCM, in base64. */
export class SessionTokens {
  readonly #key: Buffer;
  readonly #random: RandomBytes;

  /** `key` is 32 bytes. */
  constructor(key: Buffer, random: RandomBytes) {
    this.#key = key;
    this.#random = random;
  }

  seal(claims: SessionClaims): string {
    const head = Buffer.concat([Buffer.of(VERSION), this.#random(NONCE)]);
    const cipher = createCipheriv('aes-256-gcm', this.#key, head.subarray(1), { authTagLength: TAG });
    cipher.setAAD(head.subarray(0, 1));
    const body = Buffer.concat([cipher.update(JSON.stringify(claims)), cipher.final()]);
    return Buffer.concat([head, body, cipher.getAuthTag()]).toString('base64');
  }

  /** `undefined` for anything that was not sealed here; never throws. Says nothing of expiry. */
  open(token: string): SessionClaims | undefined {
    if (token.length > MAX_TOKEN_CHARS) return undefined;
    const bytes = Buffer.from(token, 'base64');
    // Node skips what is no base64; a token has one spelling.
    if (bytes.length < 1 + NONCE + TAG || bytes[0] !== VERSION || bytes.toString('base64') !== token) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(1, 1 + NONCE), { authTagLength: TAG });
    decipher.setAAD(bytes.subarray(0, 1));
    decipher.setAuthTag(bytes.subarray(-TAG));
    try {
      const plain = Buffer.concat([decipher.update(bytes.subarray(1 + NONCE, -TAG)), decipher.final()]);
      return storedText(CLAIMS, plain.toString());
    } catch {
      return undefined;
    }
  }
}
