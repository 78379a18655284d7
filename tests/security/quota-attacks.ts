import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { host, hostPid, type OpenLab, type SandboxLab } from './sandbox-lab.ts';

const x64 = process.arch === 'x64';
const nr = x64
  ? {
      ...{ inotify_init1: 294, mq_open: 240, mq_unlink: 241, rt_sigqueueinfo: 129, rt_sigprocmask: 14, sendmsg: 46 },
      ...{ epoll_create1: 291, epoll_ctl: 233, add_key: 248, unshare: 272 },
    }
  : {
      ...{ inotify_init1: 26, mq_open: 180, mq_unlink: 181, rt_sigqueueinfo: 138, rt_sigprocmask: 135, sendmsg: 211 },
      ...{ epoll_create1: 20, epoll_ctl: 21, add_key: 217, unshare: 97 },
    };

/** What the kernel lends to a user up to a bound: `one` takes one more in perl, and is false when there is none; the rest prepares for it. */
const quotas: Record<string, { prepare?: string; one: string }> = {
  'inotify instances': { one: `syscall(${nr.inotify_init1}, 0) >= 0` },
  'pending signals': {
    // SIGRTMIN + 10 to itself, blocked.
    prepare: `my $set = pack "Q", 1 << 43; syscall(${nr.rt_sigprocmask}, 0, $set, 0, 8); my $info = pack "l l l x116", 44, 0, -1;`,
    one: `syscall(${nr.rt_sigqueueinfo}, $$ + 0, 44, $info) == 0`,
  },
  'message queues': {
    prepare: 'my $n = 0; my $attr = pack "q8", 0, 10, 8192, 0, 0, 0, 0, 0;',
    // Without its name it ends with whoever has it open, also when that is killed.
    one: `do { my $name = "q$$-" . $n++; my $queue = syscall(${nr.mq_open}, $name, 0102, 0600, $attr); syscall(${nr.mq_unlink}, $name) if $queue >= 0; $queue >= 0 }`,
  },
  'descriptors on their way': {
    // SCM_RIGHTS of one descriptor, which nobody receives; a socket takes some hundred messages.
    prepare: `my @held; my $null = fileno STDIN; my $byte = "x"; my $iov = pack "P Q", $byte, 1; my $rights = pack "Q l l l x4", 20, 1, 1, $null; my $message = pack "x16 P Q P Q l x4", $iov, 1, $rights, 24, 0; my $to; my $left = 0;`,
    one: `do { if (!$left--) { socketpair $to, my $from, 1, 2, 0; push @held, $to, $from; $left = 8 } syscall(${nr.sendmsg}, fileno $to, $message, 0x40) == 1 }`,
  },
  // F_GETPIPE_SZ is 1032; a pipe above the bound has a page or two.
  'pages of pipes': {
    prepare: 'my @held;',
    one: `do { pipe my $r, my $w; push @held, $r, $w; fcntl($r, 1032, 0) > 8192 }`,
  },
};

/** What a sandbox may not ask the kernel for at all, so that nobody uses it up: 1 where it may. */
const outOfReach: Record<string, string> = {
  // KEY_SPEC_PROCESS_KEYRING
  'key rings': `my ($type, $name, $data) = ("user", "k$$", "x"); print syscall(${nr.add_key}, $type, $name, $data, 1, -2) > 0 ? 1 : 0`,
  // CLONE_NEWUSER
  'user namespaces': `print syscall(${nr.unshare}, 0x10000000) == 0 ? 1 : 0`,
};

/** Puts every open file into as many epoll instances as it may have, and says every 10,000 watches how many they are. */
const WATCHES = `
  $| = 1;
  my (@pipes, @files);
  for (1 .. 900) { pipe my $r, my $w or last; push @pipes, $r, $w; push @files, fileno $r, fileno $w }
  my $many = 0;
  my $event = ${x64 ? 'pack "L Q", 1, 0' : 'pack "L x4 Q", 1, 0'};
  for (1 .. 2000) {
    my $epoll = syscall(${nr.epoll_create1}, 0);
    last if $epoll < 0;
    for my $file (@files) {
      last if syscall(${nr.epoll_ctl}, $epoll, 1, $file, $event) < 0;
      print "watches $many\n" if ++$many % 10_000 == 0;
    }
  }
  print "no more after $many\n";
  sleep 600;`;
