/** The few forms of DER (ITU-T X.690) that a certificate is made of; each gives the encoded bytes. */

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

function encoded(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  const bytes = length.subarray(length.findIndex((byte) => byte !== 0));
  return Buffer.concat([Buffer.from([tag, 0x80 | bytes.length]), bytes, content]);
}

export const sequence = (...parts: Uint8Array[]): Buffer => encoded(TAG.sequence, ...parts);
export const set = (...parts: Uint8Array[]): Buffer => encoded(TAG.set, ...parts);
export const octets = (content: Uint8Array): Buffer => encoded(TAG.octets, content);
export const utf8 = (text: string): Buffer => encoded(TAG.utf8, Buffer.from(text));
export const truth = (): Buffer => encoded(TAG.boolean, Buffer.from([0xff]));

/** A whole number that is not negative, from its bytes. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const short = first === -1 ? Buffer.from([0]) : bytes.subarray(first);
  const sign = (short[0] ?? 0) & 0x80 ? Buffer.from([0]) : Buffer.alloc(0);
  return encoded(TAG.integer, sign, short);
}

/** `unused` bits at the end of the last byte do not count. */
export const bits = (content: Uint8Array, unused = 0): Buffer => encoded(TAG.bits, Buffer.from([unused]), content);

/** `2.5.29.17` */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const digits = [arc & 0x7f];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128))
      digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return encoded(TAG.oid, Buffer.from(bytes));
}

/** To the second; RFC 5280 4.1.2.5 has two digits of the year until 2049. */
export function time(at: Date): Buffer {
  const text = `${at.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`;
  return at.getUTCFullYear() < 2050
    ? encoded(TAG.utcTime, Buffer.from(text.slice(2)))
    : encoded(TAG.generalizedTime, Buffer.from(text));
}

/** The member `[number]`: explicit ones hold a whole encoding, implicit ones its content alone. */
export const explicit = (number: number, content: Uint8Array): Buffer => encoded(0xa0 | number, content);
export const implicit = (number: number, content: Uint8Array): Buffer => encoded(0x80 | number, content);
