import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { boundedBody } from './response-body.ts';

it.each<[string, string | undefined, Buffer]>([
  ['breaks', undefined, Buffer.from('x')],
  ['is larger than allowed', undefined, Buffer.alloc(100)],
  ['cannot be decompressed', 'gzip', Buffer.from('no gzip')],
  ['unfolds into too much', 'gzip', gzipSync(Buffer.alloc(100_000))],
])(
  'an answer that %s before anybody reads it ends nothing but itself, and tells who reads it later',
  async (name, encoding, sent) => {
    const source = new PassThrough();
    const body = boundedBody(source, encoding, 50, (error) => error);
    const closed = once(body, 'close').catch(() => undefined);
    source.write(sent);
    if (name === 'breaks') source.destroy(new Error('gone'));
    else source.end();
    // What is wrong with it shows when it flows.
    if (name !== 'breaks') body.resume();
    await closed;
    await expect(body.toArray()).rejects.toThrow();
  },
);
