import { PassThrough, type Readable, Transform, type TransformCallback } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { OutboundError } from './errors.ts';

/** Most codings that one answer may be wrapped in; more is an attack, not a format. */
const MOST_CODINGS = 2;

/**
 * Decodes `content-encoding` and ends with `TOO_LARGE` after `maxBytes` bytes, counted both as received and as decoded,
 * so that a small answer cannot unfold into a large one. Memory is bounded by the streams' own buffers.
 * Throws `BAD_ENCODING` for a coding that was not asked for. `explain` makes of an error of the source what the reader meets.
 */
export function boundedBody(
  source: Readable,
  encoding: string | undefined,
  maxBytes: number,
  explain: (error: Error) => Error,
): Readable {
  const codings = (encoding ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (codings.length > MOST_CODINGS) throw new OutboundError('BAD_ENCODING', 'the answer is encoded too many times');
  const stages: Transform[] = [new ByteLimit(maxBytes)];
  for (const name of codings.reverse()) stages.push(decoder(name), new ByteLimit(maxBytes));
  return chain(source, stages, explain);
}

/** Pipes by hand: `pipeline` would report one error twice, here the last stream is the only one that anyone reads. */
function chain(source: Readable, stages: Transform[], explain: (error: Error) => Error): Readable {
  const last = stages.at(-1) ?? new PassThrough();
  // Whoever reads it meets its error; one that comes before is heard here, for one that nobody hears ends the server.
  last.on('error', () => {});
  let current: Readable = source;
  for (const stage of stages) {
    const from = current;
    from.once('error', (error) => last.destroy(from === source ? explain(error) : asCodingError(error)));
    from.pipe(stage);
    current = stage;
  }
  last.once('close', () => {
    source.destroy();
    for (const stage of stages) stage.destroy();
    source.on('error', () => {});
  });
  return last;
}

function asCodingError(error: Error): Error {
  if (error instanceof OutboundError) return error;
  return new OutboundError('BAD_ENCODING', 'the answer could not be decompressed', { cause: error });
}

function decoder(name: string): Transform {
  if (name === 'gzip' || name === 'x-gzip') return createGunzip();
  if (name === 'deflate') return createInflate();
  if (name === 'br') return createBrotliDecompress();
  if (name === 'zstd') return createZstdDecompress();
  throw new OutboundError('BAD_ENCODING', `the answer is encoded as "${name.slice(0, 40)}", which was not asked for`);
}

class ByteLimit extends Transform {
  readonly #limit: number;
  #seen = 0;

  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#seen += chunk.length;
    if (this.#seen > this.#limit)
      done(new OutboundError('TOO_LARGE', `the answer is larger than ${this.#limit} bytes`));
    else done(null, chunk);
  }
}

/** Reads a bounded stream to its end. */
export async function readAll(stream: Readable): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
