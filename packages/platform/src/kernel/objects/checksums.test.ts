import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CHECKSUM_ALGORITHMS, createChecksum, verifyBody } from './checksums.ts';

const CHECK = Buffer.from('123456789');

test('each algorithm gives the published value of its check text', async () => {
  const values: Record<string, string> = {};
  for (const algorithm of CHECKSUM_ALGORITHMS) {
    const checksum = createChecksum(algorithm);
    checksum.update(CHECK.subarray(0, 4));
    checksum.update(CHECK.subarray(4));
    values[algorithm] = Buffer.from(await checksum.digest(), 'base64').toString('hex');
  }
  expect(values).toEqual({
    crc32: 'cbf43926',
    crc32c: 'e3069283',
    crc64nvme: 'ae8b14860a799888',
    sha1: 'f7c3bc1d808e04732adf679965ccc34ca7ae3441',
    sha256: '15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225',
  });
});

async function collect(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}

async function* parts(...all: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* all;
}

test('a body passes with its checksum, however it is cut, and fails with any other', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array()), fc.constantFrom(...CHECKSUM_ALGORITHMS), async (pieces, algorithm) => {
      const whole = Buffer.concat(pieces);
      const checksum = createChecksum(algorithm);
      checksum.update(whole);
      const value = await checksum.digest();
      const good = verifyBody(parts(...pieces), { algorithm, value: () => value });
      expect(good.checksum()).toBeUndefined();
      expect(await collect(good.body)).toEqual(whole);
      expect(good.checksum()).toEqual({ algorithm, value });
      const bad = verifyBody(parts(...pieces, Buffer.of(1)), { algorithm, value: () => value });
      await expect(collect(bad.body)).rejects.toMatchObject({ code: 'BadDigest' });
      expect(bad.checksum()).toBeUndefined();
    }),
    { numRuns: 50 },
  );
});

test('a Content-MD5 that differs and a trailer that never came are refused', async () => {
  const md5 = 'JfnnlDI7RTiF9RgfG2JNCw==';
  expect(await collect(verifyBody(parts(CHECK), { md5 }).body)).toEqual(CHECK);
  await expect(collect(verifyBody(parts(), { md5 }).body)).rejects.toMatchObject({ code: 'BadDigest' });
  const missing = verifyBody(parts(CHECK), { algorithm: 'crc32', value: () => undefined });
  await expect(collect(missing.body)).rejects.toMatchObject({ code: 'InvalidRequest' });
});
