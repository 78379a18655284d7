import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tar } from '../testing/tar.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { unpackInThread } from './unpack-job.ts';

it('ends a thread whose memory is full as an image that is too large, and leaves nothing of it', async () => {
  const dir = await tempDir();
  const path = join(dir, 'layer');
  const into = join(dir, 'tree');
  const above = `${'d'.repeat(240)}/`.repeat(14);
  const names = Array.from({ length: 10_000 }, (_, i) => `${above}${i}/`);
  writeFileSync(path, await tar(names.map((name) => ({ name, type: 'directory' }))));
  const job = { into, layers: [{ path }], spentBytes: 0, spentEntries: 0, imageBytes: 1e9, imageEntries: 1e6 };
  const unpacking = unpackInThread(job, new AbortController().signal, 24);
  await expect(unpacking).rejects.toMatchObject({
    name: 'ImageError',
    reason: 'too-large',
    cause: { code: 'ERR_WORKER_OUT_OF_MEMORY' },
  });
  expect(existsSync(into)).toBe(false);
});

it('looks at the end of a name once, however many slashes are in it', async () => {
  const dir = await tempDir();
  const unpack = async (name: string): Promise<unknown> => {
    const path = join(dir, `layer-${name.length}`);
    writeFileSync(path, await tar([{ name: 'x', pax: { path: name } }]));
    const into = join(dir, `tree-${name.length}`);
    const job = { into, layers: [{ path }], spentBytes: 0, spentEntries: 0, imageBytes: 1e9, imageEntries: 1e6 };
    // Nobody waits so long: a thread that looks from each slash again takes minutes, and is not ended meanwhile.
    return unpackInThread(job, AbortSignal.timeout(30_000));
  };
  // The control: such names are read at all.
  expect(await unpack(`${'/'.repeat(4000)}x`)).toMatchObject({ ok: true });
  expect(await unpack(`${'/'.repeat(200_000)}x`)).toMatchObject({
    ok: false,
    reason: 'invalid',
    message: expect.stringContaining('too long'),
  });
}, 120_000);
