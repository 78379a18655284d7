import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { onEachProvider, type ProviderName } from './each-provider.ts';
import { host, type OpenLab, type SandboxLab, shell } from './sandbox-lab.ts';

/**
 * Makes one orphan that lives until it was seen, then others one after another, and waits for its own children only; `full` at the first
 * that is refused. Then it says how many are left, alive or waiting to be reaped, once there are none or after that many seconds. They
 * are told from others by their name.
 */
const ORPHANS = `
  my ($number, $seconds) = @ARGV;
  $| = 1;
  sub orphaned {
    my $life = shift;
    my $child = fork;
    return 0 unless defined $child;
    if (!$child) {
      $0 = 'orphan';
      my $orphan = fork;
      exit 1 unless defined $orphan;
      $life->() unless $orphan;
      exit 0;
    }
    waitpid $child, 0;
    return $? == 0;
  }
  sub orphan { open my $file, '<', "/proc/$_[0]/stat" or return 0; return (<$file> // '') =~ /\\(orphan\\)/ }
  sub left { opendir my $all, '/proc'; return scalar grep { /^[0-9]+$/ && orphan($_) } readdir $all }
  pipe my $ear, my $mouth;
  orphaned(sub { close $mouth; <$ear> });
  print 'sees ', left(), "\\n";
  close $mouth;
  for my $made (1 .. $number) {
    next if orphaned(sub { select undef, undef, undef, 0.002 });
    print "full after $made\\n";
    last;
  }
  my $left = left();
  for (1 .. 50 * $seconds) { last unless $left; select undef, undef, undef, 0.02; $left = left() }
  print "left $left\\n";
`;
const limits = { cpu: 1, memoryBytes: 64 * 2 ** 20, pids: 100, diskBytes: 32 * 2 ** 20, openFiles: 256 };

onEachProvider((provider) => `children that nobody waits for (${provider})`, attack);

function attack(title: string, open: OpenLab, provider: ProviderName): void {
  // gVisor bounds them not by number, and needs 20 ms for each.
  const number = provider === 'oci with gVisor' ? 300 : 2000;
  describe(title, () => {
    let lab: SandboxLab;

    beforeAll(async () => {
      lab = await open();
    });
    afterAll(() => lab.close());

    it('the control: without an init, what does not expect them keeps them all', async () => {
      const { out } = await host('unshare', ...['--pid', '--fork', '--mount-proc', 'perl', '-e', ORPHANS, '300', '2']);
      expect(out).toBe('sees 1\nleft 301\n');
    });

    it(`${number} of an agent use nothing up`, async () => {
      const script = `${ORPHANS} print "and goes on\\n"; sleep 600`;
      const sandbox = await lab.create({ limits, command: ['/usr/bin/perl', '-e', script, `${number}`, '60'] });
      await until(async () => (await sandbox.tail()).includes('goes on'), 120_000);
      expect(await sandbox.tail()).toBe('sees 1\nleft 0\nand goes on\n');
      await sandbox.stop();
    });

    it(`${number} of a command use nothing up`, async () => {
      const sandbox = await lab.create({ limits });
      expect(await shell(sandbox, `perl -e '${ORPHANS.replaceAll("'", `'"'"'`)}' ${number} 60`)).toEqual({
        code: 0,
        out: 'sees 1\nleft 0\n',
      });
      await sandbox.stop();
    });

    it('an end and its status are the agent’s: by itself, by a signal, when it is asked to', async () => {
      const ends = async (script: string): Promise<number | undefined> => {
        const sandbox = await lab.create({ limits, command: ['/bin/sh', '-c', script] });
        const { exitCode } = await sandbox.exited;
        await sandbox.stop();
        return exitCode;
      };
      expect(await ends('exit 41')).toBe(41);
      expect(await ends('kill -KILL $$')).toBe(137);
      const asked = await lab.create({
        limits,
        command: ['/bin/sh', '-c', 'trap "exit 43" TERM; echo up; while :; do sleep 0.05; done'],
      });
      await until(async () => (await asked.tail()) === 'up\n');
      await asked.stop({ graceMs: 5000 });
      expect((await asked.exited).exitCode).toBe(43);
    });
  });
}
