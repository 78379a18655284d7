import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isBucketName } from '../objects/index.ts';
import { PLACES, readPlaces } from './places.ts';

const A = 'fsap-0123456789abcdef0';
const B = 'fsap-aaaaaaaa';
const C = 'fsap-cccccccc';

describe('the list of shared places', () => {
  it('names directories, exports and prefixes by access point', () => {
    expect([...readPlaces(`${A}=/srv/with space, ${B}=nfs://[fd00::1]/export/x, ${C}=s3://bucket/a/b c/`)]).toEqual([
      [A, { kind: 'directory', path: '/srv/with space' }],
      [B, { kind: 'nfs', source: '[fd00::1]:/export/x' }],
      [C, { kind: 'objects', bucket: 'bucket', prefix: 'a/b c' }],
    ]);
    for (const whole of ['s3://bucket', 's3://bucket/'])
      expect(readPlaces(`${A}=${whole}`).get(A)).toEqual({ kind: 'objects', bucket: 'bucket', prefix: '' });
    expect(readPlaces('').size).toBe(0);
  });

  it.each([
    `${A}`,
    `${A}=`,
    `${A}=relative`,
    `${A}=s3://`,
    `${A}=s3:///prefix`,
    `${A}=s3://Not_A_Bucket/prefix`,
    `${A}=s3://bucket/a/../b`,
    `${A}=s3://bucket/./b`,
    `${A}=s3://bucket//b`,
    `${A}=s3://bucket/${'p'.repeat(256)}`,
    `${A}=s3://bucket/${'abcdefg/'.repeat(80)}`,
    `${A}=s3://bucket/\ud800`,
    `${A}=gs://bucket/prefix`,
    `${A}=nfs://host`,
    `${A}=nfs:///export`,
    `${A}=nfs://-o,exec/x`,
    'fsap-XYZ=/srv',
    'other=/srv',
    `${A}=/srv\0x`,
  ])('refuses %j', (text) => {
    expect(() => readPlaces(text)).toThrow(/not a shared place/);
  });

  it('refuses a name that is there twice', () => {
    expect(() => readPlaces(`${A}=/a,${A}=/b`)).toThrow(/twice/);
  });

  it('reads whatever the configuration lets through, or says what is wrong', () => {
    const known = fc.constantFrom('/srv', '/a b', 'nfs://host/x', 's3://bucket/a', 's3://b', 'x');
    const objects = fc.tuple(fc.stringMatching(/^[a-z.-]{3,8}$/), fc.string()).map(([b, p]) => `s3://${b}/${p}`);
    const place = fc.oneof(known, objects, fc.string());
    const entry = fc.tuple(fc.constantFrom(A, B, 'fsap-', ''), place).map(([id, where]) => `${id}=${where}`);
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 4 }), (entries) => {
        const text = entries.join(',');
        try {
          for (const one of readPlaces(text).values()) {
            if (one.kind === 'directory') expect(one.path).toMatch(/^\//);
            else if (one.kind === 'nfs') expect(one.source).toMatch(/^[^/]+:\//);
            else {
              expect(isBucketName(one.bucket)).toBe(true);
              for (const name of one.prefix === '' ? [] : one.prefix.split('/'))
                expect(['', '.', '..']).not.toContain(name);
            }
          }
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          expect(String(error)).toMatch(/not a shared place|twice/);
        }
        expect(typeof PLACES.test(text)).toBe('boolean');
      }),
    );
  });
});
