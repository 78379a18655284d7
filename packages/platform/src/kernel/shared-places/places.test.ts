import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PLACES, readPlaces } from './places.ts';

const A = 'fsap-0123456789abcdef0';
const B = 'fsap-aaaaaaaa';

describe('the list of shared places', () => {
  it('names directories and exports by access point', () => {
    expect([...readPlaces(`${A}=/srv/with space, ${B}=nfs://[fd00::1]/export/x`)]).toEqual([
      [A, { kind: 'directory', path: '/srv/with space' }],
      [B, { kind: 'nfs', source: '[fd00::1]:/export/x' }],
    ]);
    expect(readPlaces('').size).toBe(0);
  });

  it.each([
    `${A}`,
    `${A}=`,
    `${A}=relative`,
    `${A}=s3://bucket/prefix`,
    `${A}=nfs://host`,
    `${A}=nfs:///export`,
    `${A}=nfs://-o,exec/x`,
    'fsap-XYZ=/srv',
    'other=/srv',
    `${A}=/srv\0x`,
  ])('refuses %j', (text) => {
    expect(() => readPlaces(text)).toThrow(/no shared place/);
  });

  it('refuses a name that is there twice', () => {
    expect(() => readPlaces(`${A}=/a,${A}=/b`)).toThrow(/twice/);
  });

  it('reads whatever the configuration lets through, or says what is wrong', () => {
    const place = fc.oneof(fc.constantFrom('/srv', '/a b', 'nfs://host/x', 's3://b', 'x'), fc.string());
    const entry = fc.tuple(fc.constantFrom(A, B, 'fsap-', ''), place).map(([id, where]) => `${id}=${where}`);
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 4 }), (entries) => {
        const text = entries.join(',');
        try {
          for (const one of readPlaces(text).values())
            expect(one.kind === 'directory' ? one.path : one.source).toMatch(
              one.kind === 'directory' ? /^\// : /^[^/]+:\//,
            );
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          expect(String(error)).toMatch(/no shared place|twice/);
        }
        expect(typeof PLACES.test(text)).toBe('boolean');
      }),
    );
  });
});
