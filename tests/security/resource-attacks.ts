import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox, SandboxLimits } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { groupLimits, host, hostPid, type OpenLab, type SandboxLab, shell } from './sandbox-lab.ts';

const MIB = 1024 * 1024;
const limits: SandboxLimits = { cpu: 1, memoryBytes: 48 * MIB, pids: 40, diskBytes: 32 * MIB, openFiles: 128 };

/** Bytes; several times what is kept of a log. */
const FLOOD = 20 * MIB;

const BOMB = 'b() { b | b & b; }; b';

/**
 * Attempts on what all share: processes, memory, disk, files and log; every provider that isolates bounds them for each sandbox.
 * `declared`: what the provider says that it cannot hold a sandbox to.
 */
export function resourceAttacks(title: string, open: OpenLab, { declared = [] }: { declared?: string[] } = {}): void {
  describe(title, () => {
    let lab: SandboxLab;
    let neighbour: Sandbox;

    /** The neighbour has the same limits and works as before: it makes processes, uses memory, writes its disk. */
    const neighbourWorks = async (): Promise<void> => {
      const { out } = await shell(
        neighbour,
        'busybox dd if=/dev/zero of=/tmp/mine bs=1M count=8 2>/dev/null && for i in 1 2 3 4; do /bin/true & done; wait; ls -l /tmp/mine | tr -s " " | busybox cut -d" " -f5',
      );
      expect(out).toBe(`${8 * MIB}\n`);
    };

    beforeAll(async () => {
      lab = await open();
      neighbour = await lab.create({ limits });
    });
    afterAll(() => lab.close());

    it('nothing of its limits is left to its good will but what the provider declares', async () => {
      const { missing, unenforced } = await lab.provider.probe();
      expect({ missing, unenforced: unenforced ?? [] }).toEqual({ missing: [], unenforced: declared });
      // What cannot be held to is refused, and not made without that limit.
      for (const change of [{ memoryBytes: MIB }, { pids: 0 }, { diskBytes: MIB }, { openFiles: 1 }, { cpu: 0 }])
        await expect(lab.create({ limits: { ...limits, ...change } })).rejects.toMatchObject({ reason: 'refused' });
    });

    it('a fork bomb hurts nobody, and stays within its processes where these are bounded', async () => {
      // The control: without that limit the same loop makes as many as it is told.
      const wide = await lab.create({ limits: { ...limits, pids: 400 } });
      const bomb = 'i=0; while [ $i -lt 150 ]; do sleep 30 >/dev/null 2>&1 & i=$((i+1)); done; echo made $i';
      expect((await shell(wide, bomb)).out).toContain('made 150');
      await wide.stop();

      const bomber = await lab.create({ limits });
      if (declared.includes('pids')) {
        // Its own number it can pass; the host is safe by the bound of the group that all of it is in.
        expect(await groupLimits(lab, bomber)).toMatch(/pids\.max \d+\n/);
        const handle = await bomber.exec(['/bin/sh', '-c', BOMB]);
        handle.stdout.resume();
        handle.stderr.resume();
        await sleep(500);
        await neighbourWorks();
        return bomber.stop();
      }
      const current = await pidsFile(bomber);
      // The bomb's own shell ends when it cannot fork, so new ones are thrown while the number is watched.
      let most = 0;
      let refused = '';
      for (let round = 0; round < 5; round++) {
        const handle = await bomber.exec(['/bin/sh', '-c', BOMB]);
        handle.stdout.resume();
        handle.stderr.on('data', (chunk: Buffer) => {
          refused += chunk;
        });
        for (let look = 0; look < 10; look++) {
          most = Math.max(most, Number(await readFile(current, 'utf8')));
          await sleep(20);
        }
        handle.kill();
      }
      expect(refused).toMatch(/can't fork|Resource temporarily/);
      expect(most).toBeGreaterThan(20);
      // The kernel lets us attach a process to a full group, so each of our own calls may add a few; the bomb adds none.
      expect(most).toBeLessThanOrEqual(40 + 5 * 4);
      await neighbourWorks();
      await bomber.stop();
    });

    it('a memory hog is ended, is said to have been, and hurts nobody', async () => {
      const hog = await lab.create({
        limits,
        command: ['/bin/busybox', 'dd', 'if=/dev/zero', 'of=/dev/null', 'bs=100M', 'count=1'],
      });
      expect(await hog.exited).toEqual({ exitCode: 137, outOfMemory: true });
      const roomy = await lab.create({
        limits: { ...limits, memoryBytes: 160 * MIB },
        command: ['/bin/busybox', 'dd', 'if=/dev/zero', 'of=/dev/null', 'bs=100M', 'count=1'],
      });
      expect(await roomy.exited).toEqual({ exitCode: 0, outOfMemory: false });
      await neighbourWorks();
      await hog.stop();
      await roomy.stop();
    });

    it('a hog that hides its memory in files of /dev/shm is ended all the same', async () => {
      const hog = await lab.create({ limits });
      const { out } = await shell(
        hog,
        'busybox dd if=/dev/zero of=/dev/shm/x bs=1M count=100; busybox stat -c %s /dev/shm/x',
      );
      expect(Number(/^(\d+)$/m.exec(out)?.[1] ?? 0)).toBeLessThanOrEqual(24 * MIB);
      await neighbourWorks();
      await hog.stop();
    });

    it('a killed sandbox is not called out of memory', async () => {
      const sandbox = await lab.create({ limits, command: ['/bin/sh', '-c', 'exit 137'] });
      expect(await sandbox.exited).toEqual({ exitCode: 137, outOfMemory: false });
      await sandbox.stop();
    });

    it('a disk filler gets an error at its bound: bytes, inodes, and what it deleted but holds open', async () => {
      const filler = await lab.create({ limits });
      const before = await free(lab.dir);
      const full = await shell(filler, 'busybox dd if=/dev/zero of=/tmp/fill bs=1M count=1000');
      expect(full.out).toContain('No space left on device');
      const held = await shell(
        filler,
        'rm /tmp/fill; exec 5>/tmp/held; rm /tmp/held; busybox dd if=/dev/zero bs=1M count=1000 >&5',
      );
      expect(held.out).toContain('No space left on device');
      const inodes = await shell(
        filler,
        'i=0; while [ $i -lt 20000 ] && : > /tmp/f$i; do i=$((i+1)); done 2>/dev/null; echo $i',
      );
      expect(Number(inodes.out)).toBeLessThan(20_000);
      // What it wrote costs the host at most its bound, with the file system's own tables.
      expect(before - (await free(lab.dir))).toBeLessThan(64 * MIB);
      await neighbourWorks();
      await filler.stop();
    });

    it('open files end at their number', async () => {
      const sandbox = await lab.create({ limits });
      const count = 'my @f; while (open my $h, "<", "/dev/null") { push @f, $h } print scalar @f';
      const { out } = await shell(sandbox, `perl -e '${count}'; echo; ulimit -n 4096 && echo raised`);
      expect(Number(out.split('\n')[0])).toBeLessThan(128);
      expect(Number(out.split('\n')[0])).toBeGreaterThan(100);
      expect(out).not.toContain('raised');
      // The control: the host's own limit is higher.
      expect(
        Number(
          (
            await host(
              'perl',
              '-e',
              'my @f; while (@f < 500 && open my $h, "<", "/dev/null") { push @f, $h } print scalar @f',
            )
          ).out,
        ),
      ).toBe(500);
      await sandbox.stop();
    });

    it('a log flood stays within its bound', async () => {
      const line = 'spam '.repeat(50);
      const script = `yes "${line}" | head -c ${FLOOD}; echo; echo flooded; exec sleep 600`;
      const flood = await lab.create({ limits, command: ['/bin/sh', '-c', script] });
      // All of it has come: what is not there was thrown away.
      await until(async () => (await flood.tail(64)).endsWith('flooded\n'));
      const used = Number((await host('du', '-sk', lab.logPlace(flood))).out.split('\t')[0]);
      expect(used).toBeGreaterThan(1024);
      expect(used).toBeLessThan(6 * 1024);
      await neighbourWorks();
      await flood.stop();
    });
  });
}

/** The file of the control group of a sandbox, found by one of its processes, that says how many processes are in it. */
async function pidsFile(sandbox: Sandbox): Promise<string> {
  const groups = await readFile(`/proc/${await hostPid(sandbox)}/cgroup`, 'utf8');
  const path = (/^\d+:pids:(\/.+)$/m.exec(groups) ?? /^0::(\/.+)$/m.exec(groups))?.[1] ?? 'none';
  return (await host('sh', '-c', `find /sys/fs/cgroup -path "*${path}/pids.current" | head -1`)).out.trim();
}

/** Free bytes of the file system that holds `dir`. */
async function free(dir: string): Promise<number> {
  return Number((await host('df', '--output=avail', '-B1', dir)).out.split('\n')[1]);
}
