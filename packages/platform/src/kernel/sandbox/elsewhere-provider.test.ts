import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PreparedImage } from './host-stage.ts';
import type { Volume } from './sandbox.ts';
import { ElsewhereProvider } from './testing/elsewhere-provider.ts';
import { busyboxImage } from './testing/rootfs.ts';
import { runIn, sandboxContract } from './testing/sandbox-contract.ts';
import { sharedVolume } from './testing/shared-volume.ts';
import { smallSpec } from './testing/small-spec.ts';
import { testStage } from './testing/test-stage.ts';

process.env.SECRET_OF_SERVER = 'must not be seen';

/** The platform's directory, and where the provider has what is in it. */
let platform: string;
let elsewhere: string;
beforeAll(async () => {
  platform = await mkdtemp(join(tmpdir(), 'platform-'));
  elsewhere = await mkdtemp(join(tmpdir(), 'elsewhere-'));
});
afterAll(async () => {
  for (const dir of [platform, elsewhere]) await rm(dir, { recursive: true });
});

const moved = (path: string): string => path.replace(platform, elsewhere);
const open = (dataDir: string, { image = moved, mount = moved } = {}): ElsewhereProvider =>
  new ElsewhereProvider({
    platform,
    elsewhere,
    dataDir,
    images: [...testStage.images].map(([digest, one]) => [digest, { ...one, rootfs: image(one.rootfs) }]),
    mounts: [...testStage.mounts].map(([name, one]) => [name, { ...one, source: mount(one.source) }]),
  });

sandboxContract('oci in another mount namespace', {
  provider: (dataDir) => open(dataDir),
  image: () => busyboxImage(join(platform, 'contract')),
  volume: () => sharedVolume(join(platform, 'contract')),
});

describe('a path of the platform', () => {
  let dataDir: string;
  let image: PreparedImage;
  let volume: Volume;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'elsewhere-data-'));
    image = await busyboxImage(join(platform, 'path'));
    testStage.nameImage(image);
    volume = await sharedVolume(join(platform, 'path'));
  });
  afterAll(() => rm(dataDir, { recursive: true }));

  const told = async (paths: Parameters<typeof open>[1], volumes: Volume[] = []): Promise<string> => {
    const provider = open(dataDir, paths);
    try {
      const spec = smallSpec(image, 'told', { command: ['/bin/sleep', '60'], volumes });
      const sandbox = await provider.create(spec).catch((error: Error) => error);
      if (sandbox instanceof Error) return sandbox.message;
      const { stdout } = await runIn(sandbox, ['/bin/sh', '-c', 'cat /mnt/shared/greeting; ls /bin/busybox']);
      await sandbox.stop();
      return stdout;
    } finally {
      await provider.close();
    }
  };
  const same = (path: string): string => path;

  it('is of no use to a provider elsewhere, whose own paths are', async () => {
    expect(await told({}, [volume])).toBe('hello\n/bin/busybox\n');
    expect(await told({ image: same })).toContain(image.rootfs);
    expect(await told({ mount: same }, [volume])).toContain(
      `mount source ${join(platform, 'path/shared')} does not exist`,
    );
    // The control: to the platform they are there.
    expect(await readdir(image.rootfs)).toContain('bin');
    expect(await readdir(join(platform, 'path/shared'))).toContain('greeting');
  });
});
