import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ObjectError } from '../../kernel/objects/index.ts';
import { parseTarget } from './request.ts';

test('what the path names', () => {
  const target = (url: string) => {
    const { bucket, key } = parseTarget(url, '/s3');
    return [bucket, key];
  };
  expect(target('/s3')).toEqual([undefined, undefined]);
  expect(target('/s3/?x=1')).toEqual([undefined, undefined]);
  expect(target('/s3/b')).toEqual(['b', undefined]);
  expect(target('/s3/b/?list-type=2')).toEqual(['b', undefined]);
  expect(target('/s3/b/a%2Fb/../c//d')).toEqual(['b', 'a/b/../c//d']);
  expect(target('/s3/b/a+b%20c')).toEqual(['b', 'a+b c']);
  expect(() => target('/s3/b/%ff')).toThrow(ObjectError);
  expect(() => target(`/s3/b/${'x'.repeat(1025)}`)).toThrow(ObjectError);
});

test('every key comes through the path', () => {
  const keys = fc
    .string({ unit: 'binary', minLength: 1, maxLength: 200 })
    .filter((key) => key.isWellFormed() && !key.includes('\0'));
  fc.assert(
    fc.property(keys, (key) => {
      expect(parseTarget(`/s3/bucket/${encodeURIComponent(key)}?x`, '/s3').key).toBe(key);
    }),
  );
});
