import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { CreateAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { pack } from 'tar-stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { RegistryUser } from '../support/push-image.ts';

// Images and zips that an account sends are a stranger's: what is wrong with them is told to him, and costs nobody anything.

const MAX_IMAGE = 8 * 2 ** 20;
const MAX_ZIP = 100_000;

let platform: TestPlatform;
let clients: Clients;
let registry: RegistryUser;

beforeAll(async () => {
  const args = ['--images-max-image-bytes', String(MAX_IMAGE), '--images-max-zip-bytes', String(MAX_ZIP)];
  platform = await startTestPlatform({ args });
  clients = clientsOf(platform);
  registry = new RegistryUser(platform);
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

type Artifact = NonNullable<ConstructorParameters<typeof CreateAgentRuntimeCommand>[0]['agentRuntimeArtifact']>;

const create = (agentRuntimeName: string, agentRuntimeArtifact: Artifact) =>
  clients.control.send(
    new CreateAgentRuntimeCommand({
      agentRuntimeName,
      roleArn: platform.ready.defaultRoleArn,
      networkConfiguration: { networkMode: 'PUBLIC' },
      agentRuntimeArtifact,
    }),
  );

async function tar(content: Buffer): Promise<Buffer> {
  const packer = pack();
  packer.entry({ name: 'x', mode: 0o755 }, content);
  packer.finalize();
  return buffer(packer);
}

const leftovers = () => readdir(join(platform.dataDir, 'images/tmp'));

describe('an image whose layer', () => {
  it('is as it should be is taken', async () => {
    await registry.pushLayer('good', 'v1', gzipSync(await tar(Buffer.from('x'))));
    const { status } = await create('good', { containerConfiguration: { containerUri: 'platform/good:v1' } });
    expect(status).toBe('READY');
  });

  it.each<[string, string, () => Promise<Buffer>]>([
    ['is_no_tar', 'ValidationException', async () => randomBytes(5000)],
    ['ends_early', 'ValidationException', async () => (await tar(randomBytes(50_000))).subarray(0, 20_000)],
    ['is_cut_gzip', 'ValidationException', async () => gzipSync(await tar(randomBytes(50_000))).subarray(0, 20_000)],
    ['is_half_zstd', 'ValidationException', async () => zstdCompressSync(randomBytes(50_000)).subarray(0, 20_000)],
    ['is_a_bomb', 'ServiceQuotaExceededException', async () => gzipSync(await tar(Buffer.alloc(2 * MAX_IMAGE)))],
  ])('%s is refused with what is wrong and where', async (name, code, make) => {
    const digest = await registry.pushLayer(name, 'v1', await make());
    const before = platform.log().length;
    const uri = `platform/${name}:v1`;
    const error: unknown = await create(name, { containerConfiguration: { containerUri: uri } }).catch(
      (e: unknown) => e,
    );
    expect(error).toMatchObject({ name: code });
    expect(String(error)).toContain('agentRuntimeArtifact.containerConfiguration.containerUri');
    if (code === 'ValidationException') expect(String(error)).toContain(digest);
    expect(String(error)).not.toContain(platform.dataDir);
    expect(platform.log().slice(before)).not.toContain('inside the platform');
    expect(await leftovers()).toEqual([]);
  });
});

describe('a zip of code', () => {
  it('is measured before it is copied', async () => {
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'zips' }));
    const artifact = (prefix: string): Artifact => ({
      codeConfiguration: { code: { s3: { bucket: 'zips', prefix } }, runtime: 'NODE_22', entryPoint: ['index.mjs'] },
    });
    for (const [key, bytes, code] of [
      ['small.zip', MAX_ZIP, 'ValidationException'],
      ['large.zip', MAX_ZIP + 1, 'ServiceQuotaExceededException'],
    ] as const) {
      await clients.s3.send(new PutObjectCommand({ Bucket: 'zips', Key: key, Body: Buffer.alloc(bytes) }));
      await expect(create('zipped', artifact(key))).rejects.toMatchObject({ name: code });
    }
    expect(await readdir(join(platform.dataDir, 'tmp'))).toEqual([]);
  });
});
