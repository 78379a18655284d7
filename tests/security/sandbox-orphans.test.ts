import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { onEachProvider, type ProviderName } from './each-provider.ts';
import { host, type OpenLab, type SandboxLab, shell } from './sandbox-lab.ts';

/**
 * Makes orphans one after another, and waits for its own children only; `full` at the first that is refused. Then it says how many are
 * left that nobody has reaped, once there are none or after that many seconds.
 */
const ORPHANS = `
  my ($number, $seconds) = @ARGV;
  $| = 1;
  for my $made (1 .. $number) {
    my $child = fork;
    if (!defined $child) { print "full after $made\\n"; last }
    if (!$child) {
      my $orphan = fork;
      exit 1 unless defined $orphan;
      select undef, undef, undef, 0.002 unless $orphan;
      exit 0;
    }
    waitpid $child, 0;
    if ($?) { print "full after $made\\n"; last }
  }
  sub zombie { open my $file, '<', "/proc/$_[0]/stat" or return 0; return (<$file> // '') =~ /\\) Z/ }
  sub waiting { opendir my $all, '/proc'; return scalar grep { /^[0-9]+$/ && zombie($_) } readdir $all }
  for (1 .. 50 * $seconds) { last unless waiting(); select undef, undef, undef, 0.02 }
  print 'waiting ', waiting(), "\\n";
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
      expect(out).toBe('waiting 300\n');
    });

    it(`${number} of an agent use nothing up`, async () => {
      const script = `${ORPHANS} print "and goes on\\n"; sleep 600`;
      const sandbox = await lab.create({ limits, command: ['/usr/bin/perl', '-e', script, `${number}`, '60'] });
      await until(async () => (await sandbox.tail()).includes('goes on'), 120_000);
      expect(await sandbox.tail()).toBe('waiting 0\nand goes on\n');
      await sandbox.stop();
    });

    it(`${number} of a command use nothing up`, async () => {
      const sandbox = await lab.create({ limits });
      expect(await shell(sandbox, `perl -e '${ORPHANS.replaceAll("'", `'"'"'`)}' ${number} 60`)).toEqual({
        code: 0,
        out: 'waiting 0\n',
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
