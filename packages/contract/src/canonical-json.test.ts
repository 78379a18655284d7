import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from './canonical-json.ts';
import type { DocumentValue } from './wire-types.ts';

describe('canonical JSON', () => {
  it('does not depend on the order of keys, and is JSON', () => {
    expect(canonicalJson({ b: [1, { d: null, c: 'x' }], a: undefined })).toBe('{"b":[1,{"c":"x","d":null}]}');
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const plain = JSON.parse(JSON.stringify(value)) as DocumentValue;
        expect(JSON.parse(canonicalJson(plain))).toEqual(plain);
      }),
    );
  });
});
