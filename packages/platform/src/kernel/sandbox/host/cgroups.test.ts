import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type CgroupLayout,
  parseCgroupLayout,
  readCgroupLayout,
  readOomKills,
  readUsage,
  removeGroup,
} from './cgroups.ts';

const v1 = `30 24 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids`;
const unified = '34 30 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw';

describe('control group layouts', () => {
  it('tells v1, hybrid and v2 apart', () => {
    expect(parseCgroupLayout(v1)).toMatchObject({ version: 'v1', unified: undefined });
    expect(parseCgroupLayout(`${v1}\n${unified}`)).toMatchObject({
      version: 'hybrid',
      unified: '/sys/fs/cgroup/unified',
    });
    expect(parseCgroupLayout('25 1 0:22 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup rw,nsdelegate')).toEqual({
      version: 'v2',
      controllers: new Map(),
      unified: '/sys/fs/cgroup',
    });
  });

  it('finds a controller that shares its mount, and paths with spaces', () => {
    const layout = parseCgroupLayout(v1.replaceAll('/sys/fs/cgroup/memory', '/my\\040groups'));
    expect(layout.controllers.get('cpuacct')).toBe('/sys/fs/cgroup/cpu,cpuacct');
    expect(layout.controllers.get('memory')).toBe('/my groups');
  });

  it('survives any text', () => {
    fc.assert(fc.property(fc.string(), (text) => ['v1', 'v2', 'hybrid'].includes(parseCgroupLayout(text).version)));
  });
});

describe('usage', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'cgroups-'));
  });
  afterEach(() => rm(root, { recursive: true }));

  const group = async (files: Record<string, string>): Promise<void> => {
    await mkdir(join(root, 'p/s'), { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(root, 'p/s', name), text);
  };

  it('is read from v1', async () => {
    const layout: CgroupLayout = {
      version: 'hybrid',
      unified: '/none',
      controllers: new Map([
        ['cpuacct', root],
        ['memory', root],
      ]),
    };
    await group({
      'cpuacct.usage': '2500000000\n',
      'memory.max_usage_in_bytes': '4096\n',
      'memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 3\n',
    });
    expect(await readUsage(layout, '/p/s')).toEqual({ cpuSeconds: 2.5, memoryHighWaterBytes: 4096 });
    expect(await readOomKills(layout, '/p/s')).toBe(3);
  });

  it('is read from v2, with or without a recorded peak', async () => {
    const layout: CgroupLayout = { version: 'v2', unified: root, controllers: new Map() };
    await group({
      'cpu.stat': 'usage_usec 1500000\nuser_usec 1\n',
      'memory.current': '10\n',
      'memory.events': 'low 0\noom 9\noom_kill 1\n',
    });
    expect(await readUsage(layout, '/p/s')).toEqual({ cpuSeconds: 1.5, memoryHighWaterBytes: 10 });
    await group({ 'memory.peak': '77\n' });
    expect(await readUsage(layout, '/p/s')).toEqual({ cpuSeconds: 1.5, memoryHighWaterBytes: 77 });
    expect(await readOomKills(layout, '/p/s')).toBe(1);
  });

  it('is zero for a group that is gone', async () => {
    const layout: CgroupLayout = { version: 'v2', unified: root, controllers: new Map() };
    expect(await readUsage(layout, '/gone')).toEqual({ cpuSeconds: 0, memoryHighWaterBytes: 0 });
    expect(await readOomKills(layout, '/gone')).toBe(0);
  });
});

describe('the removal of a group', () => {
  it.skipIf(process.getuid?.() !== 0)('takes the groups below it along, and ends what runs in them', async () => {
    const layout = await readCgroupLayout();
    const root = layout.unified ?? layout.controllers.get('pids') ?? '';
    const name = `agentplatform-cgroups-test-${process.pid}`;
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    const ended = once(child, 'exit');
    try {
      await mkdir(join(root, name, 'outer', 'inner'), { recursive: true });
      await writeFile(join(root, name, 'outer', 'inner', 'cgroup.procs'), String(child.pid));
      await removeGroup(layout, name);
      expect((await ended)[1]).toBe('SIGKILL');
      await expect(access(join(root, name))).rejects.toMatchObject({ code: 'ENOENT' });
    } finally {
      child.kill('SIGKILL');
    }
  });
});
