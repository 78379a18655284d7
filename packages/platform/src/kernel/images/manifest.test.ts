import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ImageError } from './images.ts';
import { parseConfig, parseManifest } from './manifest.ts';
import { MEDIA } from './media-types.ts';

const digest = `sha256:${'b'.repeat(64)}`;
const descriptor = { mediaType: MEDIA.ociConfig, digest, size: 3 };
const bytes = (value: unknown): Buffer => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

describe('parseManifest', () => {
  it('reads images and indexes, OCI and Docker, by their own type, the header’s, or their shape', () => {
    const image = { schemaVersion: 2, config: descriptor, layers: [descriptor] };
    const index = {
      schemaVersion: 2,
      manifests: [{ ...descriptor, platform: { os: 'linux', architecture: 'arm', variant: 'v7' } }],
    };
    expect(parseManifest(bytes(image))).toMatchObject({ kind: 'image', mediaType: MEDIA.ociManifest });
    expect(
      parseManifest(bytes(image), 'application/vnd.docker.distribution.manifest.v2+json; charset=x'),
    ).toMatchObject({
      kind: 'image',
      mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
    });
    expect(parseManifest(bytes(index))).toMatchObject({
      kind: 'index',
      manifests: [{ platform: { architecture: 'arm', variant: 'v7' } }],
    });
  });

  it.each([
    ['no JSON', '{'],
    ['no object', '[]'],
    ['bad UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['schema 1', { schemaVersion: 1, fsLayers: [] }],
    ['another type', { schemaVersion: 2, mediaType: 'text/plain' }],
    ['both at once', { schemaVersion: 2, mediaType: MEDIA.ociManifest, config: descriptor, layers: [], manifests: [] }],
    ['an index with layers', { schemaVersion: 2, mediaType: MEDIA.ociIndex, manifests: [], layers: [] }],
    ['a short digest', { schemaVersion: 2, config: { ...descriptor, digest: 'sha256:1' }, layers: [] }],
    ['a negative size', { schemaVersion: 2, config: descriptor, layers: [{ ...descriptor, size: -1 }] }],
    ['a size that is text', { schemaVersion: 2, config: descriptor, layers: [{ ...descriptor, size: '1' }] }],
    [
      'too many layers',
      { schemaVersion: 2, config: descriptor, layers: Array.from({ length: 501 }, () => descriptor) },
    ],
  ])('refuses %s', (_name, value) => {
    expect(() => parseManifest(value instanceof Buffer ? value : bytes(value))).toThrow(
      expect.objectContaining({ reason: 'invalid' }),
    );
  });

  it('answers or refuses any JSON, and only ever with digests that are digests', () => {
    const part = fc.record(
      {
        mediaType: fc.constantFrom(...MEDIA.manifests, 'x'),
        digest: fc.constantFrom(digest, '../../etc', 'sha256:'),
        size: fc.constantFrom(1, -1, 1e99, '1'),
      },
      { requiredKeys: [] },
    );
    const document = fc.oneof(
      fc.json(),
      fc
        .record(
          {
            schemaVersion: fc.constantFrom(2, 2, 1),
            mediaType: fc.constantFrom(...MEDIA.manifests, undefined),
            config: part,
            layers: fc.array(part),
            manifests: fc.array(part),
          },
          { requiredKeys: ['schemaVersion'] },
        )
        .map((v) => JSON.stringify(v)),
    );
    fc.assert(
      fc.property(document, (text) => {
        try {
          const manifest = parseManifest(bytes(text));
          const parts = manifest.kind === 'image' ? [manifest.config, ...manifest.layers] : manifest.manifests;
          for (const item of parts) expect(item.digest).toBe(digest);
        } catch (error) {
          if (!(error instanceof ImageError)) throw error;
        }
        try {
          parseConfig(bytes(text));
        } catch (error) {
          if (!(error instanceof ImageError)) throw error;
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe('parseConfig', () => {
  it('fills in what an image leaves out', () => {
    expect(parseConfig(bytes({ os: 'linux', architecture: 'amd64' }))).toEqual({
      platform: { os: 'linux', architecture: 'amd64' },
      run: { entrypoint: [], cmd: [], env: [], workingDir: '/', user: '' },
    });
  });

  it.each([
    { os: 'linux' },
    { os: 'linux', architecture: '' },
    { os: 'linux', architecture: 'amd64', config: { Env: 'A=1' } },
    { os: 'linux', architecture: 'amd64', config: { Cmd: [1] } },
    { os: 'linux', architecture: 'amd64', config: { User: 'a\0' } },
  ])('refuses %j', (value) => {
    expect(() => parseConfig(bytes(value))).toThrow(ImageError);
  });
});
