import { errors } from '@agentplatform/contract';

/** What a path may be written with (RFC 3986, 3.3). */
const WRITTEN = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$/;
/** What servers, proxies and file systems read as a way out of a path, however it is written: a slash, a backslash, and what ends a line or a text. */
const HIDDEN = /%(?:2f|5c|[01][0-9a-f]|7f)/i;
/** The same of a query. Blanks and what ends a line are no part of it. */
const QUERY = /^[!-"$-~]*$/;

/**
 * Throws ValidationException for a path or a query that a backend could read otherwise than it is read here: with a step upwards, an empty
 * step, a hidden slash, or what no path has. What is left goes on as it is written.
 */
export function refusePath(path: string, search: string): void {
  const problem = problemOf(path, search);
  if (problem !== undefined) throw errors.validation(`The path ${problem}.`);
}

function problemOf(path: string, search: string): string | undefined {
  if (!WRITTEN.test(path)) return 'has characters that no path has; they must be percent-encoded';
  if (HIDDEN.test(path)) return 'has an encoded slash, backslash or control character';
  const steps = path.split('/').slice(1);
  if (steps.slice(0, -1).includes('')) return 'has an empty step';
  if (steps.some((step) => /^(?:\.|%2e){1,2}(?:;.*)?$/i.test(step))) return 'has a step to where it is, or upwards';
  return QUERY.test(search) ? undefined : 'is followed by a query with characters that no query has';
}
