import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';
import { operations } from './generated/operations.ts';
import type { Inputs, OperationName } from './generated/types.ts';
import { contractModel, shapeIn } from './model.ts';
import type { DocumentValue } from './wire-types.ts';

/** The name under which every operation of the model takes its idempotency token. */
const tokenMember = 'clientToken';

/** Whether `operation` takes a `clientToken`: the same token with the same input has to give the same answer. */
export function takesClientToken(operation: OperationName): boolean {
  const { plane, input } = operations[operation];
  return Object.hasOwn(shapeIn(contractModel().planes[plane], input).members ?? {}, tokenMember);
}

/** The `clientToken` of an input, if the operation takes one and the caller gave it. */
export function clientTokenOf<K extends OperationName>(operation: K, input: Inputs[K]): string | undefined {
  if (!takesClientToken(operation)) return undefined;
  const token = (input as { clientToken?: unknown }).clientToken;
  return typeof token === 'string' ? token : undefined;
}

/**
 * SHA-256 (hex) over an operation's name and its input without the token: equal for equal requests however they were
 * written. Throws TypeError for an operation whose body streams, which cannot be compared.
 */
export function inputFingerprint<K extends OperationName>(operation: K, input: Inputs[K]): string {
  const { [tokenMember]: _token, ...rest } = input as Record<string, unknown>;
  return createHash('sha256')
    .update(`${operation}\n${canonicalJson(plain(rest))}`)
    .digest('hex');
}

/** A typed input as JSON: dates and bytes as text, each marked so that it equals no string. */
function plain(value: unknown): DocumentValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : { '\u0000number': String(value) };
  if (value instanceof Date) return { '\u0000date': value.getTime() };
  if (value instanceof Uint8Array) return { '\u0000bytes': Buffer.from(value).toString('base64') };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'object' && !(Symbol.asyncIterator in value)) {
    const entries = Object.entries(value).filter(([, member]) => member !== undefined);
    return Object.fromEntries(entries.map(([key, member]) => [key, plain(member)]));
  }
  throw new TypeError('A streamed input has no fingerprint');
}
