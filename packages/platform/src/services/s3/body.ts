import type { IncomingMessage } from 'node:http';
import { type AuthenticatedBody, AwsChunkedDecoder, gateBody, type Hold, type Spool } from '../../kernel/auth/index.ts';
import {
  CHECKSUM_ALGORITHMS,
  type ChecksumAlgorithm,
  type Declared,
  ObjectError,
  type Verified,
  verifyBody,
} from '../../kernel/objects/index.ts';

export interface BodyDeps {
  spool: Spool;
  maxBytes: number;
  hold: Hold;
}

/**
 * The body of a request: decoded when it is `aws-chunked`, belonging to its signature, and with every declared checksum
 * verified at its end. What it gave before an error at its end counts for nothing.
 */
export async function readBody(raw: IncomingMessage, body: AuthenticatedBody, deps: BodyDeps): Promise<Verified> {
  const gated = await gateBody(raw, body, { ...deps, contentLength: contentLength(raw) });
  const source = gated.kind === 'buffer' ? once(gated.data) : gated.stream;
  const decoder = gated.kind === 'stream' && gated.stream instanceof AwsChunkedDecoder ? gated.stream : undefined;
  const expected = decoder && header(raw, 'x-amz-decoded-content-length');
  return verifyBody(expected === undefined ? source : exactly(source, Number(expected)), declaredBy(raw, decoder));
}

/** The whole body as text, for the small documents of S3; `hold` takes memory for its parts. */
export async function readText(verified: Verified, maxBytes: number, hold: Hold): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of verified.body) {
    bytes += part.length;
    if (bytes > maxBytes) throw new ObjectError('EntityTooLarge', `The document is over ${maxBytes} bytes.`);
    hold(part.length);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function declaredBy(raw: IncomingMessage, decoder: AwsChunkedDecoder | undefined): Declared {
  const md5 = header(raw, 'content-md5');
  const inHeader = CHECKSUM_ALGORITHMS.find((name) => header(raw, `x-amz-checksum-${name}`) !== undefined);
  if (inHeader) return { md5, algorithm: inHeader, value: () => header(raw, `x-amz-checksum-${inHeader}`) };
  const announced = /^x-amz-checksum-(\w+)$/.exec(header(raw, 'x-amz-trailer')?.toLowerCase() ?? '')?.[1];
  if (announced === undefined || !decoder) return { md5 };
  const algorithm = CHECKSUM_ALGORITHMS.find((name) => name === announced);
  if (!algorithm) throw new ObjectError('InvalidRequest', `The checksum ${announced} is not known here.`);
  return { md5, algorithm, value: () => decoder.trailers.get(`x-amz-checksum-${algorithm}`) };
}

async function* once(data: Buffer): AsyncGenerator<Uint8Array> {
  if (data.length > 0) yield data;
}

async function* exactly(source: AsyncIterable<Uint8Array>, expected: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const part of source) {
    bytes += part.length;
    yield part;
  }
  if (bytes !== expected) {
    throw new ObjectError(
      'IncompleteBody',
      `The body has ${bytes} bytes, x-amz-decoded-content-length says ${expected}.`,
    );
  }
}

function contentLength(raw: IncomingMessage): number | undefined {
  const text = raw.headers['content-length'];
  if (text !== undefined) return Number(text);
  return raw.headers['transfer-encoding'] === undefined ? 0 : undefined;
}

/** Repeated headers come joined, as no client of S3 sends them. */
export function header(raw: IncomingMessage, name: string): string | undefined {
  const value = raw.headers[name];
  return Array.isArray(value) ? value.join(',') : value;
}

export function checksumHeader(algorithm: ChecksumAlgorithm): string {
  return `x-amz-checksum-${algorithm}`;
}
