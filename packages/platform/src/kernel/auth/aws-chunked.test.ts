import { createHash, createHmac } from 'node:crypto';
import { Readable } from 'node:stream';
import { ServiceError } from '@agentplatform/contract';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AwsChunkedDecoder, type AwsChunkedOptions } from './aws-chunked.ts';
import type { ChunkSigning } from './sigv4.ts';
import { SigningKeys } from './sigv4-key.ts';

const SCOPE = '20130524/us-east-1/s3/aws4_request';
const signing: ChunkSigning = {
  // The example of the S3 documentation, "Signature Calculations … Transferring Payload in Multiple Chunks".
  key: new SigningKeys().get('AKIAIOSFODNN7EXAMPLE', 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', SCOPE),
  scope: SCOPE,
  timestamp: '20130524T000000Z',
  seedSignature: '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9',
};
const DOCUMENTED = [
  '10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648',
  'a'.repeat(65_536),
  '400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497',
  'a'.repeat(1_024),
  '0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9',
  '',
  '',
].join('\r\n');

async function decode(
  text: string | Buffer,
  options: Partial<AwsChunkedOptions> = {},
  size = 1_000,
): Promise<{ received: number; error?: string; trailers: Map<string, string> }> {
  const decoder = new AwsChunkedDecoder({ signing: undefined, trailer: false, maxBytes: 1e9, ...options });
  const data = Buffer.from(text);
  const parts = Array.from({ length: Math.ceil(data.length / size) }, (_, i) =>
    data.subarray(i * size, (i + 1) * size),
  );
  let received = 0;
  try {
    for await (const part of Readable.from(parts, { objectMode: false }).compose(decoder)) received += part.length;
    return { received, trailers: decoder.trailers };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { received, error: error.code, trailers: decoder.trailers };
  }
}

describe('signed chunks', () => {
  it('of the documented example are accepted, however they arrive', async () => {
    for (const size of [1, 7, 65_536, 1_000_000]) {
      expect(await decode(DOCUMENTED, { signing }, size)).toMatchObject({ received: 66_560 });
    }
  });

  it('with one byte or signature altered, swapped or left out never arrive whole', async () => {
    const swap = (from: string | RegExp, to: string): string => DOCUMENTED.replace(from, to);
    for (const altered of [
      swap('aaaa', 'aaab'),
      swap('ad80c730', 'ad80c731'),
      swap('b6c6ea8a', 'b6c6ea8b'),
      swap(/400;chunk.*?\r\n/, ''),
      swap(/400;chunk[^\r]*\r\na*\r\n/, ''),
      swap(/0;chunk-signature=b6c6.*$/s, ''),
      swap(/;chunk-signature=0055\w+/, ''),
    ]) {
      expect(altered).not.toBe(DOCUMENTED);
      const { received, error } = await decode(altered, { signing });
      expect(error).toMatch(/InvalidSignatureException|ValidationException/);
      expect(received).toBeLessThanOrEqual(66_559);
    }
  });

  it('have a signed trailer', async () => {
    const sha = (text: string): string => createHash('sha256').update(text).digest('hex');
    const sign = (what: string, previous: string, rest: string): string =>
      createHmac('sha256', signing.key)
        .update(`AWS4-HMAC-SHA256-${what}\n${signing.timestamp}\n${SCOPE}\n${previous}\n${rest}`)
        .digest('hex');
    const one = sign('PAYLOAD', signing.seedSignature, `${sha('')}\n${sha('hello')}`);
    const end = sign('PAYLOAD', one, `${sha('')}\n${sha('')}`);
    const trailer = sign('TRAILER', end, sha('x-amz-checksum-crc32:AAAA\n'));
    const text = `5;chunk-signature=${one}\r\nhello\r\n0;chunk-signature=${end}\r\nx-amz-checksum-crc32:AAAA\r\nx-amz-trailer-signature:${trailer}\r\n\r\n`;
    const options = { signing, trailer: true };
    const { received, trailers } = await decode(text, options);
    expect([received, trailers.get('x-amz-checksum-crc32')]).toEqual([5, 'AAAA']);
    expect((await decode(text.replace('AAAA', 'AAAB'), options)).error).toBe('InvalidSignatureException');
    expect((await decode(text.replace(/x-amz-trailer.*\r\n\r\n/, '\r\n'), options)).error).toBe('ValidationException');
    expect((await decode(text, { signing })).error).toBe('ValidationException');
  });
});

describe('unsigned chunks', () => {
  const trailer = { trailer: true };

  it('give their data and trailers', async () => {
    const text = '5\r\nhello\r\n1\r\n!\r\n0\r\nX-Amz-Checksum-Crc32: abc=\r\n\r\n';
    const { received, trailers } = await decode(text, trailer, 3);
    expect([received, trailers.get('x-amz-checksum-crc32')]).toEqual([6, 'abc=']);
  });

  it.each([
    ['nothing', ''],
    ['no end', '5\r\nhello\r\n'],
    ['a short chunk', '5\r\nhell\r\n0\r\n\r\n'],
    ['a long chunk', '5\r\nhello!\r\n0\r\n\r\n'],
    ['a negative size', '-1\r\n\r\n'],
    ['a huge size', `${'f'.repeat(13)}\r\n`],
    ['bare line feeds', '5\nhello\n0\n\n'],
    ['bytes after the end', '0\r\n\r\nmore'],
    ['an endless line', '5'.repeat(2_000)],
    ['endless trailers', `0\r\n${`a:${'b'.repeat(900)}\r\n`.repeat(30)}\r\n`],
    ['a nameless trailer', '0\r\nfoo\r\n\r\n'],
    ['a signature where none belongs', `5;chunk-signature=${'0'.repeat(64)}\r\nhello\r\n0\r\n\r\n`],
  ])('with %s are refused', async (_, text) => {
    expect((await decode(text, trailer)).error).toBe('ValidationException');
  });

  it('end with 413 past the limit', async () => {
    expect((await decode('ff\r\n', { ...trailer, maxBytes: 254 })).error).toBe('RequestEntityTooLargeException');
  });

  it('answer anything with a ServiceError', async () => {
    const word = fc.constantFrom('0', '5', '\r\n', 'hello', ';chunk-signature=', ':', 'a');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(word, fc.string()), { maxLength: 12 }),
        fc.integer({ min: 1, max: 9 }),
        async (words, size) => {
          await decode(words.join(''), trailer, size);
        },
      ),
      { numRuns: 200 },
    );
  });
});
