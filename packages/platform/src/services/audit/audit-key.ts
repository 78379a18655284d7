import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

/** What an Ed25519 key of 32 bytes has before it in PKCS #8 (RFC 8410). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Signs what the audit trail has reached. The key lies sealed in the database: who may only write there cannot sign. */
export class AuditKey {
  readonly #key: KeyObject;
  readonly #public: KeyObject;

  /** Of 32 bytes. */
  constructor(seed: Uint8Array) {
    this.#key = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });
    this.#public = createPublicKey(this.#key);
  }

  /** In PEM, for whoever checks an export elsewhere. */
  get publicKey(): string {
    return this.#public.export({ format: 'pem', type: 'spki' }).toString();
  }

  /** Of members in their order; `use` keeps a signature from standing for another kind of statement. In base64. */
  sign(use: string, members: readonly unknown[]): string {
    return sign(null, statement(use, members), this.#key).toString('base64');
  }

  verify(use: string, members: readonly unknown[], signature: string): boolean {
    return verify(null, statement(use, members), this.#public, Buffer.from(signature, 'base64'));
  }
}

const statement = (use: string, members: readonly unknown[]): Buffer =>
  Buffer.from(JSON.stringify([`agentplatform audit ${use} 1`, ...members]));
