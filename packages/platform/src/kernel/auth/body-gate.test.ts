import { createHash, createSecretKey, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { ServiceError } from '@agentplatform/contract';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatedBody, gateBody } from './body-gate.ts';
import { type AuthenticatedBody, mismatch } from './sigv4.ts';
import { createSpool, type Spool } from './spool.ts';

let dir: string;
let spool: Spool;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'body-gate-'));
  spool = await createSpool({ dir, memoryBytes: 100_000, diskBytes: 4_000_000 });
});
afterAll(() => rm(dir, { recursive: true }));

/** There is memory enough. */
const hold = (): void => undefined;
const sha = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
const declared = (data: Buffer): AuthenticatedBody => ({ kind: 'declared', sha256: sha(data) });
const undeclared = (data: Buffer): AuthenticatedBody => ({
  kind: 'undeclared',
  verify: (hex) => hex === sha(data),
  mismatch,
});

/** A source in parts of a size, as a socket gives them. */
const source = (data: Buffer, size = 16_384): Readable =>
  Readable.from(
    (function* () {
      for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
    })(),
    { objectMode: false },
  );

async function drain(gated: GatedBody): Promise<{ received: Buffer; error: string | undefined }> {
  if (gated.kind === 'buffer') return { received: gated.data, error: undefined };
  const parts: Buffer[] = [];
  try {
    for await (const part of gated.stream) parts.push(part as Buffer);
    return { received: Buffer.concat(parts), error: undefined };
  } catch (error) {
    return { received: Buffer.concat(parts), error: error instanceof ServiceError ? error.code : String(error) };
  }
}

const gate = async (
  from: Readable,
  body: AuthenticatedBody,
  contentLength: number | undefined,
  maxBytes = 10_000_000,
): Promise<{ received: Buffer; error: string | undefined }> => {
  try {
    return await drain(await gateBody(from, body, { contentLength, maxBytes, spool, hold }));
  } catch (error) {
    return { received: Buffer.alloc(0), error: error instanceof ServiceError ? error.code : String(error) };
  }
};

const SIZES = [0, 1, 1_000, 65_536, 65_537, 100_001, 1_000_000];

describe.each([
  ['declared', declared],
  ['undeclared', undeclared],
] as const)('a body whose hash is %s', (kind, bind) => {
  it.each(SIZES)('of %i bytes arrives whole', async (size) => {
    const data = randomBytes(size);
    for (const length of size === 0 ? [size] : [size, undefined]) {
      const { received, error } = await gate(source(data), bind(data), length);
      expect(error).toBeUndefined();
      expect(received.equals(data)).toBe(true);
    }
  });

  it.each(SIZES.filter((size) => size > 0))('of %i bytes, one of them altered, never arrives whole', async (size) => {
    const data = randomBytes(size);
    const altered = Buffer.from(data);
    altered[size - 1] = (altered[size - 1] ?? 0) ^ 1;
    for (const length of [size, undefined]) {
      const { received, error } = await gate(source(altered), bind(data), length);
      expect(error).toBe('InvalidSignatureException');
      // Nothing at all where it was verified first, and less than all where it streamed.
      expect(received.length).toBeLessThan(kind === 'undeclared' ? 1 : size);
    }
  });

  it('that is too large ends with 413, before and while it arrives', async () => {
    const data = randomBytes(300_000);
    for (const length of [300_000, undefined]) {
      const from = source(data);
      expect((await gate(from, bind(data), length, 200_000)).error).toBe('RequestEntityTooLargeException');
      expect(from.destroyed).toBe(false);
    }
  });

  it('that the client leaves unfinished fails', async () => {
    for (const size of [1_000, 300_000]) {
      const data = randomBytes(size);
      const from = new Readable({ read() {} });
      from.push(data.subarray(0, size / 2));
      setTimeout(() => from.destroy(new Error('aborted')), 5);
      expect((await gate(from, bind(data), size)).error).toMatch(/ValidationException|aborted/);
    }
  });
});

