import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, readFile, stat, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { identify, isAlive } from '../../packages/platform/src/kernel/processes/process-table.ts';
import type { Sandbox } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { groupLimits, groupPids, host, namespaces, type OpenLab, type SandboxLab, shell } from './sandbox-lab.ts';

/** Numbers of x86-64 and of the table that later architectures share. */
const x64 = process.arch === 'x64';
const nr = x64
  ? {
      unshare: 272,
      ptrace: 101,
      keyctl: 250,
      bpf: 321,
      mount: 165,
      setns: 308,
      io_uring_setup: 425,
      userfaultfd: 323,
      init_module: 175,
    }
  : {
      unshare: 97,
      ptrace: 117,
      keyctl: 219,
      bpf: 280,
      mount: 40,
      setns: 268,
      io_uring_setup: 425,
      userfaultfd: 282,
      init_module: 105,
    };

/** Prints `ok` or the error number of one system call; run on the host as the positive control, and inside as the attack. */
const call = (number: number, ...args: string[]): string =>
  `$! = 0; { my @a = (${args.join(', ')}); my $r = syscall(${number}, @a); print $r >= 0 ? "ok" : "errno " . ($! + 0), "\n"; }`;
const socketCall = (family: number, type: number, protocol: number): string =>
  `$! = 0; print socket(my $s, ${family}, ${type}, ${protocol}) ? "ok" : "errno " . ($! + 0), "\\n";`;

export interface KernelAttackOptions {
  /** Whether the sandbox has a user namespace that no other has. */
  ownUserNamespace?: boolean;
  /**
   * Whether the kernel that is attacked is one of the sandbox's own (gVisor), a process of the host. What that one allows inside is its own
   * affair, so the host is looked at: at what this process is and has there.
   */
  ownKernel?: boolean;
}

const unshareUser = call(nr.unshare, '0x10000000');
const sessionKeyring = call(nr.keyctl, '0', '-3', '1');

