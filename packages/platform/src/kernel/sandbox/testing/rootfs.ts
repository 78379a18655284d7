import { chmod, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PreparedImage } from '../host-stage.ts';

const APPLETS = [
  'sh',
  'ash',
  'cat',
  'chmod',
  'chown',
  'cp',
  'dd',
  'df',
  'echo',
  'env',
  'false',
  'find',
  'grep',
  'head',
  'hostname',
  'httpd',
  'id',
  'ip',
  'kill',
  'ln',
  'ls',
  'mkdir',
  'mknod',
  'mount',
  'nc',
  'nslookup',
  'ping',
  'printf',
  'ps',
  'pwd',
  'readlink',
  'rm',
  'seq',
  'sleep',
  'stat',
  'stty',
  'sync',
  'tail',
  'telnet',
  'test',
  'touch',
  'tr',
  'true',
  'umount',
  'unshare',
  'wc',
  'wget',
  'whoami',
  'yes',
  'udhcpc',
  'chroot',
];

/** Makes a root file system of one static binary (Debian's busybox-static) below `dir`. Rejects when that is not installed. */
export async function busyboxImage(dir: string, config: Partial<PreparedImage['config']> = {}): Promise<PreparedImage> {
  const rootfs = join(dir, 'rootfs');
  for (const name of ['bin', 'etc', 'home/app', 'root', 'tmp', 'srv'])
    await mkdir(join(rootfs, name), { recursive: true, mode: 0o755 });
  await copyFile('/bin/busybox', join(rootfs, 'bin/busybox'));
  await chmod(join(rootfs, 'bin/busybox'), 0o755);
  for (const applet of APPLETS) await symlink('busybox', join(rootfs, 'bin', applet));
  await writeFile(join(rootfs, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\napp:x:1500:1600:app:/home/app:/bin/sh\n');
  await writeFile(join(rootfs, 'etc/group'), 'root:x:0:\napp:x:1600:\nstaff:x:1700:\n');
  await writeFile(join(rootfs, 'etc/shadow'), 'root:secret\n', { mode: 0o600 });
  return {
    digest: 'sha256:test',
    rootfs,
    config: {
      entrypoint: [],
      cmd: ['/bin/sleep', '600'],
      env: ['FROM_IMAGE=yes'],
      workingDir: '',
      user: '',
      ...config,
    },
  };
}
