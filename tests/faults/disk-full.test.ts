import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CreateMemoryCommand, TagResourceCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const run = promisify(execFile);
/** A disk of the test's own, small enough to be filled: room for the database, one base image and its unpacked tree. */
const DISK = '1400M';
/** Longer than the free part of a page of the database, and not to be compressed: its row needs a new page. */
const description = randomBytes(2000).toString('hex');
let disk: string;
let platform: TestPlatform;
let clients: Clients;

beforeAll(async () => {
  disk = await mkdtemp(join(tmpdir(), 'agentplatform-disk-'));
  await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'tmpfs', disk]);
  platform = await startTestPlatform({
    dataDir: join(disk, 'data'),
    // The last block is what it is about; a server that keeps some free stops before it (`low-disk.test.ts`).
    env: { AGENTPLATFORM_SANDBOX_LIMITS_DISK_BYTES: '32MiB', AGENTPLATFORM_DISK_RESERVE_BYTES: '0' },
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
    // Takes what is left, to the last block; again before each call that needs some, for a server at work frees one here and there.
    const fill = () => run('sh', ['-c', `cat /dev/zero >> ${filler} 2>/dev/null || true`]);
    await fill();

    const put = await clients.s3
      .send(new PutObjectCommand({ Bucket: 'test-code', Key: 'too-much', Body: Buffer.alloc(8_000_000) }))
      .catch((error: unknown) => error);
    expect(put).toMatchObject({ name: 'InsufficientStorage' });
    const full = {
      name: 'ServiceUnavailableException',
      message: 'The disk of the server is full. Free space; nothing needs to be restarted.',
      $metadata: expect.objectContaining({ httpStatusCode: 503 }),
    };
    const memory = new CreateMemoryCommand({ name: 'remembered', eventExpiryDuration: 30, description });
    await fill();
    await expect(clients.control.send(memory)).rejects.toMatchObject(full);
    const early = sessionId('early');
    await fill();
    await expect(invokeJson(clients, arn, early, { do: 'count' })).rejects.toMatchObject(full);
    expect((await invokeJson(clients, arn, live, { do: 'count' })).count).toBe(2);

    await writeFile(filler, '');
    // Changes are refused until the audit trail has found that it can be written again.
    const enough = (): Promise<unknown> =>
      clients.s3
        .send(new PutObjectCommand({ Bucket: 'test-code', Key: 'enough', Body: Buffer.alloc(8_000_000) }))
        .then(() => 'stored')
        .catch((error: unknown) => error);
    await expect.poll(enough, { timeout: 60_000 }).toBe('stored');
    await clients.control.send(new TagResourceCommand({ resourceArn: arn, tags: { after: 'yes' } }));
    expect((await clients.control.send(memory)).memory?.name).toBe('remembered');
    expect((await invokeJson(clients, arn, early, { do: 'count' })).count).toBe(1);
    expect((await invokeJson(clients, arn, live, { do: 'count' })).count).toBe(3);
  });
});