const ONE_WATCH = `pipe my $r, my $w; my $event = ${x64 ? 'pack "L Q", 1, 0' : 'pack "L x4 Q", 1, 0'};
  my $epoll = syscall(${nr.epoll_create1}, 0); print syscall(${nr.epoll_ctl}, $epoll, 1, fileno $r, $event) == 0 ? "some" : "none"`;

/** Takes all, says so, and keeps it; what another process of the same id leaves meanwhile it takes as well. */
const hoard = ({ prepare = '', one }: { prepare?: string; one: string }): string[] => [
  '/usr/bin/perl',
  '-e',
  `$| = 1; ${prepare} my $many = 0; my $take = sub { while ($many < 200_000 && ${one}) { $many++ } };
   $take->(); print "took $many\\n"; for (1 .. 6000) { select undef, undef, undef, 0.1; $take->() }`,
];
const ask = ({ prepare = '', one }: { prepare?: string; one: string }): string =>
  `${prepare} print ${one} ? "some" : "none"`;

export interface QuotaAttackOptions {
  /** What its sandboxes have of each other's all the same, which the provider says. */
  shared?: readonly string[];
  /** Whether ids inside are those of a kernel of the sandbox's own. */
  ownKernel?: boolean;
}

/** Attempts to starve a neighbour of what the kernel counts by user. Both are the same user inside, as most images are. */
export function quotaAttacks(
  title: string,
  open: OpenLab,
  { shared = [], ownKernel = false }: QuotaAttackOptions,
): void {
  describe(title, () => {
    let lab: SandboxLab;
    const limits = { cpu: 1, memoryBytes: 128 << 20, pids: 64, diskBytes: 32 << 20, openFiles: 4096 };

    const asked = (sandbox: Sandbox, quota: { prepare?: string; one: string }): Promise<string> =>
      said(sandbox, ask(quota));
    const said = async (sandbox: Sandbox, script: string): Promise<string> => {
      const handle = await sandbox.exec(['/usr/bin/perl', '-e', script]);
      handle.stdin.end();
      handle.stderr.resume();
      let said = '';
      for await (const chunk of handle.stdout) said += chunk;
      return said;
    };

    beforeAll(async () => {
      lab = await open();
    });
    afterAll(() => lab.close());

    it.each(Object.entries(quotas))('%s that one takes are its own', async (name, quota) => {
      // As many as it may have open may be on their way.
      const own = { limits: { ...limits, openFiles: name.startsWith('descriptors') ? 256 : 4096 } };
      const [greedy, neighbour] = await Promise.all([lab.create(own), lab.create(own)]);
      const before = await asked(neighbour, quota);
      const hoarder = await greedy.exec(hoard(quota));
      let said = '';
      hoarder.stdout.on('data', (chunk) => {
        said += chunk;
      });
      hoarder.stderr.resume();
      await until(() => said.includes('took'), 60_000);
      if (ownKernel) {
        expect(Number(/took (\d+)/.exec(said)?.[1])).toBeGreaterThan(0);
        // What it has is its own kernel's: of the host's it has taken nothing, though all sandboxes have one id there.
        const id = await hostIdOf(greedy);
        expect(await hostIdOf(neighbour)).toBe(id);
        expect(await askedOnHost(id, quota)).toBe('some');
        // The control: who has that id and asks the host's kernel finds what another one with it has left.
        await whileHoarded(id, quota, () => until(async () => (await askedOnHost(id, quota)) === 'none', 30_000));
      } else if (before === 'some') {
        expect(Number(/took (\d+)/.exec(said)?.[1])).toBeGreaterThan(0);
        // The control: who has the same id finds nothing left.
        expect(await asked(greedy, quota)).toBe('none');
      }
      expect(await asked(neighbour, quota)).toBe(shared.includes(name) ? 'none' : before);
      if (!shared.includes(name)) expect(before).toBe('some');
      await greedy.stop();
      expect(await asked(neighbour, quota)).toBe(before);
      await neighbour.stop();
    });

    if (!ownKernel) {
      it.each(Object.entries(outOfReach))('%s are out of reach', async (_name, script) => {
        // The control: the host itself may.
        expect((await host('perl', '-e', script)).out).toBe('1');
        const sandbox = await lab.create({ limits });
        expect(await said(sandbox, script)).toBe('0');
        await sandbox.stop();
      });

      it('watches of epoll cost the memory of who takes them, long before the bound of a user', async () => {
        const bound = Number(await readFile('/proc/sys/fs/epoll/max_user_watches', 'utf8'));
        const [greedy, neighbour] = await Promise.all([lab.create({ limits }), lab.create({ limits })]);
        const hoarder = await greedy.exec(['/usr/bin/perl', '-e', WATCHES]);
        let words = '';
        hoarder.stdout.on('data', (chunk) => {
          words += chunk;
        });
        hoarder.stderr.resume();
        const most = (): number => Math.max(0, ...[...words.matchAll(/\d+/g)].map(Number));
        await until(() => most() > 100_000, 60_000);
        expect(await said(neighbour, ONE_WATCH)).toBe('some');
        // It is ended for its memory, or has no more files to watch.
        await Promise.race([hoarder.exited, until(() => words.includes('no more'), 120_000)]);
        expect(most()).toBeLessThan(bound);
        expect(await said(neighbour, ONE_WATCH)).toBe('some');
        await Promise.all([greedy, neighbour].map((sandbox) => sandbox.stop()));
      });

      it('no id of the host is two sandboxes', async () => {
        const two = await Promise.all([lab.create({ limits }), lab.create({ limits })]);
        const [mine, theirs] = await Promise.all([idsOf(two[0]), idsOf(two[1])]);
        const overlap = mine.first < theirs.first + theirs.count && theirs.first < mine.first + mine.count;
        expect(overlap).toBe(shared.length > 0);
        // Whoever made the namespace, it is counted for.
        expect(mine.maker === theirs.maker).toBe(shared.length > 0);
        if (shared.length === 0) expect([mine.maker, theirs.maker]).toEqual([mine.first, theirs.first]);
        await Promise.all(two.map((sandbox) => sandbox.stop()));
      });
    }
  });
}

