import { isObjectKey, ObjectError } from '../../kernel/objects/index.ts';

/** What a request line names, path-style. */
export interface S3Target {
  /** Absent for the service itself. */
  bucket?: string;
  /** Absent for a bucket. */
  key?: string;
  query: URLSearchParams;
}

/**
 * Reads the path below `prefix` and the query. The path is taken as it was sent: `//`, `.` and `..` are parts of a key like
 * any other. Throws `InvalidArgument` for escapes that are no UTF-8, and `KeyTooLongError`.
 */
export function parseTarget(rawUrl: string, prefix: string): S3Target {
  const at = rawUrl.indexOf('?');
  const path = at < 0 ? rawUrl : rawUrl.slice(0, at);
  const query = new URLSearchParams(at < 0 ? '' : rawUrl.slice(at + 1));
  const rest = path.slice(prefix.length).replace(/^\//, '');
  if (rest === '') return { query };
  const slash = rest.indexOf('/');
  const bucket = decode(slash < 0 ? rest : rest.slice(0, slash));
  const key = slash < 0 ? '' : decode(rest.slice(slash + 1));
  if (key === '') return { bucket, query };
  if (!isObjectKey(key)) throw new ObjectError('KeyTooLongError', 'Your key is too long');
  return { bucket, key, query };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ObjectError('InvalidArgument', 'The path holds an escape that is not UTF-8.');
  }
}

/** A whole number of the query; throws `InvalidArgument` outside its bounds. */
export function intParameter(
  query: URLSearchParams,
  name: string,
  bounds: { min: number; max: number; default?: number },
): number {
  const text = query.get(name) ?? '';
  if (text === '' && bounds.default !== undefined) return bounds.default;
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= bounds.min && value <= bounds.max)) {
    throw new ObjectError('InvalidArgument', `${name} must be a whole number from ${bounds.min} to ${bounds.max}.`);
  }
  return value;
}
