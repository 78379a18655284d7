import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { systemClock } from '../clock.ts';
import { openDirectoryStore } from './directory-store.ts';
import { objectReader } from './object-reader.ts';

test('an account reads its own buckets, and cannot tell others from nothing', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'agentplatform-reader-'));
  try {
    const store = await openDirectoryStore({ directory, clock: systemClock });
    await store.createBucket('mine', '1');
    const body = async function* () {
      yield Buffer.from('zip');
    };
    await store.put({ bucket: 'mine', key: 'code.zip' }, body());
    const read = objectReader(store);
    const signal = new AbortController().signal;
    const found = await read('1', { bucket: 'mine', key: 'code.zip' }, signal);
    expect(found && [await text(found.body), found.bytes]).toEqual(['zip', 3]);
    for (const [account, location] of [
      ['2', { bucket: 'mine', key: 'code.zip' }],
      ['1', { bucket: 'mine', key: 'none' }],
      ['1', { bucket: 'mine', key: '' }],
      ['1', { bucket: 'none', key: 'code.zip' }],
      ['1', { bucket: '../mine', key: 'code.zip' }],
      ['1', { bucket: 'mine', key: 'code.zip', versionId: 'v1' }],
    ] as const) {
      expect(await read(account, location, signal)).toBeUndefined();
    }
    const aborted = await read('1', { bucket: 'mine', key: 'code.zip' }, AbortSignal.abort(new Error('gone')));
    expect(aborted).toBeDefined();
    if (aborted) await expect(text(aborted.body)).rejects.toThrow();
  } finally {
    await rm(directory, { recursive: true });
  }
});
