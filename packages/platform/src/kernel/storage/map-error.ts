import { DatabaseBusyError, DatabaseError, DatabaseUnavailableError, StorageFullError } from './errors.ts';

/** What a driver throws, as far as it is known: `pg`'s DatabaseError, a Node system error, or an error from the worker. */
interface RawError {
  message: string;
  code?: string;
  constraint?: string;
}

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  // SQLSTATE: administrator shutdown, crash shutdown, cannot connect now.
  '57P01',
  '57P02',
  '57P03',
]);

// `pg` raises these without any code.
const UNREACHABLE_TEXT =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|timeout expired|Query read timeout|the database system is)/i;

const FULL_TEXT = /no space left on device|disk quota exceeded/i;

/**
 * Turns whatever a driver threw into one of the typed errors, so that no caller looks at driver codes.
 * `where` names the database for the message (no password in it).
 */
export function mapDatabaseError(error: unknown, where: string): Error {
  if (error instanceof DatabaseError) return error;
  if (!(error instanceof Error)) return new DatabaseError(String(error));
  const raw = firstOf(error);
  const options = { code: raw.code, constraint: raw.constraint, cause: error };
  if (raw.code === '53100' || raw.code === 'ENOSPC' || raw.code === 'EDQUOT' || FULL_TEXT.test(raw.message)) {
    const remedy = 'free space on its disk; the server goes on by itself';
    return new StorageFullError(`the database (${where}) has no space left: ${remedy}`, options);
  }
  if (raw.code === '53300') {
    return new DatabaseBusyError(`the database (${where}) accepts no more connections: ${raw.message}`, options);
  }
  if ((raw.code && (UNREACHABLE.has(raw.code) || raw.code.startsWith('08'))) || UNREACHABLE_TEXT.test(raw.message)) {
    const remedy = 'calls work again as soon as it is back';
    return new DatabaseUnavailableError(`the database (${where}) is not reachable: ${raw.message}; ${remedy}`, options);
  }
  return new DatabaseError(raw.message, options);
}

/** A refused connection to a name with several addresses comes as an AggregateError with an empty message. */
function firstOf(error: Error): RawError {
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error;
  if (!(inner instanceof Error)) return { message: String(inner) };
  const raw: RawError = { message: inner.message || error.message };
  if ('code' in inner && typeof inner.code === 'string') raw.code = inner.code;
  if ('constraint' in inner && typeof inner.constraint === 'string') raw.constraint = inner.constraint;
  return raw;
}
