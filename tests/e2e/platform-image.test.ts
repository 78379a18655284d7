import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DockerDaemon } from '../../packages/platform/src/kernel/sandbox/testing/docker-daemon.ts';
import { PRIVILEGES } from '../../scripts/image-privileges.mjs';

const ENTRYPOINT = resolve(import.meta.dirname, '../../images/platform/entrypoint.sh');
const IMAGE = 'stand-in';
/** In the place of the platform, which the entry point starts by tini: what the platform does to make a sandbox. */
const TINI = `#!/bin/sh
for group in memory pids cpu .; do
  if [ -e "/sys/fs/cgroup/$group/cgroup.procs" ]; then mkdir "/sys/fs/cgroup/$group/sandbox" && echo control group; fi
done
unshare -m -p -f -n -i -u sh -c 'mount -t proc proc /proc && mount -t tmpfs disk /tmp && echo namespaces'
unshare -U -r -m -p -f sh -c 'mount -t proc proc /proc && echo user namespace'
echo 1 > /proc/sys/net/ipv4/ip_forward && echo forwarding
(exec 3<>/dev/fuse) && echo fuse
`;
const run = promisify(execFile);
const able = process.getuid?.() === 0 && (await run('dockerd', ['--version']).catch(() => undefined)) !== undefined;

let daemon: DockerDaemon;
let folder: string;
beforeAll(async () => {
  if (!able) return;
  daemon = await DockerDaemon.start();
  folder = await mkdtemp(join(tmpdir(), 'platform-image-'));
  for (const name of ['bin', 'proc', 'sys', 'dev', 'tmp']) await mkdir(join(folder, 'root', name), { recursive: true });
  await copyFile('/bin/busybox', join(folder, 'root/bin/busybox'));
  for (const name of ['sh', 'awk', 'mount', 'mkdir', 'mknod', 'unshare'])
    await symlink('busybox', join(folder, 'root/bin', name));
  await writeFile(join(folder, 'root/bin/tini'), TINI, { mode: 0o755 });
  await run('tar', ['-C', join(folder, 'root'), '-cf', join(folder, 'root.tar'), '.']);
  await docker('import', join(folder, 'root.tar'), IMAGE);
});
afterAll(async () => {
  await daemon?.stop();
  if (folder) await rm(folder, { recursive: true, force: true });
});

async function docker(...args: string[]): Promise<string> {
  const { stdout } = await run('docker', args, { env: { ...process.env, DOCKER_HOST: `unix://${daemon.socketPath}` } });
  return stdout;
}

/** What the stand-in for the platform could do in a container with these flags. */
const started = (...flags: string[]): Promise<string> =>
  docker(
    ...['run', '--rm', '--network', 'none', ...flags, '--volume', `${ENTRYPOINT}:/entrypoint.sh:ro`],
    ...[IMAGE, 'sh', '/entrypoint.sh'],
  );

/** Whether this machine grants every capability that its kernel knows. */
async function grantsAll(): Promise<boolean> {
  const last = Number(await readFile('/proc/sys/kernel/cap_last_cap', 'utf8'));
  const [, bound = '0'] = /^CapBnd:\s*(\S+)$/m.exec(await readFile('/proc/self/status', 'utf8')) ?? [];
  return BigInt(`0x${bound}`) === 2n ** BigInt(last + 1) - 1n;
}

describe.skipIf(!able)('the container of npm run image', () => {
  it('may do what making sandboxes takes, which a container of no privileges may not', async () => {
    const said = (await started(...PRIVILEGES)).trim().split('\n');
    expect(new Set(said)).toEqual(new Set(['control group', 'namespaces', 'user namespace', 'forwarding', 'fuse']));
    await expect(started()).rejects.toThrow(/permission denied/i);
  });

  it('is no privileged one, which Docker refuses where the machine withholds a capability', async () => {
    expect(PRIVILEGES).not.toContain('--privileged');
    if (await grantsAll()) expect(await started('--privileged')).toContain('namespaces');
    else await expect(started('--privileged')).rejects.toThrow(/unable to apply caps/);
  });
});
