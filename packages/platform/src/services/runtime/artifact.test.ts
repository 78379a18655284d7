import { describe, expect, it } from 'vitest';
import { rightsFor } from './artifact.ts';

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
