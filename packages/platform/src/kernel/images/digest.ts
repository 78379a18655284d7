import { createHash } from 'node:crypto';
import { ImageError } from './images.ts';

const DIGEST = /^sha256:[a-f0-9]{64}$/;

export function isDigest(value: string): boolean {
  return DIGEST.test(value);
}

/** Checks a `sha256:<64 hex>` digest (OCI image spec, descriptor) and returns it. Throws `ImageError('invalid')`. */
export function parseDigest(value: string): string {
  if (isDigest(value)) return value;
  throw new ImageError(
    'invalid',
    `"${value.slice(0, 100)}" is not a digest: expected sha256: and 64 lower-case hex digits`,
  );
}

/** The hex part, used as a file name. Throws `ImageError('invalid')`. */
export function hexOf(digest: string): string {
  return parseDigest(digest).slice('sha256:'.length);
}

export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
