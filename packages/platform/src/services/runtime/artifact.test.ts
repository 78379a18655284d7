import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { ImageError } from '../../kernel/images/index.ts';
import { type ArtifactDeps, resolveArtifact, rightsFor } from './artifact.ts';

const ACCOUNT = '123456789012';
const image = (containerUri: string) => rightsFor({ containerConfiguration: { containerUri } }, ACCOUNT);

describe('what a caller must be allowed to name an artifact', () => {
  it('code: reading the object', () => {
    const code = { s3: { bucket: 'code', prefix: 'app/1.zip' } };
    expect(rightsFor({ codeConfiguration: { code, runtime: 'NODE_22', entryPoint: ['index.mjs'] } }, ACCOUNT)).toEqual([
      { action: 's3:GetObject', resource: 'arn:aws:s3:::code/app/1.zip' },
    ]);
  });

  it.each([
    'platform/team/app',
    'platform/team/app:v1',
    `platform/team/app@sha256:${'a'.repeat(64)}`,
    `platform/team/app:v1@sha256:${'a'.repeat(64)}`,
  ])('%s: pulling it', (uri) => {
    expect(image(uri)).toEqual([
      { action: 'agentplatform:PullImage', resource: 'arn:aws:agentplatform::123456789012:image/team/app' },
    ]);
  });

  it('an image on the server: a right of its own', () => {
    for (const uri of ['oci:/a', 'oci-archive:/a.tar', 'docker-archive:/a.tar'])
      expect(image(uri)).toEqual([{ action: 'agentplatform:UseHostImage', resource: '*' }]);
  });

  it('base images and those of other registries: nothing', () => {
    for (const uri of ['platform/base/node:22', 'ghcr.io/platform/app:1', 'docker.io/library/node', 'node:22'])
      expect(image(uri)).toEqual([]);
  });
});

describe('a zip of code', () => {
  const code = { s3: { bucket: 'code', prefix: 'app.zip' } };
  const artifact = { codeConfiguration: { code, runtime: 'NODE_22' as const, entryPoint: ['index.mjs'] } };

  /** What came of an object of `bytes`, of which its store says that they are `said`. */
  async function attempt(
    bytes: number,
    said: number,
    reserve: ArtifactDeps['images']['reserve'] = (_account, _bytes, work) => work(),
  ) {
    const temporaryDirectory = await mkdtemp(join(tmpdir(), 'artifact-'));
    let read = 0;
    let copied = -1;
    async function* chunks() {
      for (let at = 0; at < bytes; at += 1000) {
        read += 1000;
        yield Buffer.alloc(1000);
      }
    }
    const deps: ArtifactDeps = {
      images: {
        reserve,
        async fromCode() {
          copied = read;
          throw new ImageError('invalid', 'The zip cannot be used.');
        },
      } as unknown as ArtifactDeps['images'],
      readObject: async () => ({ body: Readable.from(chunks()), bytes: said }),
      registryCredentials: async () => undefined,
      temporaryDirectory,
      maxZipBytes: 100_000,
    };
    const error: unknown = await resolveArtifact(artifact, ACCOUNT, deps, new AbortController().signal).catch(
      (thrown: unknown) => thrown,
    );
    const left = await readdir(temporaryDirectory);
    await rm(temporaryDirectory, { recursive: true });
    return { error, read, copied, left };
  }

  it('is copied, and the copy is gone afterwards', async () => {
    expect(await attempt(100_000, 100_000)).toMatchObject({
      error: { code: 'ValidationException' },
      copied: 100_000,
      left: [],
    });
  });

  it('that is too large is not copied at all', async () => {
    const { error, read, left } = await attempt(5_000_000, 5_000_000);
    expect(error).toMatchObject({ code: 'ServiceQuotaExceededException' });
    expect([read, left]).toEqual([0, []]);
  });

  it('for which its account has no room is not copied, and the wire says which setting', async () => {
    const full = new ImageError('quota', 'raise quotas.imageBytesPerAccount');
    const { error, read, left } = await attempt(100_000, 100_000, () => Promise.reject(full));
    expect(error).toMatchObject({
      code: 'ServiceQuotaExceededException',
      wireMessage: expect.stringContaining('quotas.imageBytesPerAccount'),
    });
    expect([read, left]).toEqual([0, []]);
  });

  it('of which a store sends more than it said is copied to the limit at most', async () => {
    const { error, read, copied, left } = await attempt(500_000_000, 10);
    expect(error).toMatchObject({ code: 'ServiceQuotaExceededException' });
    expect(read).toBeLessThan(1_000_000);
    expect([copied, left]).toEqual([-1, []]);
  });
});
