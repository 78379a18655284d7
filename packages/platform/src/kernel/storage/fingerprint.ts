import { createHash } from 'node:crypto';

/** A hash of a JSON-like value that does not depend on the order of keys; for `IdempotencyKey.fingerprint`. */
export function fingerprintOf(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(value, sortKeys) ?? 'undefined')
    .digest('base64url');
}

function sortKeys(_key: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('base64') };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
