import {
  constants,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { promisify } from 'node:util';
import { KEY_BYTES, Secret } from '../../kernel/secrets/index.ts';
import type { KeySpec, SigningAlgorithm } from './key.ts';

/** A fresh key: what is to be sealed, and the public key (PEM) of one that signs. */
export interface NewMaterial {
  secret: Secret;
  publicKey: string | undefined;
}

const generate = promisify(generateKeyPair);
const signed = promisify(
  (bytes: Uint8Array, key: Parameters<typeof sign>[2], done: (error: Error | null, signature: Buffer) => void) =>
    sign('sha256', bytes, key, done),
);

export async function newMaterial(spec: KeySpec): Promise<NewMaterial> {
  if (spec === 'SYMMETRIC_DEFAULT')
    return { secret: new Secret(randomBytes(KEY_BYTES).toString('base64')), publicKey: undefined };
  const pair =
    spec === 'RSA_2048'
      ? await generate('rsa', { modulusLength: 2048 })
      : await generate('ec', { namedCurve: 'P-256' });
  const secret = new Secret(pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  return { secret, publicKey: pair.publicKey.export({ type: 'spki', format: 'pem' }).toString() };
}

/** The key itself, of what `newMaterial` made. Node shows nothing of it to logs and errors. */
export function openMaterial(spec: KeySpec, secret: Secret): KeyObject {
  const text = secret.reveal();
  return spec === 'SYMMETRIC_DEFAULT' ? createSecretKey(Buffer.from(text, 'base64')) : createPrivateKey(text);
}

/** Signs outside of the thread that serves. ES256 as JWS has it: R and S, 32 bytes each. */
export function signWith(key: KeyObject, algorithm: SigningAlgorithm, bytes: Uint8Array): Promise<Buffer> {
  if (algorithm === 'ES256') return signed(bytes, { key, dsaEncoding: 'ieee-p1363' });
  if (algorithm === 'RS256') return signed(bytes, { key, padding: constants.RSA_PKCS1_PADDING });
  return signed(bytes, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST });
}

/** A public key as a JSON Web Key (RFC 7517). */
export function publicJwk(pem: string): object {
  return createPublicKey(pem).export({ format: 'jwk' });
}
