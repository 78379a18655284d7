import { RefusedArgumentError } from './refused-argument.ts';

/** `text` as UTF-8 with all but unreserved characters percent-encoded (RFC 3986). Throws `RefusedArgumentError` for half a character. */
export function percentEncoded(text: string, argument: string): string {
  if (!text.isWellFormed())
    throw new RefusedArgumentError(`The argument ${argument} holds half a character (a lone surrogate).`);
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** As `percentEncoded`, with the reserved characters left as they are that end no value and no query. */
export function reservedKept(text: string, argument: string): string {
  return percentEncoded(text, argument).replace(/%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B|3D)/g, decodeURIComponent);
}
