import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { testImages } from '../../kernel/images/testing/images.ts';
import { tempDir } from '../../kernel/images/testing/temp-dir.ts';
import { RegistryUsage } from './usage.ts';

const ACCOUNT = '111111111111';

describe('what an account keeps in its repositories', () => {
  it('is bounded in bytes, manifests among them, and what is deleted gives room', async () => {
    const { store } = await testImages(await tempDir());
    const clock = new FakeClock();
    const usage = new RegistryUsage(store, clock, { accountBytes: 1000, accountParts: 100 });
    const keep = async (text: string): Promise<string> => {
      const { digest, size } = await store.blobs.putBytes(Buffer.from(text));
      await usage.take(ACCOUNT, { bytes: size, parts: 1 });
      await store.repositories.linkManifest(ACCOUNT, 'app', digest, 'x/y');
      return digest;
    };
    const first = await keep('a'.repeat(600));
    await keep('b'.repeat(400));
    await expect(keep('c')).rejects.toMatchObject({ code: 'DENIED', message: expect.stringContaining('1000 bytes') });
    await usage.take('222222222222', { bytes: 1000, parts: 1 });
    await store.blobs.remove(first);
    await store.repositories.forget(new Set([first]));
    await clock.advance(5_000);
    await keep('c');
  });

  it('is bounded in number, in all repositories together', async () => {
    const { store } = await testImages(await tempDir());
    const { repositories } = store;
    const digest = `sha256:${'0'.repeat(64)}`;
    for (const name of ['one', 'two', 'three/four']) {
      await repositories.linkBlob(ACCOUNT, name, digest);
      await repositories.linkManifest(ACCOUNT, name, digest, 'x/y');
      await repositories.setTag(ACCOUNT, name, 'latest', digest);
    }
    const usage = new RegistryUsage(store, new FakeClock(), { accountBytes: 1000, accountParts: 10 });
    await usage.take(ACCOUNT, { bytes: 0, parts: 1 });
    await expect(usage.take(ACCOUNT, { bytes: 0, parts: 1 })).rejects.toMatchObject({ code: 'DENIED' });
  });
});
