import fc from 'fast-check';
import { expect, it } from 'vitest';
import { EventSize } from './event-size.ts';

/** The largest number of bytes, its end among them, that an event of the stream has had; looked at a character at a time. */
function largest(text: string): number {
  let found = 0;
  let open = 0;
  for (let at = 0; at < text.length; at += 1) {
    open += 1;
    found = Math.max(found, open);
    if (['\n\n', '\n\r', '\r\r'].includes(text.slice(Math.max(0, at - 1), at + 1))) open = 0;
  }
  return found;
}

const stream = fc
  .array(
    fc.oneof(fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\n\r\n', 'data: x'), fc.string({ unit: 'grapheme-ascii' })),
  )
  .map((parts) => parts.join(''));

it('sees the largest event, however the stream is cut into parts that are smaller than it may be', () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
  fc.assert(
    fc.property(stream, cuts, fc.integer({ min: 9, max: 40 }), (text, lengths, max) => {
      const size = new EventSize(max);
      const bytes = Buffer.from(text);
      let fine = true;
      for (let at = 0, i = 0; at < bytes.length; i += 1) {
        const length = lengths[i % lengths.length] ?? 1;
        fine = size.take(bytes.subarray(at, at + length)) && fine;
        at += length;
      }
      expect(fine).toBe(largest(text) <= max);
    }),
    { numRuns: 1000 },
  );
});

it.each(['\n\n', '\r\n\r\n', '\r\r', '\n\r', '\r\n\r'])('takes %j for an end', (end) => {
  const size = new EventSize(20);
  for (let i = 0; i < 10; i += 1) expect(size.take(Buffer.from(`data: ${i}${end}`))).toBe(true);
  expect(size.take(Buffer.from('data: of more than twenty'))).toBe(false);
});