/** Attempts on the kernel and the host; every provider that isolates withstands them. */
export function kernelAttacks(
  title: string,
  open: OpenLab,
  { ownUserNamespace = true, ownKernel = false }: KernelAttackOptions = {},
): void {
  describe(title, () => {
    let lab: SandboxLab;
    let sandbox: Sandbox;

    const onHost = async (script: string): Promise<string> => (await host('perl', '-e', script)).out.trim();
    const inside = async (script: string): Promise<string> =>
      (await shell(sandbox, `perl -e '${script.replaceAll("'", '"')}'`)).out.trim();

    /** A file of /proc of each of the sandbox's processes on the host; they come and go with those inside. */
    const ofProcesses = async (file: string): Promise<string[]> => {
      const read = (await ofGroup()).map((pid) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => ''));
      return (await Promise.all(read)).filter((text) => text !== '');
    };
    const ofGroup = (among = sandbox): Promise<string[]> => groupPids(lab, among);

    beforeAll(async () => {
      lab = await open();
      sandbox = await lab.create();
    });
    afterAll(() => lab.close());

    it('is nobody, with no capability, no new privileges and a filter', async () => {
      const { out } = await shell(sandbox, 'cat /proc/self/status; id -u; id -g');
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', ...(ownKernel ? [] : ['CapAmb'])])
        expect(out).toMatch(new RegExp(`${set}:\\s+0+\\n`));
      expect(out).toMatch(/\n10001\n10001\n$/);
      // gVisor says neither of them there. The call answers; and whatever reaches the host comes from processes that are held.
      const noNewPrivileges = `print syscall(${x64 ? 157 : 167}, 39, 0, 0, 0, 0), "\\n";`;
      expect(await onHost(noNewPrivileges)).toBe('0');
      expect(await inside(noNewPrivileges)).toBe('1');
      const held = ownKernel ? await ofProcesses('status') : [out];
      expect(held.length).toBeGreaterThan(0);
      for (const status of held) {
        expect(status).toMatch(/NoNewPrivs:\s+1\n/);
        expect(status).toMatch(/Seccomp:\s+2\n/);
      }
    });

    it('has a user, pid, mount, ipc, uts, network and cgroup namespace of its own', async () => {
      if (ownKernel) {
        // Those that it shows inside are made up. It has no cgroup namespace, and no view of control groups that one could hide.
        const ours = await namespaces(['self']);
        const theirs = await namespaces(await ofGroup());
        for (const kind of ['user', 'pid', 'mnt', 'ipc', 'uts', 'net']) {
          expect(theirs.filter((one) => one.startsWith(`${kind}:`)).length).toBeGreaterThan(0);
          expect(theirs).not.toContain(ours.find((one) => one.startsWith(`${kind}:`)));
        }
        for (const pid of await ofGroup()) expect((await host('ls', `/proc/${pid}/root/sys`)).out).toBe('');
        return;
      }
      for (const kind of [...(ownUserNamespace ? ['user'] : []), 'pid', 'mnt', 'ipc', 'uts', 'net', 'cgroup']) {
        const ours = (await host('readlink', `/proc/self/ns/${kind}`)).out.trim();
        const theirs = (await shell(sandbox, `readlink /proc/self/ns/${kind}`)).out.trim();
        expect(ours).toMatch(new RegExp(`^${kind}:`));
        expect(theirs).toMatch(new RegExp(`^${kind}:`));
        expect(theirs).not.toBe(ours);
      }
    });

    // With a kernel of one's own two of them can be had, and are nothing of the host's: see below.
    it.each([
      ...(ownKernel
        ? []
        : [['a user namespace', unshareUser] as const, ["the kernel's keys", sessionKeyring] as const]),
      ['a mount namespace', call(nr.unshare, '0x20000')] as const,
      ['a process filter program', call(nr.bpf, '0', 'pack("L4", 2, 4, 4, 1) . ("\\0" x 60)', '64')] as const,
      ["another memory's faults", call(nr.userfaultfd, '0')] as const,
      ['a kernel ring', call(nr.io_uring_setup, '4', '"\\0" x 120')] as const,
      ['a raw socket', socketCall(2, 3, 1)] as const,
      ['a packet socket', socketCall(17, 3, 768)] as const,
      ['the hypervisor', socketCall(40, 1, 0)] as const,
    ])('cannot get at %s, which the host can', async (_, script) => {
      expect(await onHost(script)).toBe('ok');
      // 97: its kernel does not know that family.
      expect(await inside(script)).toMatch(/^errno (1|13|38|97)$/);
    });

    if (ownKernel)
      it('gets namespaces and keys of its own kernel, and nothing of the host by them', async () => {
        const before = await namespaces(await ofGroup());
        const mounts = new Set(await ofProcesses('mountinfo'));
        const name = `lab-${process.pid}-${Math.random().toString(36).slice(2)}`;
        // As root of a user and a mount namespace of its own, it may mount; the network, which is not of those, stays closed to it.
        const root = `${unshareUser} ${call(nr.unshare, '0x20000')} ${call(nr.mount, `"${name}"`, '"/tmp"', '"tmpfs"', '0', '0')}`;
        expect(await inside(`${root} ${socketCall(2, 3, 1)} ${socketCall(17, 3, 768)}`)).toBe(
          'ok\nok\nok\nerrno 1\nerrno 1',
        );
        const holder = await sandbox.exec([
          '/usr/bin/perl',
          '-e',
          `$| = 1; ${root} system("cat /proc/self/mounts"); sleep 60;`,
        ]);
        let said = '';
        holder.stdout.on('data', (part) => {
          said += part;
        });
        await until(() => said.includes(' /tmp tmpfs'));
        expect(await namespaces(await ofGroup())).toEqual(before);
        expect(new Set(await ofProcesses('mountinfo'))).toEqual(mounts);
        expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(name);
        holder.kill();

        const find = call(nr.keyctl, '10', '-4', '"user"', `"${name}"`, '0');
        const add = `my ($t, $d, $p) = ("user", "${name}", "x"); my $id = syscall(${x64 ? 248 : 217}, $t, $d, $p, 1, -4);`;
        expect(await onHost(`${add} ${find} syscall(${nr.keyctl}, 9, $id, -4);`)).toBe('ok');
        const kept = Number(await onHost(`${add} print $id;`));
        try {
          expect(kept).toBeGreaterThan(0);
          expect(await inside(sessionKeyring)).toBe('ok');
          expect(await inside(find)).toMatch(/^errno \d+$/);
        } finally {
          await onHost(`syscall(${nr.keyctl}, 9, ${kept}, -4);`);
        }
      });

    it('cannot mount, and the host can', async () => {
      const target = join(lab.dir, 'mount-control');
      const umount = call(x64 ? 166 : 39, `"${target}"`, '0');
      const script = `mkdir "${target}"; ${call(nr.mount, '"none"', `"${target}"`, '"tmpfs"', '0', '0')} ${umount}`;
      expect(await onHost(script)).toBe('ok\nok');
      expect(await inside(call(nr.mount, '"none"', '"/tmp"', '"tmpfs"', '0', '0'))).toBe('errno 1');
      expect(
        (await shell(sandbox, 'mount -t tmpfs none /tmp; mount -o remount,rw /sys; mount --bind /proc /tmp')).code,
      ).not.toBe(0);
    });

    it('sees and touches no process but its own', async () => {
      const victim = spawn('/bin/sleep', ['60'], { stdio: 'ignore' });
      try {
        const attach = call(nr.ptrace, '16', `${victim.pid}`, '0', '0');
        expect(await onHost(`${attach} ${call(nr.ptrace, '17', `${victim.pid}`, '0', '0')}`)).toMatch(/^ok\n/);
        expect((await host('test', '-d', `/proc/${victim.pid}`)).code).toBe(0);
        expect(await inside(attach)).toMatch(/^errno (1|3)$/);
        // The numbers inside are its own, so the same one may exist; what it names is not the victim.
        expect((await shell(sandbox, `cat /proc/${victim.pid}/cmdline`)).out).not.toContain('60\0');
        expect(Number((await shell(sandbox, 'ls -d /proc/[0-9]* | wc -l')).out)).toBeLessThan(8);
        // Ends what it runs in.
        const doomed = await lab.create();
        await shell(doomed, `kill -9 ${victim.pid}; kill -9 -1`);
        await doomed.stop();
        expect(victim.exitCode).toBeNull();
        expect((await host('test', '-d', `/proc/${victim.pid}`)).code).toBe(0);
      } finally {
        victim.kill('SIGKILL');
      }
    });

    it('cannot trace its own first process across an exec of ours, nor see the owner outside', async () => {
      const fresh = await lab.create();
      const { out } = await shell(fresh, 'cat /proc/1/cmdline | tr "\\0" " "; ls /proc | grep -c "^[0-9]"');
      // The first process is the init, which starts it.
      expect(out).toMatch(/init -- \/bin\/sleep 600 \n?[2-7]\n$/);
      await fresh.stop();
    });

    it("cannot write the kernel's settings, which exist and which the host could write", async () => {
      const fresh = await lab.create();
      for (const path of [
        '/proc/sys/kernel/core_pattern',
        '/proc/sys/vm/overcommit_memory',
        '/proc/sys/net/ipv4/ip_forward',
        '/proc/sys/kernel/hostname',
      ]) {
        expect((await stat(path)).mode & 0o200, path).toBe(0o200);
        const before = await readFile(path, 'utf8');
        expect((await shell(fresh, `echo 1 > ${path}`)).out, path).toMatch(/denied|read-only|nonexistent/i);
        expect(await readFile(path, 'utf8')).toBe(before);
      }
      await fresh.stop();
    });

    it('cannot write, and mostly not read, /sys', async () => {
      const fresh = await lab.create();
      const mtu = await readFile('/sys/class/net/lo/mtu', 'utf8');
      const { out } = await shell(
        fresh,
        'for f in /sys/fs/cgroup /sys/class/net /sys; do touch $f/x; done; ls /sys/kernel /sys/module /sys/firmware; echo 1 > /sys/class/net/lo/mtu; ls /sys/class/net',
      );
      expect((await host('ls', '/sys/kernel')).out.length).toBeGreaterThan(20);
      expect((await host('ls', '/sys/class/net')).out).toContain('lo');
      expect(await readFile('/sys/class/net/lo/mtu', 'utf8')).toBe(mtu);
      const [tried, seen] = ownKernel
        ? [
            /Read-only|Permission denied|No such file|nonexistent/g,
            /^\/sys\/firmware:\n\n\/sys\/kernel:\n\n\/sys\/module:\n(?!eth0)/,
          ]
        : [
            /Read-only file system|Permission denied/g,
            /^\/sys\/firmware:\n\n\/sys\/kernel:\n\n\/sys\/module:\neth0\nlo\n/,
          ];
      // There is no /sys/class/net on gVisor, so that listing it fails as well.
      expect(out.match(tried)?.length).toBe(ownKernel ? 5 : 4);
      expect(out).toMatch(seen);
      await fresh.stop();
    });

    it('does not see which files of the host are behind loop devices, which the host does', async () => {
      const names = 'find /sys -name "loop[0-9]*" 2>/dev/null | grep -v /module/';
      const read = 'cat $(find /sys -follow -maxdepth 5 -name backing_file 2>/dev/null) /dev/null';
      // Its own disk is one.
      expect((await host('sh', '-c', 'cat /sys/block/loop*/loop/backing_file')).out).toContain(lab.dir);
      expect((await host('sh', '-c', `${names}; true`)).out).toContain('loop0');
      expect((await shell(sandbox, `${names}; ${read}`)).out).toBe('');
    });

    it('cannot change its own limits', async () => {
      const fresh = await lab.create({
        limits: { cpu: 1, memoryBytes: 64 << 20, pids: 21, diskBytes: 32 << 20, openFiles: 256 },
      });
      const limitsOf = async (one: Sandbox): Promise<string> => (ownKernel ? groupLimits(lab, one) : '');
      const limits = await limitsOf(fresh);
      if (ownKernel) expect(limits).toMatch(/pids\.max \d+\n/);
      const { out } = await shell(
        fresh,
        'find /sys/fs/cgroup -name "pids.max" -exec cat {} \\; ; for f in $(find /sys/fs/cgroup -name "*limit_in_bytes" -o -name "*.max" -o -name cgroup.procs); do echo 99999 > $f && echo WROTE $f; done',
      );
      // gVisor shows groups of its own, where its limits are not.
      const shown = ownKernel ? 'max\n' : '21\n';
      expect(out.startsWith(shown)).toBe(true);
      expect(out).not.toContain('WROTE');
      expect((await shell(fresh, 'mkdir /sys/fs/cgroup/pids/x /sys/fs/cgroup/x')).code).not.toBe(0);
      expect((await shell(fresh, 'find /sys/fs/cgroup -name "pids.max" -exec cat {} \\;')).out).toBe(shown);
      expect(await limitsOf(fresh)).toEqual(limits);
      await fresh.stop();
    });

    it('gains nothing from a setuid file of the image', async () => {
      const file = join(lab.image.rootfs, 'bin/rootsh');
      await copyFile('/usr/bin/perl', file);
      await chmod(file, 0o4755);
      // The control: the same bit makes an unprivileged caller root where nothing forbids it.
      await copyFile('/usr/bin/id', join(lab.dir, 'id'));
      await chmod(join(lab.dir, 'id'), 0o4755);
      await chmod(lab.dir, 0o755);
      expect(
        (await host('setpriv', '--reuid=10001', '--regid=10001', '--clear-groups', join(lab.dir, 'id'))).out,
      ).toContain('euid=0(root)');
      const fresh = await lab.create();
      expect((await shell(fresh, 'ls -l /bin/rootsh; /bin/rootsh -e "print $<, $>"; cat /etc/shadow')).out).toMatch(
        /^-rwsr-xr-x[^\n]*\n1000110001cat: can't open '\/etc\/shadow': Permission denied\n$/,
      );
      await fresh.stop();
    });

    it('cannot make or open a device', async () => {
      const node = join(lab.image.rootfs, 'srv/kmsg');
      expect((await host('mknod', '-m', '666', node, 'c', '1', '11')).code).toBe(0);
      expect(
        (await host('setpriv', '--reuid=10001', '--regid=10001', '--clear-groups', 'test', '-r', '/dev/null')).code,
      ).toBe(0);
      const readable = await host('perl', '-e', `open my $f, "<", "${node}" or die; print "open"`);
      expect(readable.out).toBe('open');
      const fresh = await lab.create();
      const { out } = await shell(fresh, 'cat /srv/kmsg; mknod /tmp/n c 1 11; cat /tmp/n; ls /dev');
      // A kernel of its own has no device of that number.
      expect(out).toMatch(
        ownKernel
          ? /can't open '\/srv\/kmsg': No such device or address/
          : /can't open '\/srv\/kmsg': Permission denied/,
      );
      expect(out).toMatch(/mknod: \/tmp\/n: (Operation not permitted|Permission denied)/);
      expect(out).not.toMatch(/^(mem|kmsg|kvm|vda|sda|loop0)$/m);
      if (!ownKernel) expect(out).not.toMatch(/^(fuse|net)$/m);
      else {
        // Those two are its own kernel's: opened, they open nothing on the host.
        const openBoth = 'open my $a, "<", "/dev/fuse" or die; open my $b, "<", "/dev/net/tun" or die;';
        const opened = 'print readlink("/proc/self/fd/" . fileno $a), readlink("/proc/self/fd/" . fileno $b);';
        expect(await onHost(`${openBoth} ${opened}`)).toBe('/dev/fuse/dev/net/tun');
        const holder = await fresh.exec(['/usr/bin/perl', '-e', `$| = 1; ${openBoth} print "open"; sleep 60;`]);
        await once(holder.stdout, 'data');
        const pids = await ofGroup(fresh);
        const links = await host('sh', '-c', `ls -l ${pids.map((pid) => `/proc/${pid}/fd`).join(' ')} 2>/dev/null`);
        expect(links.out).toMatch(/ -> /);
        expect(links.out).not.toMatch(/\/dev\/(fuse|net)/);
        for (const pid of pids) expect((await host('ls', `/proc/${pid}/root/dev`)).out).toBe('');
        holder.kill();
      }
      await fresh.stop();
      await unlink(node);
    });

    it('does not make us write outside the image through its links', async () => {
      const victim = join(lab.dir, 'victim');
      await writeFile(victim, 'untouched', { mode: 0o600 });
      const etc = join(lab.image.rootfs, 'etc');
      await unlink(join(etc, 'resolv.conf')).catch(() => undefined);
      await symlink(victim, join(etc, 'resolv.conf'));
      await symlink(lab.dir, join(lab.image.rootfs, 'work'));
      // The control: on the host the link leads to the victim.
      expect(await readFile(join(etc, 'resolv.conf'), 'utf8')).toBe('untouched');
      const image = { ...lab.image, config: { ...lab.image.config, workingDir: '/work/made' } };
      await expect(lab.create({ image })).rejects.toMatchObject({
        reason: 'failed',
        message: expect.stringContaining('working directory'),
      });
      const fresh = await lab.create();
      expect((await shell(fresh, 'ls -l /etc/resolv.conf')).out).toMatch(/^-rw-r--r--/);
      expect(await readFile(victim, 'utf8')).toBe('untouched');
      expect((await host('ls', lab.dir)).out).not.toContain('made');
      await fresh.stop();
      await unlink(join(etc, 'resolv.conf'));
      await unlink(join(lab.image.rootfs, 'work'));
    });

    it('never changes the image or the next sandbox', async () => {
      const image = { ...lab.image, config: { ...lab.image.config, user: 'app' } };
      const first = await lab.create({ image });
      expect((await shell(first, 'id -u; id -g; echo mine > /tmp/left; echo x >> /etc/passwd; ls /tmp')).out).toMatch(
        /^1500\n1600\nleft\n[^\n]*denied\n$/,
      );
      await first.stop();
      const second = await lab.create({ image });
      expect((await shell(second, 'ls /tmp; cat /etc/hosts')).out).not.toContain('left');
      await second.stop();
      expect((await host('ls', join(lab.image.rootfs, 'tmp'))).out).toBe('');
    });

    it("shows neither the host's name nor its command line nor its environment", async () => {
      const fresh = await lab.create();
      const { out } = await shell(fresh, 'hostname; cat /proc/cmdline; cat /proc/1/environ | tr "\\0" "\\n"');
      expect(out).not.toMatch(new RegExp(`\\b${(await host('hostname')).out.trim()}\\b`));
      const commandLine = (await readFile('/proc/cmdline', 'utf8')).trim();
      expect(commandLine.length).toBeGreaterThan(1);
      expect(out).not.toContain(commandLine);
      expect(out.split('\n')[0]).toMatch(/^lab\d+$/);
      expect(out).not.toMatch(/root=|console=|CNI_/);
      await fresh.stop();
    });

    it('ends with everything it started', async () => {
      const fresh = await lab.create();
      const marker = `${40_000 + (process.pid % 10_000)}.5`;
      await shell(fresh, `sleep ${marker} >/dev/null 2>&1 & (sleep ${marker} >/dev/null 2>&1 &); true`);
      const list = 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "';
      const sleepers = ({ out }: { out: string }): number => out.split(`sleep ${marker} `).length - 1;
      const onThisHost = async (): Promise<number> => sleepers(await host('sh', '-c', list));
      await until(async () => (ownKernel ? sleepers(await shell(fresh, list)) : await onThisHost()) === 2);
      const held = ownKernel ? await ofGroup(fresh) : [];
      expect(held.length > 0).toBe(ownKernel);
      const processes = await Promise.all(held.map((pid) => identify(Number(pid))));
      await fresh.stop();
      expect(await onThisHost()).toBe(0);
      for (const process of processes) expect(process && (await isAlive(process))).toBe(false);
    });
  });
}
