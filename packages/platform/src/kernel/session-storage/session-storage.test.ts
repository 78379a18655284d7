import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { runCommand } from '../processes/index.ts';
import type { PreparedImage } from '../sandbox/host-stage.ts';
import { OciProvider, type Sandbox } from '../sandbox/index.ts';
import { busyboxImage } from '../sandbox/testing/rootfs.ts';
import { runIn } from '../sandbox/testing/sandbox-contract.ts';
import { smallSpec } from '../sandbox/testing/small-spec.ts';
import { testStage } from '../sandbox/testing/test-stage.ts';
import { readMounts } from './mount-table.ts';
import { SessionStorage } from './session-storage.ts';

const MIB = 1024 * 1024;
const DAY_MS = 86_400_000;
const RESOURCE = 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/agent-0123456789';

describe('session storage', () => {
  let dir: string;
  let dataDir: string;
  let image: PreparedImage;
  let provider: OciProvider;
  let storage: SessionStorage;
  let now = Date.UTC(2026, 0, 1);
  let serial = 0;

  const open = (): Promise<SessionStorage> =>
    SessionStorage.open({
      dataDir,
      bytes: 24 * MIB,
      idleMs: 14 * DAY_MS,
      clock: { ...systemClock, now: () => now },
      log: pino({ level: 'silent' }),
      run: runCommand,
      runBase: join(dir, 'run'),
    });
  const session = (sessionId: string, version = '1') => ({
    accountId: '123456789012',
    resourceArn: RESOURCE,
    sessionId,
    version,
    sandboxId: `s${serial++}`,
  });
  const make = async (sandboxId: string, user = ''): Promise<Sandbox> => {
    const mounts = [await storage.mount(sandboxId, '/mnt/kept')];
    const of = { ...image, config: { ...image.config, user } };
    return provider.create(smallSpec(of, sandboxId, { mounts, command: ['/bin/sleep', '600'] }));
  };
  const shell = async (sandbox: Sandbox, script: string): Promise<string> => {
    const { stdout, stderr } = await runIn(sandbox, ['/bin/sh', '-c', script]);
    return stdout + stderr;
  };
  /** One life of a session: attached, used, stopped, let go of. */
  const live = async (of: ReturnType<typeof session>, script: string, user = ''): Promise<string> => {
    await storage.attach(of);
    try {
      const sandbox = await make(of.sandboxId, user);
      try {
        return await shell(sandbox, script);
      } finally {
        await sandbox.stop();
      }
    } finally {
      await storage.detach(of.sandboxId);
    }
  };
  const volumes = async (): Promise<string[]> => readdir(join(dataDir, 'session-storage'));

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'session-storage-'));
    dataDir = join(dir, 'data');
    await mkdir(dataDir);
    image = await busyboxImage(dir);
    storage = await open();
    provider = new OciProvider({ dataDir, stage: testStage, clock: systemClock, log: pino({ level: 'silent' }) });
  });
  afterAll(async () => {
    await provider.sweep(new Set());
    await provider.close();
    await storage.recover(new Set());
    await storage.close();
    expect((await readMounts()).filter(({ path }) => path.startsWith(dir))).toEqual([]);
    await rm(dir, { recursive: true, force: true });
  });

  it('keeps what a session wrote through stop and resume, again and again', async () => {
    expect(await live(session('again'), 'ls -A /mnt/kept; echo one > /mnt/kept/a')).toBe('');
    expect(await live(session('again'), 'cat /mnt/kept/a; mkdir /mnt/kept/d; echo two > /mnt/kept/d/b')).toBe('one\n');
    expect(await live(session('again'), 'cat /mnt/kept/a /mnt/kept/d/b; rm /mnt/kept/a')).toBe('one\ntwo\n');
    expect(await live(session('again'), 'ls /mnt/kept')).toBe('d\n');
  });

  it('shows no session what another one wrote, of whatever resource', async () => {
    await live(session('mine'), 'echo secret > /mnt/kept/file');
    expect(await live(session('other'), 'ls -A /mnt/kept')).toBe('');
    expect(await live({ ...session('mine'), resourceArn: `${RESOURCE}x` }, 'ls -A /mnt/kept')).toBe('');
    expect(await live(session('mine'), 'cat /mnt/kept/file')).toBe('secret\n');
  });

  it('is full at its size, and the disk of the sandbox is not', async () => {
    const out = await live(
      session('full'),
      'busybox dd if=/dev/zero of=/mnt/kept/f bs=1M count=40; busybox stat -c %s /mnt/kept/f; echo ok > /tmp/x; cat /tmp/x',
    );
    expect(out).toContain('No space left on device');
    const written = Number(/^(\d+)$/m.exec(out)?.[1]);
    expect(written).toBeGreaterThan(12 * MIB);
    expect(written).toBeLessThan(24 * MIB);
    expect(await storage.diskBytes(session('full'))).toBeGreaterThan(written);
    expect(await storage.diskBytes(session('never there'))).toBe(0);
    expect(out).toMatch(/^ok$/m);
  });

  it('appears in a sandbox that runs already, where nothing could be written before', async () => {
    const late = session('late');
    expect(await storage.holds(late)).toBe(false);
    await live(session('late'), 'echo earlier > /mnt/kept/file');
    expect(await storage.holds(late)).toBe(true);
    expect(await storage.holds({ ...late, version: 'another' })).toBe(false);
    const sandbox = await make(late.sandboxId);
    expect(await shell(sandbox, 'ls -A /mnt/kept; echo x > /mnt/kept/early')).toMatch(/Permission denied/);
    await storage.attach(late);
    expect(await shell(sandbox, 'cat /mnt/kept/file; echo later > /mnt/kept/more')).toBe('earlier\n');
    await sandbox.stop();
    await storage.detach(late.sandboxId);
    expect(await live(session('late'), 'cat /mnt/kept/more')).toBe('later\n');
  });

  it("belongs to root in every life of the session, who is another id of the host's each time", async () => {
    const wrote = 'umask 077; mkdir /mnt/kept/d; echo one > /mnt/kept/d/f; cat /proc/self/uid_map';
    const once = await live(session('root'), wrote, 'root');
    const changed = 'cd /mnt/kept/d; cat f; echo two >> f; chmod 644 f; mv f ../g; rm -r ../d; stat -c %u:%g .. ../g';
    expect(await live(session('root'), changed, 'root')).toBe('one\n0:0\n0:0\n');
    // In a sandbox that ran before it came, too.
    const late = session('root');
    const sandbox = await make(late.sandboxId, 'root');
    expect(await shell(sandbox, 'cat /proc/self/uid_map')).not.toBe(once);
    await storage.attach(late);
    expect(await shell(sandbox, 'cd /mnt/kept; cat g; echo three >> g; cat g; stat -c %u:%g . g')).toBe(
      'one\ntwo\none\ntwo\nthree\n0:0\n0:0\n',
    );
    await sandbox.stop();
    await storage.detach(late.sandboxId);
    // Others have what is theirs.
    const other =
      'cat /mnt/kept/g; echo no > /mnt/kept/g; echo app > /mnt/kept/app; stat -c %u:%g /mnt/kept/g /mnt/kept/app';
    const said = await live(session('root'), other, 'app');
    expect(said).toMatch(/^one\ntwo\nthree\n0:0\n1500:1600\n[^\n]*denied\n$/);
    expect(await live(session('root'), 'echo more >> /mnt/kept/app; cat /mnt/kept/app', 'app')).toBe('app\nmore\n');
    expect(await live(session('root'), 'stat -c %u:%g /mnt/kept/app', 'root')).toBe('1500:1600\n');
  });

  it('leaves no mount behind that was made for a sandbox of root', async () => {
    const before = (await readMounts()).filter(({ path }) => path.startsWith(dir));
    await live(session('left'), 'echo x > /mnt/kept/x', 'root');
    expect((await readMounts()).filter(({ path }) => path.startsWith(dir))).toEqual(before);
  });

  it('gives no way out: links lead where they lead inside, devices and set-user-id count for nothing', async () => {
    await writeFile(join(dir, 'outside'), 'secret of the host\n');
    const links = `ln -s ${join(dir, 'outside')} /mnt/kept/l; ln -s / /mnt/kept/root; ln -s ../../.. /mnt/kept/up`;
    await live(session('links'), links);
    const out = await live(session('links'), 'cat /mnt/kept/l; ls /mnt/kept/root/mnt; grep /mnt/kept /proc/mounts');
    expect(out).toContain("can't open");
    expect(out).not.toContain('secret of the host');
    expect(out).toMatch(/^kept$/m);
    expect(out).toMatch(/nosuid,nodev/);
  });

  it('begins empty after a version update, and stays so when the version goes back', async () => {
    await live(session('updated', '1'), 'echo old > /mnt/kept/file');
    expect(await live(session('updated', '2'), 'ls -A /mnt/kept; echo new > /mnt/kept/file')).toBe('');
    expect(await live(session('updated', '2'), 'cat /mnt/kept/file')).toBe('new\n');
    expect(await live(session('updated', '1'), 'ls -A /mnt/kept')).toBe('');
  });

  it('is gone after fourteen idle days, counted from its last use', async () => {
    await live(session('idle'), 'echo x > /mnt/kept/file');
    now += 13 * DAY_MS;
    expect(await live(session('idle'), 'cat /mnt/kept/file')).toBe('x\n');
    now += 13 * DAY_MS;
    await storage.collect();
    expect(await live(session('idle'), 'cat /mnt/kept/file')).toBe('x\n');
    now += 14 * DAY_MS;
    // Also when the job has not come round yet.
    expect(await live(session('idle'), 'ls -A /mnt/kept')).toBe('');
    now += 13 * DAY_MS;
    expect(await storage.collect()).toBe(0);
    now += DAY_MS;
    expect(await storage.collect()).toBe(1);
    expect(await volumes()).toEqual([]);
  });

  it('is never collected from under a session that uses it', async () => {
    const used = session('used');
    await storage.attach(used);
    now += 20 * DAY_MS;
    expect(await storage.collect()).toBe(0);
    await storage.detach(used.sandboxId);
    // Letting go is a use.
    expect(await storage.collect()).toBe(0);
  });

  it('goes with its resource', async () => {
    await live({ ...session('gone'), resourceArn: `${RESOURCE}-gone` }, 'echo x > /mnt/kept/file');
    const before = (await volumes()).length;
    expect(await storage.forget(`${RESOURCE}-gone`)).toBe(1);
    expect(await volumes()).toHaveLength(before - 1);
  });

  it('is had by one sandbox at a time', async () => {
    const [first, second] = [session('twice'), session('twice')];
    await storage.attach(first);
    await expect(storage.attach(second)).rejects.toMatchObject({ reason: 'unavailable' });
    await storage.detach(second.sandboxId);
    await storage.detach(first.sandboxId);
    await storage.attach(second);
    await storage.detach(second.sandboxId);
    // Letting go twice, or of what never was, is no error.
    await storage.detach(second.sandboxId);
    await storage.detach('never-was');
  });

  it('survives a crash of the server: kept for a sandbox that lives, let go of for one that does not', async () => {
    const [alive, dead] = [session('alive'), session('dead')];
    await Promise.all([storage.attach(alive), storage.attach(dead)]);
    const sandbox = await make(alive.sandboxId);
    await shell(sandbox, 'echo before > /mnt/kept/file');
    // Nothing is closed: the next server finds what this one left.
    storage = await open();
    await storage.recover(new Set([alive.sandboxId]));
    expect(await shell(sandbox, 'cat /mnt/kept/file; echo after >> /mnt/kept/file')).toBe('before\n');
    expect(await live(session('dead'), 'ls -A /mnt/kept')).toBe('');
    await sandbox.stop();
    await storage.detach(alive.sandboxId);
    expect(await live(session('alive'), 'cat /mnt/kept/file')).toBe('before\nafter\n');
  });

  it('is repaired when its file system is damaged, and a record that is no JSON makes a fresh one', async () => {
    const damaged = session('damaged');
    await live(damaged, 'echo x > /mnt/kept/file');
    const [volume = ''] = await Promise.all(
      (await volumes()).map(async (name) => join(dataDir, 'session-storage', name)),
    );
    for (const name of await volumes()) {
      // The first superblock of every volume: a copy of it is found by the checker.
      await runCommand([
        'dd',
        'if=/dev/zero',
        `of=${join(dataDir, 'session-storage', name, 'disk.ext4')}`,
        'bs=1024',
        'seek=1',
        'count=1',
        'conv=notrunc',
      ]);
    }
    expect(await live(session('damaged'), 'cat /mnt/kept/file')).toBe('x\n');
    for (const name of await volumes())
      await writeFile(join(dataDir, 'session-storage', name, 'volume.json'), '{"half');
    expect(volume).not.toBe('');
    expect(await live(session('damaged'), 'ls -A /mnt/kept')).toBe('');
  });

  it('leaves nothing that the next platform cannot remove, when the data directory is gone', async () => {
    const lapsed = join(dir, 'lapsed');
    await mkdir(lapsed);
    const other = await SessionStorage.open({
      dataDir: lapsed,
      bytes: 16 * MIB,
      idleMs: 1,
      clock: systemClock,
      log: pino({ level: 'silent' }),
      run: runCommand,
      runBase: join(dir, 'run'),
    });
    await other.attach(session('lost'));
    const mine = (mounts: { path: string }[]): number => mounts.filter(({ path }) => path.startsWith(dir)).length;
    const before = mine(await readMounts());
    await rm(lapsed, { recursive: true, force: true });
    storage = await open();
    expect(mine(await readMounts())).toBe(before - 2);
  });
});
