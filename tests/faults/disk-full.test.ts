import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TagResourceCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const run = promisify(execFile);
/** A disk of the test's own, small enough to be filled: room for the database, one base image and its unpacked tree. */
const DISK = '1400M';
let disk: string;
let platform: TestPlatform;
let clients: Clients;

beforeAll(async () => {
  disk = await mkdtemp(join(tmpdir(), 'agentplatform-disk-'));
  await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'tmpfs', disk]);
  platform = await startTestPlatform({
    dataDir: join(disk, 'data'),
    env: { AGENTPLATFORM_SANDBOX_LIMITS_DISK_BYTES: '32MiB' },
  });
  clients = clientsOf(platform);
});

afterAll(async () => {
  clients?.close();
  await platform?.end();
  await run('umount', [disk]);
  await rm(disk, { recursive: true, force: true });
});

describe.skipIf(userInfo().uid !== 0)('a full disk', () => {
  it('gives a clear error, spares live sessions, and needs no hand once there is room', async () => {
    const { arn } = await deployAgent(platform, clients, {
      folder: join(import.meta.dirname, '../support/probe-agent'),
    });
    const live = sessionId('live');
    await invokeJson(clients, arn, live, { do: 'count' });
    const filler = join(disk, 'filler');
    // Fills what is left, to the last block.
    await run('sh', ['-c', `cat /dev/zero > ${filler} 2>/dev/null || true`]);

    const put = await clients.s3
      .send(new PutObjectCommand({ Bucket: 'test-code', Key: 'too-much', Body: Buffer.alloc(8_000_000) }))
      .catch((error: unknown) => error);
    expect(put).toMatchObject({ name: 'InsufficientStorage' });
    expect((await invokeJson(clients, arn, live, { do: 'count' })).count).toBe(2);

    await writeFile(filler, '');
    await clients.s3.send(new PutObjectCommand({ Bucket: 'test-code', Key: 'enough', Body: Buffer.alloc(8_000_000) }));
    await clients.control.send(new TagResourceCommand({ resourceArn: arn, tags: { after: 'yes' } }));
    expect((await invokeJson(clients, arn, sessionId('new'), { do: 'count' })).count).toBe(1);
    expect((await invokeJson(clients, arn, live, { do: 'count' })).count).toBe(3);
  });
});
