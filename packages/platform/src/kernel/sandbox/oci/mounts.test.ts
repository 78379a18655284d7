import { chmod, chown, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { runCommand } from '../../processes/index.ts';
import { readMounts } from '../../session-storage/index.ts';
import type { HostMount, PreparedImage } from '../host-stage.ts';
import { busyboxImage } from '../testing/rootfs.ts';
import { runIn } from '../testing/sandbox-contract.ts';
import { smallSpec } from '../testing/small-spec.ts';
import { testStage } from '../testing/test-stage.ts';
import { until } from '../testing/until.ts';
import { OciProvider } from './oci-provider.ts';

describe('mounts of a sandbox', () => {
  let dir: string;
  let image: PreparedImage;
  let provider: OciProvider;
  let serial = 0;
  const warnings: Record<string, unknown>[] = [];

  const inside = async (
    mounts: HostMount[],
    script: string,
    meanwhile?: () => Promise<void>,
    user = '',
  ): Promise<string> => {
    const as = { ...image, config: { ...image.config, user } };
    const sandbox = await provider.create(smallSpec(as, `m${serial++}`, { mounts }));
    try {
      await meanwhile?.();
      const { stdout, stderr } = await runIn(sandbox, ['/bin/sh', '-c', script]);
      return stdout + stderr;
    } finally {
      await sandbox.stop();
    }
  };

  const host = async (...command: [string, ...string[]]): Promise<void> => {
    const { code, stderr } = await runCommand(command);
    expect([code, stderr]).toEqual([0, '']);
  };

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'sandbox-mounts-'));
    image = await busyboxImage(dir);
    provider = new OciProvider({
      dataDir: join(dir, 'data'),
      stage: testStage,
      clock: systemClock,
      log: pino({ level: 'warn' }, { write: (line) => void warnings.push(JSON.parse(line)) }),
      seen: [
        { of: 'what can', path: join(dir, 'shared'), always: false },
        { of: 'what cannot', path: '/proc/sys/kernel/osrelease', always: false },
        { of: 'an export of NFS', path: undefined, always: false },
      ],
    });
    // As the platform does it: before any sandbox, or what stands ready for one, has the host's mounts.
    for (const kind of ['private', 'late']) {
      await mkdir(join(dir, kind));
      await host('mount', '--bind', join(dir, kind), join(dir, kind));
      await host('mount', kind === 'late' ? '--make-shared' : '--make-private', join(dir, kind));
    }
    await mkdir(join(dir, 'shared'));
    await writeFile(join(dir, 'shared/file'), 'from the host\n');
    await chown(join(dir, 'shared'), 10_001, 10_001);
  });
  afterAll(async () => {
    await provider.close();
    for (const { path } of (await readMounts()).toReversed())
      if (path.startsWith(`${dir}/`)) await until(async () => (await runCommand(['umount', path])).code === 0);
    await rm(dir, { recursive: true, force: true });
  });

  it('carry files in both directions when they may be written', async () => {
    const out = await inside(
      [{ source: join(dir, 'shared'), target: '/mnt/deep/er', readOnly: false }],
      'cat /mnt/deep/er/file; echo back > /mnt/deep/er/answer',
    );
    expect(out).toBe('from the host\n');
    expect(await readFile(join(dir, 'shared/answer'), 'utf8')).toBe('back\n');
  });

  it('are seen by each sandbox with the owners that they have, and root of a sandbox is not root there', async () => {
    const open = join(dir, 'open');
    await mkdir(open);
    await chmod(open, 0o777);
    await writeFile(join(open, 'of-root'), '');
    await writeFile(join(open, 'of-anybody'), '');
    await chown(join(open, 'of-anybody'), 1_234_567, 1_234_567);
    const mounts = [{ source: open, target: '/mnt', readOnly: false }];
    const look = 'cd /mnt && echo $(id -u) > by-$(id -u) && stat -c "%n %u" of-* by-*';
    expect(await inside(mounts, look)).toBe('of-anybody 65534\nof-root 65534\nby-10001 10001\n');
    expect(await inside(mounts, look, undefined, 'root')).toBe(
      'of-anybody 65534\nof-root 65534\nby-0 0\nby-10001 10001\n',
    );
    expect(await inside(mounts, 'stat -c %u /mnt/by-0', undefined, 'root')).toBe('0\n');
    expect((await stat(join(open, 'by-10001'))).uid).toBe(10_001);
    expect((await stat(join(open, 'by-0'))).uid).toBeGreaterThan(65_535);
  });

  it('whose owners cannot be shown otherwise are seen by the ids of the host, of which only root is then its own', async () => {
    const source = '/proc/sys/kernel/osrelease';
    const look = 'cat /mnt; cat /proc/self/uid_map; id -u';
    const out = await inside([{ source, target: '/mnt', readOnly: true }], look);
    expect(out).toMatch(/^\d[^\n]*\n\s+0\s+2\d{9}\s+1\n\s+1\s+1\s+65535\n10001\n$/);
    const shares = 'shares with others what the kernel counts by id';
    const told = [{ sandbox: expect.any(String), places: ['/mnt'], msg: expect.stringContaining(shares) }];
    expect(warnings).toMatchObject(told);
    // The control: a file of the same content that can be.
    const plain = await inside([{ source: join(dir, 'shared/file'), target: '/mnt', readOnly: true }], look);
    expect(plain).toMatch(/\n\s+0\s+2\d{9}\s+65536\n10001\n$/);
    expect(warnings).toMatchObject(told);
  });

  it('of which some cannot be shown with other owners are told by name before any sandbox is made', async () => {
    const { shared = [] } = await provider.probe();
    expect(shared.map((what) => /of sandboxes that see (.+?): /.exec(what)?.[1])).toEqual([
      'what cannot',
      'an export of NFS',
    ]);
  });

  it('are never written when they are read-only', async () => {
    const out = await inside(
      [{ source: join(dir, 'shared'), target: '/mnt', readOnly: true }],
      'cat /mnt/file; echo no > /mnt/file',
    );
    expect(out).toMatch(/^from the host\n.*Read-only file system\n$/);
  });

  it('may be a single file', async () => {
    expect(
      await inside(
        [{ source: join(dir, 'shared/file'), target: '/etc/given.conf', readOnly: true }],
        'cat /etc/given.conf',
      ),
    ).toBe('from the host\n');
  });

  it("are refused over the system's own places, and when the source is missing", async () => {
    for (const target of ['/', '/proc', '/proc/sys', '/sys/fs', '/dev', '/dev/x', 'relative', '/a/../b', '/a//b']) {
      await expect(
        provider.create(smallSpec(image, 'x', { mounts: [{ source: dir, target, readOnly: true }] })),
        target,
      ).rejects.toMatchObject({ reason: 'refused' });
    }
    await expect(
      provider.create(smallSpec(image, 'x', { mounts: [{ source: join(dir, 'none'), target: '/x', readOnly: true }] })),
    ).rejects.toMatchObject({ reason: 'refused' });
  });

  it("show what the host mounts below them later, when asked to and when the host's mount is a shared one", async () => {
    const late = (source: string) => [{ source, target: '/late', readOnly: false, propagate: true }];
    await expect(provider.create(smallSpec(image, 'x', { mounts: late(join(dir, 'private')) }))).rejects.toMatchObject({
      reason: 'refused',
      message: expect.stringContaining('--make-shared'),
    });
    const source = join(dir, 'late');
    const out = await inside(late(source), 'cat /late/sub/new', async () => {
      await mkdir(join(source, 'sub'));
      await host('mount', '-t', 'tmpfs', 'late', join(source, 'sub'));
      await writeFile(join(source, 'sub/new'), 'arrived\n');
    });
    expect(out).toBe('arrived\n');
  });
});
