import { ServiceError } from '@agentplatform/contract';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CanonicalPaths, canonicalPath, HeaderList } from './sigv4-canonical.ts';
import { AuthorizationReader, parseTimestamp, TimestampReader } from './sigv4-claim.ts';

/** What a call gives, or the error's code and message. */
function outcome(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    if (error instanceof ServiceError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

const headers = new HeaderList(['host', 'h', 'x-amz-date', '20261121T153000Z']);
const signature = fc.oneof(
  fc.constantFrom(...'0123456789abcdef').map((digit) => digit.repeat(64)),
  fc.constantFrom(
    'f'.repeat(63),
    'F'.repeat(64),
    `${'a'.repeat(63)} `,
    `${'a'.repeat(63)},`,
    `,${'a'.repeat(63)}`,
    'a'.repeat(65),
    '',
  ),
);
const scope = fc.constantFrom(
  'AKIA/20261121/r/s/aws4_request',
  'AKIB/20261121/r/s/aws4_request',
  'AKIA/20261121/r/s',
  '',
);
const names = fc.constantFrom('host', 'host;x-amz-date', 'x-amz-date;host', 'host;host', '');
const gap = fc.constantFrom(', ', ',', ' , ', ',,');
const authorization = fc
  .tuple(scope, names, signature, gap, fc.boolean(), fc.constantFrom('', ' ', ', X=1', `, Signature=${'b'.repeat(64)}`))
  .map(([credential, signed, sig, between, signatureFirst, tail]) => {
    const parts = [`Credential=${credential}`, `SignedHeaders=${signed}`, `Signature=${sig}`];
    return `AWS4-HMAC-SHA256 ${(signatureFirst ? parts.toReversed() : parts).join(between)}${tail}`;
  });

describe('what the authenticator remembers between requests', () => {
  it('reads every Authorization header as if it were the first', () => {
    const remembering = new AuthorizationReader();
    let read = 0;
    fc.assert(
      fc.property(fc.array(authorization, { minLength: 1, maxLength: 20 }), (list) => {
        for (const text of list) {
          const fresh = outcome(() => new AuthorizationReader().read(text, headers));
          expect(outcome(() => remembering.read(text, headers))).toEqual(fresh);
          if (typeof fresh === 'object') read += 1;
        }
      }),
      { numRuns: 300 },
    );
    // The generator makes readable ones as well, else nothing was shown.
    expect(read).toBeGreaterThan(50);
  });

  it('encodes every path as if it were the first, and refuses a dot segment each time', () => {
    const remembering = new CanonicalPaths();
    const segment = fc.constantFrom('a', '%2F', 'arn:aws', '..', '.', '', 'ä', "(')*");
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 5 }), fc.constantFrom('s3', 'bedrock-agentcore'), (parts, service) => {
        const path = `/${parts.join('/')}`;
        for (let i = 0; i < 2; i += 1)
          expect(outcome(() => remembering.of(path, service))).toEqual(outcome(() => canonicalPath(path, service)));
      }),
    );
  });

  it('reads every timestamp as if it were the first', () => {
    const reader = new TimestampReader();
    for (const text of ['20261121T153000Z', '20261121T153000Z', 'x', '20261121T153001Z', '20260231T000000Z', ''])
      expect(reader.read(text)).toBe(parseTimestamp(text));
  });
});
