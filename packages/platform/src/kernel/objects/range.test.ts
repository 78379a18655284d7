import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseRange, resolveRange } from './range.ts';

test('the forms of a range', () => {
  expect(parseRange('bytes=0-0')).toEqual({ first: 0, last: 0 });
  expect(parseRange('bytes=5-')).toEqual({ first: 5 });
  expect(parseRange('bytes=-5')).toEqual({ suffix: 5 });
  for (const text of [
    undefined,
    '',
    'bytes=',
    'bytes=-',
    'bytes=2-1',
    'bytes=0-1,3-4',
    'lines=0-1',
    'bytes= 0-1',
    'bytes=a-b',
    `bytes=${'9'.repeat(16)}-`,
  ]) {
    expect(parseRange(text)).toBeUndefined();
  }
});

test('a range never reaches outside the object', () => {
  const request = fc.oneof(
    fc.record({ suffix: fc.nat(30) }),
    fc.record({ first: fc.nat(30) }),
    fc.tuple(fc.nat(30), fc.nat(30)).map(([first, more]) => ({ first, last: first + more })),
  );
  fc.assert(
    fc.property(request, fc.nat(25), (range, size) => {
      const all = Array.from({ length: size }, (_, n) => n);
      const wanted =
        'suffix' in range
          ? all.slice(size - Math.min(range.suffix, size))
          : all.filter((n) => n >= range.first && n <= ('last' in range ? Number(range.last) : size));
      if (wanted.length === 0) expect(() => resolveRange(range, size)).toThrow('not satisfiable');
      else expect(resolveRange(range, size)).toEqual({ first: wanted[0], last: wanted.at(-1) });
    }),
  );
});
