import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CreateMemoryCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DockerDaemon } from '../../packages/platform/src/kernel/sandbox/testing/docker-daemon.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const run = promisify(execFile);
const MIB = 2 ** 20;
/** Each place beside the data directory is a file system of this size in MiB. */
const SIZE = 400;
const RESERVE = ['--disk-reserve-bytes', '100MiB', '--disk-reserve-percent', '50'];

let dir: string;
const disk = (name: string): string => join(dir, name);

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'agentplatform-other-disks-'));
  for (const name of ['cache', 'shared']) {
    await mkdir(disk(name));
    await run('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}M`, 'tmpfs', disk(name)]);
  }
});
afterAll(async () => {
  for (const name of ['cache', 'shared']) await run('umount', [disk(name)]);
  await rm(dir, { recursive: true, force: true });
});

interface Disk {
  of: string;
  low: boolean;
}

async function doctor(
  platform: TestPlatform,
): Promise<{ disk: { low: boolean; others: Disk[] }; providers: Shared[] }> {
  const answer = await signedFetch(platform, { method: 'GET', path: '/_platform/doctor' });
  return (await answer.json()) as { disk: { low: boolean; others: Disk[] }; providers: Shared[] };
}

interface Shared {
  provider: string;
  shared?: string[];
}

describe.skipIf(userInfo().uid !== 0)('a disk beside that of the data directory', () => {
  let daemon: DockerDaemon;
  let platform: TestPlatform;
  let clients: Clients;
  beforeAll(async () => {
    daemon = await DockerDaemon.start();
    platform = await startTestPlatform({
      args: [
        ...['--sandbox', 'docker', '--sandbox-docker-socket', daemon.socketPath],
        ...['--sandbox-shared-mounts', `fsap-0123456789abcdef0=${disk('shared')}`, ...RESERVE],
      ],
      env: { AGENTPLATFORM_CACHE: disk('cache') },
    });
    clients = clientsOf(platform);
  }, 120_000);
  afterAll(async () => {
    clients?.close();
    await platform?.dispose();
    await daemon?.stop();
  });

  const low = async (of: string): Promise<boolean | undefined> =>
    (await doctor(platform)).disk.others.find((one) => one.of.startsWith(of))?.low;
  const make = (name: string) => clients.control.send(new CreateMemoryCommand({ name, eventExpiryDuration: 30 }));
  const full = {
    name: 'ServiceUnavailableException',
    message: expect.stringContaining('The disk of the cache is nearly full'),
  };

  it('stops what is new while it is that of the cache, and says so, and is over by itself', async () => {
    await make('before');
    await writeFile(join(disk('cache'), 'filler'), Buffer.alloc(310 * MIB));
    await expect.poll(() => low('the cache'), { timeout: 10_000 }).toBe(true);
    await expect(make('during')).rejects.toMatchObject(full);
    expect((await doctor(platform)).disk.low).toBe(false);
    const metrics = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
    expect(metrics).toContain('agentplatform_disk_low 1');
    expect(metrics).toMatch(/^agentplatform_other_disks_free_bytes\{disk="the cache"\} \d+$/m);
    await rm(join(disk('cache'), 'filler'));
    await expect.poll(() => low('the cache'), { timeout: 10_000 }).toBe(false);
    await make('after');
  });

  it('is told, and stops nothing, while it is that of a shared place', async () => {
    await writeFile(join(disk('shared'), 'filler'), Buffer.alloc(310 * MIB));
    await expect.poll(() => low('the shared place'), { timeout: 10_000 }).toBe(true);
    expect(platform.log()).toContain('agents that write there run out of space');
    await make('beside');
  });

  it('docker’s one range of ids is told at the start and in doctor', async () => {
    const one = 'a Docker daemon gives all containers the same ids';
    expect(platform.log()).toContain(one);
    const shared = (await doctor(platform)).providers.flatMap((found) =>
      found.shared?.some((what) => what.includes(one)) ? [found.provider] : [],
    );
    expect(shared).toEqual(['docker']);
  });
});
