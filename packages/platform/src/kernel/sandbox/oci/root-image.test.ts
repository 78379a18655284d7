import { createHash } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { runCommand } from '../../processes/index.ts';
import type { PreparedImage } from '../host-stage.ts';
import type { Sandbox } from '../sandbox.ts';
import { busyboxImage } from '../testing/rootfs.ts';
import { runIn } from '../testing/sandbox-contract.ts';
import { smallSpec } from '../testing/small-spec.ts';
import { testStage } from '../testing/test-stage.ts';
import { OciProvider } from './oci-provider.ts';

describe('what belongs to the root of an image', () => {
  let dir: string;
  let image: PreparedImage;
  let provider: OciProvider;
  let serial = 0;

  const as = (user: string, from = image, workingDir = ''): PreparedImage => ({
    ...from,
    config: { ...from.config, user, workingDir },
  });
  const create = (of: PreparedImage): Promise<Sandbox> => provider.create(smallSpec(of, `r${serial++}`));
  const shell = async (sandbox: Sandbox, script: string): Promise<string> => {
    const { stdout, stderr } = await runIn(sandbox, ['/bin/sh', '-c', script]);
    return stdout + stderr;
  };
  const inside = async (of: PreparedImage, script: string): Promise<string> => {
    const sandbox = await create(of);
    try {
      return await shell(sandbox, script);
    } finally {
      await sandbox.stop();
    }
  };
  const host = async (...command: [string, ...string[]]): Promise<string> => {
    const { code, stdout, stderr } = await runCommand(command);
    expect([code, stderr]).toEqual([0, '']);
    return stdout;
  };
  /** Everything about the image on the host but when it was last read. */
  const state = async (): Promise<string> => {
    const entries = await host('find', image.rootfs, '-printf', '%P %y %i %n %m %U:%G %s %T@ %C@ %l\n');
    const contents = await host('find', image.rootfs, '-type', 'f', '-exec', 'sha256sum', '{}', '+');
    return `${entries}${createHash('sha256').update(contents).digest('hex')}`;
  };
  const namesImage = (table: string): string[] => table.split('\n').filter((line) => line.includes('sandbox-root,a:b'));
  /** How the image's directory is mounted, by any process of this machine. */
  const mounts = async (): Promise<string[]> => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const tables = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '')));
    return tables.flatMap(namesImage);
  };

  beforeAll(async () => {
    // Overlays give a meaning to commas and colons.
    dir = await mkdtemp(join(tmpdir(), 'sandbox-root,a:b '));
    image = await busyboxImage(dir);
    for (const name of ['app', 'opt', 'usr/local', 'var/log'])
      await mkdir(join(image.rootfs, name), { recursive: true, mode: 0o755 });
    for (const name of ['keep', 'replace', 'remove']) await writeFile(join(image.rootfs, 'app', name), `${name}\n`);
    await writeFile(join(image.rootfs, 'home/app/own'), 'own\n', { mode: 0o644 });
    for (const name of ['home/app', 'home/app/own']) await chown(join(image.rootfs, name), 1500, 1600);
    provider = new OciProvider({
      dataDir: join(dir, 'data'),
      stage: testStage,
      clock: systemClock,
      log: pino({ level: 'silent' }),
    });
  });
  afterAll(async () => {
    await provider.sweep(new Set());
    await provider.close();
    await rm(dir, { recursive: true, force: true });
  });

  it.each(['root', '0', '0:0', 'root:root'])('is its own inside, to be read and changed (USER %s)', async (user) => {
    const before = await state();
    const script = [
      'set -e',
      'for d in / /root /app /opt /usr/local /var/log /home /bin /etc; do stat -c %u:%g $d; echo new > $d/new; done',
      'echo changed > /app/replace; rm /app/remove; mv /app/keep /opt/kept; mkdir /app/d; rm -r /srv; rm /bin/yes',
      'chmod 700 /root; chown 0:0 /app/new /app/replace; ln -s new /root/link',
      'cat /app/replace /opt/kept /etc/shadow; ls /app; stat -c "%u:%g %a" /app/replace /app/new /root /etc/hosts; touch /etc/hosts',
    ].join('\n');
    expect(await inside(as(user), script)).toBe(
      `${'0:0\n'.repeat(9)}changed\nkeep\nroot:secret\nd\nnew\nreplace\n0:0 644\n0:0 644\n0:0 700\n0:0 644\n`,
    );
    expect(await state()).toBe(before);
  });

  it('has its home and its working directory as in the image, and as its own where they are made', async () => {
    const script = 'echo $HOME; pwd; echo x > ~/x; echo x > x; stat -c %u:%g . ..';
    expect(await inside(as('root', image, '/app'), script)).toBe('/root\n/app\n0:0\n0:0\n');
    expect(await inside(as('root', image, '/work/made'), script)).toBe('/root\n/work/made\n0:0\n0:0\n');
  });

  it('is not for others, whoever they are, and theirs is theirs', async () => {
    const script =
      'for f in /new /app/new /app/keep /etc/new; do echo x > $f; done; cat /etc/shadow; stat -c %u:%g /app/keep; id -u';
    for (const [user, id] of [
      ['', 10_001],
      ['app', 1500],
    ] as const) {
      const said = await inside(as(user), script);
      expect(said.startsWith(`0:0\n${id}\n`)).toBe(true);
      expect(said.match(/Permission denied/g)).toHaveLength(5);
    }
    expect(await inside(as('', image, '/work/made'), 'pwd; echo x > x; stat -c %u:%g .')).toBe(
      '/work/made\n10001:10001\n',
    );
    expect(await inside(as('app'), 'echo more >> ~/own; cat ~/own; stat -c %u:%g ~ ~/own')).toBe(
      'own\nmore\n1500:1600\n1500:1600\n',
    );
    // Root has no capability, so that it is not above the owners of files.
    expect(
      await inside(as('root'), 'stat -c %u:%g /home/app/own; echo x > /home/app/own; chown 1500 /app/keep'),
    ).toMatch(/^1500:1600\n[^\n]*denied\n[^\n]*not permitted\n$/);
  });

  it("is seen by no other sandbox of the image, and is another number of the host's each time", async () => {
    const [one, other] = [await create(as('root')), await create(as('root'))];
    expect(await shell(one, 'echo mine > /app/keep; echo mine > /app/mine; rm /app/remove; chmod 777 /opt')).toBe('');
    const look = 'cat /app/keep; ls /app; stat -c %a /opt';
    const untouched = 'keep\nkeep\nremove\nreplace\n755\n';
    expect(await shell(other, look)).toBe(untouched);
    expect(await inside(as(''), look)).toBe(untouched);
    const map = 'cat /proc/self/uid_map';
    expect(await shell(one, map)).toMatch(/^\s+0\s+2\d{9}\s+65536\n$/);
    expect(await shell(one, map)).not.toBe(await shell(other, map));
    await Promise.all([one.stop(), other.stop()]);
  });

  it('gives no one its power by set-user-id', async () => {
    const file = join(image.rootfs, 'bin/busybox-root');
    await writeFile(file, await readFile('/bin/busybox'));
    await chmod(file, 0o6755);
    const name = 'stat -c "%u %a" /bin/busybox-root; /bin/busybox-root id; grep " / / " /proc/self/mountinfo';
    expect(await inside(as('app'), name)).toMatch(/^0 6755\nuid=1500\(app\) gid=1600\(app\)\n[^\n]* rw,nosuid,nodev/);
    await rm(file);
  });

  it('is mounted for the owner of the sandbox only, read-only, and not after its end', async () => {
    const sandbox = await create(as('root'));
    const lines = await mounts();
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/ ro,\S*idmapped/);
    expect(namesImage(await readFile('/proc/self/mountinfo', 'utf8'))).toEqual([]);
    expect(await shell(sandbox, 'grep -c idmapped /proc/self/mountinfo')).toBe('0\n');
    await sandbox.stop();
    expect(await mounts()).toEqual([]);
  });

  it("is nobody's where the file system of the image knows no other owners, and the sandbox starts", async () => {
    const other = await mkdtemp(join(tmpdir(), 'sandbox-stacked-'));
    const rootfs = join(other, 'root');
    for (const name of ['upper', 'work', 'root']) await mkdir(join(other, name));
    await host('cp', '-a', image.rootfs, join(other, 'lower'));
    // An overlay, which is what a container's own files are on, cannot be mapped.
    const layers = `lowerdir=${other}/lower,upperdir=${other}/upper,workdir=${other}/work`;
    await host('mount', '-t', 'overlay', '-o', layers, 'overlay', rootfs);
    // Of its own, so that nothing stands ready that was made before the mount.
    const late = new OciProvider({
      dataDir: join(other, 'data'),
      stage: testStage,
      clock: systemClock,
      log: pino({ level: 'silent' }),
    });
    try {
      const script = 'stat -c %u /app/keep; echo x > /tmp/x; cat /tmp/x; echo x > /app/x';
      const sandbox = await late.create(smallSpec(as('root', { ...image, rootfs }), 'stacked'));
      expect(await shell(sandbox, script)).toMatch(/^65534\nx\n[^\n]*denied\n$/);
      await sandbox.stop();
    } finally {
      await late.sweep(new Set());
      await late.close();
      await host('umount', rootfs);
      await rm(other, { recursive: true, force: true });
    }
  });
});
