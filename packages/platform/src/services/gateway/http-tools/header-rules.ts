import { HOP_BY_HOP } from '../../../kernel/hop-by-hop.ts';
import { RefusedArgumentError } from './refused-argument.ts';

/** Headers that belong to the connection, to credentials and signatures, or to whoever stands between; no argument sets them. Small letters. */
const NOT_OF_ARGUMENTS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'authorization',
  'cookie',
  'set-cookie',
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'accept',
  'accept-encoding',
  'forwarded',
  'via',
  'x-real-ip',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-amz-date',
  'x-amz-security-token',
  'x-amz-content-sha256',
]);

/** Whether arguments may never set the header. */
export function isReservedHeader(name: string): boolean {
  const small = name.toLowerCase();
  return NOT_OF_ARGUMENTS.has(small) || small.startsWith('x-forwarded-') || small.startsWith('proxy-');
}

/** Whether it can be the name of a header or a cookie (RFC 9110, `token`). */
export function isToken(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name);
}

/** `text`, if a header can carry it: printable Latin-1 without line breaks. Throws `RefusedArgumentError`. */
export function headerValue(text: string, argument: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/.test(text))
    throw new RefusedArgumentError(
      `The argument ${argument} goes into a header, which carries no line breaks, control characters or characters beyond Latin-1.`,
    );
  return text.trim();
}