describe('a stage that nobody reads yet', () => {
  const signing = { key: createSecretKey(Buffer.from('k')), seedSignature: 'x', timestamp: 't', scope: 's' };
  const forged = `5;chunk-signature=${'0'.repeat(64)}\r\nhello\r\n`;
  it.each<[string, AuthenticatedBody, string, boolean]>([
    ['a declared body that is cut short', declared(Buffer.from('x')), 'a', false],
    ['an unsigned body that is cut short', { kind: 'unsigned' }, 'a', false],
    ['a body of another hash', declared(Buffer.from('x')), 'a', true],
    [
      'an aws-chunked body that is cut short',
      { kind: 'chunked', signing: undefined, trailer: false },
      '5\r\nhe',
      false,
    ],
    ['an aws-chunked body with a forged chunk', { kind: 'chunked', signing, trailer: false }, forged, true],
  ])('ends nothing but itself, and tells who reads it later: %s', async (_name, body, sent, whole) => {
    const from = new PassThrough();
    const gated = await gateBody(from, body, { contentLength: 70_000, maxBytes: 1e9, spool, hold });
    if (gated.kind !== 'stream') throw new Error('expected a stream');
    const closed = new Promise((done) => gated.stream.once('close', done));
    from.write(sent);
    if (whole) from.end();
    else from.destroy();
    await closed;
    expect((await drain(gated)).error).toMatch(/^(ValidationException|InvalidSignatureException)$/);
  });

  it('fails at once when the client had gone before', async () => {
    const from = new PassThrough();
    from.destroy();
    await new Promise((done) => from.once('close', done));
    const gated = await gateBody(from, { kind: 'unsigned' }, { contentLength: 70_000, maxBytes: 1e9, spool, hold });
    expect((await drain(gated)).error).toBe('ValidationException');
  });
});

describe('a declared body', () => {
  it('is on its way before it has ended', async () => {
    const data = randomBytes(200_000);
    const from = new Readable({ read() {} });
    const gated = await gateBody(from, declared(data), { contentLength: 200_000, maxBytes: 1e9, spool, hold });
    if (gated.kind !== 'stream') throw new Error('expected a stream');
    from.push(data.subarray(0, 50_000));
    from.push(data.subarray(50_000, 100_000));
    const [first] = await Promise.race([
      gated.stream.take(1).toArray(),
      new Promise<[]>((r) => setTimeout(r, 500, [])),
    ]);
    expect((first as Buffer | undefined)?.length).toBe(50_000);
    gated.stream.destroy();
  });

  it('of 300 MB passes in flat memory', async () => {
    const part = randomBytes(64 * 1024);
    const parts = 4_800;
    const whole = createHash('sha256');
    for (let i = 0; i < parts; i++) whole.update(part);
    const from = Readable.from(
      (function* () {
        for (let i = 0; i < parts; i++) yield part;
      })(),
      { objectMode: false },
    );
    const body: AuthenticatedBody = { kind: 'declared', sha256: whole.digest('hex') };
    const gated = await gateBody(from, body, { contentLength: undefined, maxBytes: 1e9, spool, hold });
    if (gated.kind !== 'stream') throw new Error('expected a stream');
    const before = process.memoryUsage().rss;
    let peak = before;
    let length = 0;
    for await (const piece of gated.stream) {
      length += (piece as Buffer).length;
      if (length % (8 * 1024 * 1024) === 0) peak = Math.max(peak, process.memoryUsage().rss);
    }
    expect(length).toBe(parts * part.length);
    expect(peak - before).toBeLessThan(60_000_000);
  });
});

