import fc from 'fast-check';
import { expect, it } from 'vitest';
import { EventSize } from './event-size.ts';

/** The same, a byte at a time: what is open after each byte. */
function longestOpen(text: string): number {
  let longest = 0;
  for (let end = 1; end <= text.length; end += 1) {
    const seen = text.slice(0, end);
    let at = 0;
    for (const one of ['\n\n', '\n\r\n', '\r\r']) {
      const last = seen.lastIndexOf(one);
      if (last >= 0) at = Math.max(at, last + one.length);
    }
    longest = Math.max(longest, end - at);
  }
  return longest;
}

const stream = fc
  .array(
    fc.oneof(fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\n\r\n', 'data: x'), fc.string({ unit: 'grapheme-ascii' })),
  )
  .map((parts) => parts.join(''));

it('sees the same however the stream is cut, as long as it sees each byte', () => {
  fc.assert(
    fc.property(stream, fc.integer({ min: 1, max: 30 }), (text, max) => {
      const size = new EventSize(max);
      const fine = [...Buffer.from(text)].every((byte) => size.take(Buffer.from([byte])));
      expect(fine).toBe(longestOpen(text) <= max);
    }),
  );
});

it('is never stricter than that with larger parts, and no more than a part more lenient', () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
  fc.assert(
    fc.property(stream, cuts, fc.integer({ min: 10, max: 40 }), (text, lengths, max) => {
      const size = new EventSize(max);
      const bytes = Buffer.from(text);
      let fine = true;
      for (let at = 0, i = 0; at < bytes.length; i += 1) {
        const length = lengths[i % lengths.length] ?? 1;
        fine &&= size.take(bytes.subarray(at, at + length));
        at += length;
      }
      if (longestOpen(text) <= max) expect(fine).toBe(true);
      if (longestOpen(text) > max + 9) expect(fine).toBe(false);
    }),
  );
});