/** The id of the host that a sandbox's own kernel runs as, where it has one (gVisor's sentry). */
async function hostIdOf(sandbox: Sandbox): Promise<number> {
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (!command.startsWith('runsc-sandbox\0') || !command.includes(sandbox.id)) continue;
    const [, id = ''] = /^Uid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(id);
  }
  throw new Error('the sandbox has no kernel of its own on this host');
}

/** Runs perl on the host as that id, with the limits that the attack assumes. */
const asHostId = (id: number, script: string): [string, string[]] => [
  'setpriv',
  [`--reuid=${id}`, `--regid=${id}`, '--clear-groups', '--bounding-set=-all', 'perl', '-e', script],
];

async function askedOnHost(id: number, quota: { prepare?: string; one: string }): Promise<string> {
  const [file, args] = asHostId(id, ask(quota));
  return (await host(file, ...args)).out;
}

/** Runs `work` while another process of that id on the host has taken all there is. */
async function whileHoarded(
  id: number,
  quota: { prepare?: string; one: string },
  work: () => Promise<void>,
): Promise<void> {
  const [, , script = ''] = hoard(quota);
  const hoarder = spawn(...asHostId(id, script));
  let said = '';
  hoarder.stdout.on('data', (chunk) => {
    said += chunk;
  });
  hoarder.stderr.resume();
  try {
    await until(() => said.includes('took'), 60_000);
    await work();
  } finally {
    hoarder.kill('SIGKILL');
    await once(hoarder, 'exit');
  }
}

/** The ids of the host that a sandbox has, and that of who made its user namespace. */
async function idsOf(sandbox: Sandbox): Promise<{ first: number; count: number; maker: number }> {
  const pid = await hostPid(sandbox);
  const [, first = '', count = ''] = (await readFile(`/proc/${pid}/uid_map`, 'utf8')).trim().split(/\s+/);
  // NS_GET_OWNER_UID
  const script = `open my $f, "<", "/proc/${pid}/ns/user"; my $uid = pack "L", 0; ioctl $f, 0xb704, $uid; print unpack "L", $uid`;
  return { first: Number(first), count: Number(count), maker: Number((await host('perl', '-e', script)).out) };
}