describe('the spool', () => {
  it('keeps no name on disk while a body waits, and frees its share when it is read or dropped', async () => {
    const data = randomBytes(3_000_000);
    const take = () =>
      gateBody(source(data), undeclared(data), { contentLength: undefined, maxBytes: 1e9, spool, hold });
    const waiting = await take();
    expect(waiting.kind).toBe('stream');
    expect(await readdir(dir)).toEqual([]);
    await expect(take()).rejects.toMatchObject({ code: 'ServiceUnavailableException', status: 503 });
    expect((await drain(waiting)).received.equals(data)).toBe(true);
    const dropped = await take();
    if (dropped.kind === 'stream') {
      const closed = new Promise((done) => dropped.stream.once('close', done));
      dropped.stream.destroy();
      await closed;
    }
    expect((await drain(await take())).received.equals(data)).toBe(true);
    // A refused body frees its share as well.
    expect((await gate(source(randomBytes(3_000_000)), undeclared(data), undefined)).error).toBe(
      'InvalidSignatureException',
    );
    expect((await drain(await take())).received.equals(data)).toBe(true);
  });

  it('holds only so much of the bodies that arrive slowly in memory, and puts the rest on disk', async () => {
    const small = await createSpool({ dir, memoryBytes: 1000, memoryTotalBytes: 2500 });
    const slow = Array.from({ length: 3 }, () => new PassThrough());
    const taken = slow.map((body) => small.take(body, 1e9));
    for (const body of slow) body.write(Buffer.alloc(900, 'x'));
    // Until each of them has been read as far as it goes.
    await expect.poll(() => slow.map((body) => body.readableLength + body.writableLength)).toEqual([0, 0, 0]);
    for (const body of slow) body.end();
    const kinds = await Promise.all(taken.map(async (one) => (await one).kind));
    expect(kinds.sort()).toEqual(['file', 'memory', 'memory']);
    for (const one of taken) {
      const body = await one;
      if (body.kind === 'file') await body.discard();
    }
    // What has arrived is no longer counted.
    expect((await small.take(source(Buffer.alloc(900)), 1e9)).kind).toBe('memory');
  });

  it('removes at start what a killed process left, and nothing else', async () => {
    const own = join(dir, 'left');
    await createSpool({ dir: own });
    await writeFile(join(own, '1-0.body'), 'x');
    await writeFile(join(own, 'kept'), 'x');
    await createSpool({ dir: own });
    expect(await readdir(own)).toEqual(['kept']);
    expect((await stat(own)).mode & 0o777).toBe(0o700);
  });

  it('takes any parts', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 60_000 }), { maxLength: 5 }), async (parts) => {
        const data = Buffer.concat(parts);
        const from = Readable.from(
          parts.map((part) => Buffer.from(part)),
          { objectMode: false },
        );
        expect((await gate(from, undeclared(data), undefined)).received.equals(data)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});

describe('the body of a request', () => {
  it.each([
    ['with its head', (head: string, body: string) => [head + body]],
    ['behind its head', (head: string, body: string) => [head, body]],
    ['in parts', (head: string, body: string) => [head + body.slice(0, 2), body.slice(2)]],
  ])('is read to its end when it comes %s, and the next request on the connection is answered', async (_, cut) => {
    const ended: boolean[] = [];
    let arrived: (() => void) | undefined;
    const answer = async (request: IncomingMessage): Promise<string> => {
      arrived?.();
      request.on('end', () => ended.push(true));
      const data = Buffer.from('four');
      const { received } = await gate(request, declared(data), Number(request.headers['content-length']));
      return received.toString();
    };
    const server = createServer((request, response) => void answer(request).then((text) => response.end(`${text};`)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    let said = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    try {
      for (const count of [1, 2]) {
        const [first = '', ...others] = cut('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n', 'four');
        const begun = new Promise<void>((resolve) => {
          arrived = resolve;
        });
        socket.write(first);
        await begun;
        for (const other of others) socket.write(other);
        await expect.poll(() => said.split('four;').length - 1).toBe(count);
        await expect.poll(() => ended.length).toBe(count);
      }
    } finally {
      socket.destroy();
      server.closeAllConnections();
      server.close();
    }
  });
});
