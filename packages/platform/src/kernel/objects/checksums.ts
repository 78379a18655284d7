import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { Crc32c, Crc64Nvme } from '@aws-sdk/checksums/crc';
import { ObjectError } from './errors.ts';

/** The algorithms of S3's additional checksums, as their headers name them. */
export const CHECKSUM_ALGORITHMS = ['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256'] as const;
export type ChecksumAlgorithm = (typeof CHECKSUM_ALGORITHMS)[number];

export interface Checksum {
  algorithm: ChecksumAlgorithm;
  /** base64. */
  value: string;
}

/** Computes one checksum over parts. */
export interface ChecksumStream {
  update(part: Uint8Array): void;
  /** base64. */
  digest(): Promise<string>;
}

export function createChecksum(algorithm: ChecksumAlgorithm): ChecksumStream {
  switch (algorithm) {
    case 'crc32': {
      let value = 0;
      return {
        update: (part) => {
          value = crc32(part, value);
        },
        digest: async () => {
          const bytes = Buffer.alloc(4);
          bytes.writeUInt32BE(value);
          return bytes.toString('base64');
        },
      };
    }
    case 'crc32c':
    case 'crc64nvme': {
      const checksum = algorithm === 'crc32c' ? new Crc32c() : new Crc64Nvme();
      return {
        update: (part) => checksum.update(part),
        digest: async () => Buffer.from(await checksum.digest()).toString('base64'),
      };
    }
    case 'sha1':
    case 'sha256': {
      const hash = createHash(algorithm);
      return { update: (part) => void hash.update(part), digest: async () => hash.digest('base64') };
    }
  }
}

export interface Verified {
  body: AsyncIterable<Uint8Array>;
  /** The checksum that was declared, once the body has been read to its end. */
  checksum(): Checksum | undefined;
}

export interface Declared {
  /** Of the `Content-MD5` header, base64. */
  md5?: string;
  /** Of a header, or of the trailer, which is known at the end only. */
  algorithm?: ChecksumAlgorithm;
  /** Called at the end of the body. */
  value?(): string | undefined;
}

/** Passes a body on and throws `BadDigest` at its end when it is not what was declared. */
export function verifyBody(source: AsyncIterable<Uint8Array>, declared: Declared): Verified {
  let verified: Checksum | undefined;
  async function* pass(): AsyncGenerator<Uint8Array> {
    const md5 = declared.md5 === undefined ? undefined : createHash('md5');
    const stream = declared.algorithm && createChecksum(declared.algorithm);
    for await (const part of source) {
      md5?.update(part);
      stream?.update(part);
      yield part;
    }
    if (md5 && md5.digest('base64') !== declared.md5) {
      throw new ObjectError('BadDigest', 'The body does not have the declared Content-MD5.');
    }
    if (!stream || !declared.algorithm) return;
    const value = declared.value?.();
    if (value === undefined)
      throw new ObjectError('InvalidRequest', `The trailer x-amz-checksum-${declared.algorithm} is missing.`);
    if ((await stream.digest()) !== value) {
      throw new ObjectError('BadDigest', `The body does not have the declared ${declared.algorithm} checksum.`);
    }
    verified = { algorithm: declared.algorithm, value };
  }
  return { body: pass(), checksum: () => verified };
}
