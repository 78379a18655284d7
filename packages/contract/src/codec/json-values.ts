/** Values of one JSON body at most: more are no request that anybody means, and each costs as much as many bytes. */
export const maxJsonValues = 250_000;

/** A body shorter than this is read unseen: it cannot hold enough to matter. */
const SHORT_BYTES = 64 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/**
 * Whether JSON text holds more than `maxJsonValues` elements, members, lists and objects: told before they are made, since
 * sixteen megabytes of `[[],[],…` become a gigabyte of objects and stop the server meanwhile. Texts are jumped over.
 */
export function holdsTooMuch(bytes: Uint8Array): boolean {
  if (bytes.length < SHORT_BYTES) return false;
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfText(bytes, at);
      if (at < 0) return false;
    } else if (byte === COMMA || byte === COLON || byte === BRACKET || byte === BRACE) {
      values += 1;
      if (values > maxJsonValues) return true;
    }
  }
  return false;
}

/** The place of the quote that closes the one at `start`; -1 when there is none, and the text no JSON. */
function endOfText(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end >= 0; end = bytes.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}
