import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox, SandboxLimits } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { host, SandboxLab, shell } from './sandbox-lab.ts';

const MIB = 1024 * 1024;
const limits: SandboxLimits = { cpu: 1, memoryBytes: 48 * MIB, pids: 40, diskBytes: 32 * MIB, openFiles: 128 };

describe('what a greedy sandbox takes', () => {
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
    lab = await SandboxLab.open();
    neighbour = await lab.create({ limits });
  });
  afterAll(() => lab.close());

  it('a fork bomb stays within its processes', async () => {
    // The control: without that limit the same loop makes as many as it is told.
    const wide = await lab.create({ limits: { ...limits, pids: 400 } });
    const bomb = 'i=0; while [ $i -lt 150 ]; do sleep 30 >/dev/null 2>&1 & i=$((i+1)); done; echo made $i';
    expect((await shell(wide, bomb)).out).toContain('made 150');
    await wide.stop();

    const bomber = await lab.create({ limits });
    // The bomb's own shell ends when it cannot fork, so new ones are thrown while the number is watched.
    let most = 0;
    let refused = '';
    for (let round = 0; round < 5; round++) {
      const handle = await bomber.exec(['/bin/sh', '-c', 'b() { b | b & b; }; b']);
      handle.stdout.resume();
      handle.stderr.on('data', (chunk: Buffer) => {
        refused += chunk;
      });
      for (let look = 0; look < 10; look++) {
        most = Math.max(most, await pidsOf(lab, bomber.id));
        await new Promise((resolve) => setTimeout(resolve, 20));
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
    const flood = await lab.create({ limits, command: ['/bin/yes', 'spam spam spam spam spam spam spam'] });
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const used = Number((await host('du', '-sk', join(lab.dir, 'data/sandboxes', flood.id))).out.split('\t')[0]);
    expect(used).toBeGreaterThan(1024);
    expect(used).toBeLessThan(6 * 1024);
    await neighbourWorks();
    await flood.stop();
  });
});

async function pidsOf(lab: SandboxLab, id: string): Promise<number> {
  const config = await readFile(join(lab.dir, 'data/sandboxes', id, 'config.json'), 'utf8');
  const path = /"cgroupsPath":"([^"]+)"/.exec(config)?.[1] ?? 'none';
  const { out } = await host('sh', '-c', `find /sys/fs/cgroup -path "*${path}/pids.current" | head -1`);
  return Number(await readFile(out.trim(), 'utf8'));
}

/** Free bytes of the file system that holds `dir`. */
async function free(dir: string): Promise<number> {
  return Number((await host('df', '--output=avail', '-B1', dir)).out.split('\n')[1]);
}
