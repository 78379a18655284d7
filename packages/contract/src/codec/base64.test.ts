import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeBase64 } from './json-reader.ts';

const pattern = /^[A-Za-z0-9+/]*={0,2}$/;
const strict = (text: string): boolean => text.length % 4 === 0 && pattern.test(text);

it('takes what the pattern of the alphabet takes, and nothing else', () => {
  const near = fc.string({
    unit: fc.constantFrom('A', 'b', '9', '+', '/', '=', '-', '_', ' ', '\n', '\0', 'é', '€'),
    maxLength: 12,
  });
  fc.assert(
    fc.property(fc.oneof(near, fc.string()), (text) => {
      expect(decodeBase64(text) !== undefined).toBe(strict(text));
    }),
    { numRuns: 5000 },
  );
});

it('gives the bytes back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      expect(decodeBase64(Buffer.from(bytes).toString('base64'))).toEqual(Buffer.from(bytes));
    }),
  );
});
