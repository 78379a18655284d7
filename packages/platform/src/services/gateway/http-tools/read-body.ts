import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createInflate, createUnzip, createZstdDecompress } from 'node:zlib';

/** The answer is longer than the platform reads. */
export class AnswerTooLongError extends Error {
  override readonly name = 'AnswerTooLongError';
}

/** The answer cannot be decoded as its `content-encoding` says. */
export class UnreadableAnswerError extends Error {
  override readonly name = 'UnreadableAnswerError';
}

const DECODERS: { [encoding: string]: (() => NodeJS.ReadWriteStream) | undefined } = {
  gzip: createUnzip,
  'x-gzip': createUnzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/**
 * The whole body, at most `maxBytes` of it, also where it is compressed. Throws `AnswerTooLongError` and `UnreadableAnswerError`, and what
 * the body throws; the body is ended in each case.
 */
export async function readBody(
  body: AsyncIterable<Uint8Array>,
  encoding: string | undefined,
  maxBytes: number,
): Promise<Buffer> {
  const codings = (encoding ?? '')
    .toLowerCase()
    .split(',')
    .map((one) => one.trim());
  const [coding, another] = codings.filter((one) => one !== '' && one !== 'identity');
  if (coding === undefined) return await collected(body, maxBytes);
  const decoder = another === undefined ? DECODERS[coding]?.() : undefined;
  if (!decoder) throw new UnreadableAnswerError(`is encoded as ${codings.join(', ').slice(0, 100)}`);
  const parts: Uint8Array[] = [];
  try {
    await pipeline(Readable.from(body), decoder, async (decoded: AsyncIterable<Uint8Array | string>) => {
      parts.push(await collected(decoded, maxBytes));
    });
  } catch (error) {
    if (error instanceof AnswerTooLongError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code.startsWith('Z_') || code.startsWith('ERR_') || code.startsWith('ZSTD'))
      throw new UnreadableAnswerError(`is no ${coding}, as it says`, { cause: error });
    throw error;
  }
  return Buffer.concat(parts);
}

async function collected(body: AsyncIterable<Uint8Array | string>, maxBytes: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const given of body) {
    const part = typeof given === 'string' ? Buffer.from(given) : given;
    length += part.byteLength;
    if (length > maxBytes) throw new AnswerTooLongError(`is longer than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
