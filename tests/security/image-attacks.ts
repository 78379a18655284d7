import { chmod, cp, mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PreparedImage } from '../../packages/platform/src/kernel/sandbox/host-stage.ts';
import type { Sandbox } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import type { SpecChange } from '../../packages/platform/src/kernel/sandbox/testing/small-spec.ts';
import { host, type OpenLab, type SandboxLab, shell } from './sandbox-lab.ts';

/** Attempts of who writes an image on the host that runs it; every provider that isolates withstands them. */
export function imageAttacks(title: string, open: OpenLab): void {
  describe(title, () => {
    let lab: SandboxLab;
    /** A directory of the host that anybody may write to, beside the sandboxes. */
    let outside: string;
    let made = 0;

    /** A copy of the lab's image, changed. */
    const image = async (
      change: (rootfs: string) => Promise<unknown>,
      config: Partial<PreparedImage['config']> = {},
    ): Promise<PreparedImage> => {
      made += 1;
      const rootfs = join(lab.dir, `image-${made}`);
      await cp(lab.image.rootfs, rootfs, { recursive: true, verbatimSymlinks: true });
      await change(rootfs);
      return { ...lab.image, digest: `sha256:${made}`, rootfs, config: { ...lab.image.config, ...config } };
    };
    /** What came of a sandbox of it: what the script said, or that it was refused. */
    const tried = async (spec: SpecChange, script: string): Promise<string> => {
      let sandbox: Sandbox;
      try {
        sandbox = await lab.create(spec);
      } catch (error) {
        return `refused: ${error instanceof Error ? error.message : error}`;
      }
      try {
        return (await shell(sandbox, script)).out;
      } catch (error) {
        return error instanceof Error ? `ended: ${error.message}` : 'ended';
      } finally {
        await sandbox.stop();
      }
    };
    /** Everything there, with owners, modes and contents. */
    const state = async (): Promise<string> =>
      (await host('sh', '-c', `cd ${outside} && find . -printf '%p %u %g %m %s %l\\n' | sort; cat secret passwd`)).out;

    beforeAll(async () => {
      lab = await open();
      outside = join(await realpath(lab.dir), 'outside');
      await mkdir(outside);
      await writeFile(join(outside, 'secret'), 'host-secret');
      await writeFile(join(outside, 'passwd'), 'planted:x:4321:4321:planted:/planted-home:/bin/sh\n');
      await chmod(outside, 0o777);
      await chmod(lab.dir, 0o755);
    });
    afterAll(() => lab?.close());

    it('no way out by the directory that it begins in', async () => {
      const up = '../'.repeat(12);
      // The control: from a directory of the host that is open so many steps lead to it.
      const inOpen = ['-c', `exec 7< /proc/self && cd /proc/self/fd/7 && cat ${up}${outside}/secret`];
      expect((await host('bash', ...inOpen)).out).toBe('host-secret');
      const before = await state();
      const places = Array.from({ length: 8 }, (_, i) => `/proc/self/fd/${i + 3}`);
      for (const workingDir of [...places, '/proc/1/root', '/proc/self/cwd', `/${up}${outside}`, '/dev/fd/7/../..']) {
        const own = await image(async () => undefined, { workingDir });
        const look = `cat ${up}${outside}/secret ./secret 2>/dev/null; [ "$(ls ${up})" = "$(ls /)" ] && echo own`;
        const said = await tried({ image: own }, look);
        // Refused by the platform, or by the runtime for each command.
        expect(said, workingDir).toMatch(/^(own\n$|refused|OCI runtime exec failed)/);
        await rm(own.rootfs, { recursive: true });
      }
      expect(await state()).toBe(before);
    });

    it('no link of it is followed on the host, whatever directory the link stands for', async () => {
      const links = [outside, `${'../'.repeat(12)}${outside.slice(1)}`];
      const before = await state();
      for (const to of links)
        for (const name of ['etc', 'tmp', 'srv', 'home', 'mnt', 'dev', 'proc', 'sys', 'run']) {
          const own = await image(
            async (rootfs) => {
              await rm(join(rootfs, name), { recursive: true, force: true });
              await symlink(to, join(rootfs, name));
              // The control: what does not look follows it.
              expect((await host('cat', join(rootfs, name, 'secret'))).out).toBe('host-secret');
            },
            { workingDir: `/${name}/made/here` },
          );
          const mounts = [{ source: lab.image.rootfs, target: `/${name}/mounted`, readOnly: true }];
          expect(
            await tried({ image: own, mounts }, `cat /${name}/secret /${name}/passwd; echo x > /${name}/new; pwd`),
            `${name} ${to}`,
          ).not.toMatch(/host-secret|planted/);
          expect(await state(), `${name} ${to}`).toBe(before);
          await rm(own.rootfs, { recursive: true });
        }
    });

    it('no account of the host is looked up in place of one of its own', async () => {
      const linked = await image(
        async (rootfs) => {
          await rm(join(rootfs, 'etc'), { recursive: true });
          await symlink(outside, join(rootfs, 'etc'));
        },
        { user: 'planted' },
      );
      expect((await host('grep', '-c', 'planted', join(linked.rootfs, 'etc/passwd'))).out).toBe('1\n');
      expect(await tried({ image: linked }, 'id -u; echo $HOME')).toContain(
        'names the user planted, which is not in its /etc/passwd',
      );
      for (const user of [
        '-1',
        '4294967295',
        '4294967296',
        '65536',
        '0x0',
        '1e3',
        ' 0',
        '0:0:0',
        ':0',
        'root:',
        '../etc:0',
      ]) {
        const said = await tried(
          { image: { ...lab.image, config: { ...lab.image.config, user } } },
          'cat /proc/self/uid_map; id -u',
        );
        expect(said.startsWith('refused') || !/^ *0 +0 +\d{9}/m.test(said), `${user}: ${said}`).toBe(true);
      }
    });
  });
}
