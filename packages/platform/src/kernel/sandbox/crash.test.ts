import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { runCommand } from '../processes/index.ts';
import { openInstance } from './host/instance.ts';
import { OciProvider } from './oci/oci-provider.ts';
import type { Sandbox } from './sandbox.ts';
import { busyboxImage } from './testing/rootfs.ts';
import { smallSpec } from './testing/small-spec.ts';
import { testStage } from './testing/test-stage.ts';
import { traces } from './testing/traces.ts';
import { until } from './testing/until.ts';

/** Waits until nothing is left, and names what is when that does not happen. */
async function untilNoTrace(dataDir: string, sweep: () => Promise<unknown>): Promise<void> {
  let left: Record<string, string[]> = {};
  const clean = until(async () => {
    await sweep();
    left = await traces(dataDir);
    return Object.values(left).flat().length === 0;
  });
  await clean.catch(() => expect(left).toEqual({}));
}

const SERVER = fileURLToPath(new URL('./testing/crashing-server.ts', import.meta.url));

describe('a server that is killed', () => {
  let dir: string;
  let dataDir: string;
  const open = (): OciProvider =>
    new OciProvider({ dataDir, stage: testStage, clock: systemClock, log: pino({ level: 'silent' }) });

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'sandbox-crash-'));
    dataDir = join(dir, 'data');
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  const killedServer = async (afterMs: number): Promise<void> => {
    const server = spawn(process.execPath, [SERVER, dataDir, join(dir, 'image')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(server, 'exit');
    await once(server.stdout, 'data');
    await sleep(afterMs);
    server.kill('SIGKILL');
    await ended;
  };

  it('leaves its sandboxes to the next server, which can take some and remove the rest without a trace', async () => {
    await killedServer(30);
    const before = await traces(dataDir);
    expect(before.directories).toEqual(expect.arrayContaining(['a1', 'a2', 'a3']));
    expect(before.processes?.length).toBeGreaterThanOrEqual(3);
    expect(before.elements?.length).toBeGreaterThanOrEqual(3);

    const provider = open();
    const found: Sandbox[] = [];
    for await (const sandbox of provider.reattach()) found.push(sandbox);
    const ids = found.map((sandbox) => sandbox.id);
    expect(ids).toEqual(expect.arrayContaining(['a1', 'a2', 'a3']));
    const removed = await provider.sweep(new Set(['a1']));
    expect(removed).toEqual(expect.arrayContaining(['a2', 'a3']));
    const a1 = found.find((sandbox) => sandbox.id === 'a1');
    expect(await a1?.tail()).toMatch(/x\n$/);
    await a1?.stop();
    expect(await provider.sweep(new Set())).toEqual([]);
    await untilNoTrace(dataDir, async () => undefined);
    const routes = (await runCommand(['ip', '-4', 'route'])).stdout;
    for (const ip of before.leases ?? []) expect(routes).not.toContain(`${ip} `);
    await provider.close();
    expect((await runCommand(['nft', 'list', 'table', 'inet', (await openInstance(dataDir)).prefix])).code).not.toBe(0);
    await rm((await openInstance(dataDir)).run, { recursive: true, force: true });
  });

  it('leaves one that cannot be taken up, which keeps the next server from none of the others, and is removed', async () => {
    await killedServer(30);
    // What is left of commands is removed as files; this cannot be.
    await mkdir(join(dataDir, 'sandboxes/a2/exec-damaged'));
    const provider = open();
    const found: string[] = [];
    for await (const { id } of provider.reattach()) found.push(id);
    expect(found).toEqual(expect.arrayContaining(['a1', 'a3']));
    expect(found).not.toContain('a2');
    expect(await provider.sweep(new Set(['a1', 'a3']))).toContain('a2');
    await untilNoTrace(dataDir, () => provider.sweep(new Set()));
    await provider.close();
    await rm((await openInstance(dataDir)).run, { recursive: true, force: true });
  });

  it.each([0, 60, 130, 210])(
    'leaves no trace after a sweep when it is killed %i ms into making others',
    async (afterMs) => {
      await killedServer(afterMs);
      const provider = open();
      await provider.sweep(new Set());
      // What was just being started ends with its server; a second look finds what came between.
      await untilNoTrace(dataDir, () => provider.sweep(new Set()));
      await provider.close();
      await rm((await openInstance(dataDir)).run, { recursive: true, force: true });
    },
  );

  it('whose data directory is removed as well leaves nothing once any other platform has started', async () => {
    await killedServer(0);
    const [gone, places] = [await realpath(dataDir), await openInstance(dataDir)];
    await rm(dataDir, { recursive: true });
    expect(await readdir(places.runtimeRoot)).toEqual(expect.arrayContaining(['a1', 'a2', 'a3']));
    const other = new OciProvider({
      dataDir: join(dir, 'other'),
      stage: testStage,
      clock: systemClock,
      log: pino({ level: 'silent' }),
    });
    await other.sweep(new Set());
    await until(async () => {
      const left = await traces(gone);
      return [left.processes, left.groups, left.elements, left.runtime].flat().length === 0;
    });
    expect((await runCommand(['nft', 'list', 'table', 'inet', places.prefix])).code).not.toBe(0);
    await other.close();
    await rm(places.run, { recursive: true, force: true });
  });

  it('ends a sandbox whose owner was killed, and says that it does not know how', async () => {
    const provider = open();
    const image = await busyboxImage(join(dir, 'image'));
    const sandbox = await provider.create(smallSpec(image, 'orphan'));
    const record: unknown = JSON.parse(await readFile(join(dataDir, 'sandboxes/orphan/sandbox.json'), 'utf8'));
    expect(record).toMatchObject({ owner: { pid: expect.any(Number) } });
    const pid = Number(/"owner":\{"pid":(\d+)/.exec(JSON.stringify(record))?.[1]);
    process.kill(pid, 'SIGKILL');
    expect(await sandbox.exited).toEqual({ exitCode: undefined, outOfMemory: false });
    await sandbox.stop();
    await until(async () => (await traces(dataDir)).groups?.length === 0);
    await provider.close();
  });

  it('a stop waits for the owner of a sandbox that has just ended, who knows how', async () => {
    const provider = open();
    const sandbox = await provider.create(smallSpec(await busyboxImage(join(dir, 'image')), 'ended'));
    const inDir = (name: string): Promise<string> => readFile(join(dataDir, 'sandboxes/ended', name), 'utf8');
    const owner = Number(/"owner":\{"pid":(\d+)/.exec(await inDir('sandbox.json'))?.[1]);
    process.kill(owner, 'SIGSTOP');
    const init = Number(await inDir('init.pid'));
    process.kill(init, 'SIGKILL');
    await until(async () => (await readFile(`/proc/${init}/stat`, 'utf8')).includes(') Z '));
    const stopped = sandbox.stop();
    await sleep(100);
    process.kill(owner, 'SIGCONT');
    expect((await sandbox.exited).exitCode).toBe(137);
    await stopped;
    await provider.close();
  });

  it('does not touch another instance, nor what merely looks like a process of its own', async () => {
    const image = await busyboxImage(join(dir, 'image'));
    const other = new OciProvider({
      dataDir: join(dir, 'other'),
      stage: testStage,
      clock: systemClock,
      log: pino({ level: 'silent' }),
    });
    const provider = open();
    const [mine, theirs] = await Promise.all([
      provider.create(smallSpec(image, 'same')),
      other.create(smallSpec(image, 'same')),
    ]);
    expect(mine.address(1).host).not.toBe(theirs.address(1).host);
    expect(await provider.sweep(new Set())).toEqual(['same']);
    const handle = await theirs.exec(['/bin/echo', 'alive']);
    expect(await handle.exited).toBe(0);
    await theirs.stop();
    await provider.close();
    await other.close();
  });

  it('refuses more creates than it can queue, and serves the queued', async () => {
    const image = await busyboxImage(join(dir, 'image'));
    const provider = new OciProvider({
      dataDir,
      stage: testStage,
      clock: systemClock,
      log: pino({ level: 'silent' }),
      creates: { running: 1, waiting: 2 },
    });
    const results = await Promise.allSettled(
      ['q1', 'q2', 'q3', 'q4'].map((id) => provider.create(smallSpec(image, id))),
    );
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected']);
    expect(results[3]).toMatchObject({ reason: { name: 'SandboxError', reason: 'capacity' } });
    expect((await provider.sweep(new Set())).sort()).toEqual(['q1', 'q2', 'q3']);
    await provider.close();
  });

  it('finds the same instance through a link to its data directory', async () => {
    const { prefix } = await openInstance(dataDir);
    await symlink(dataDir, join(dir, 'link'));
    expect((await openInstance(join(dir, 'link'))).prefix).toBe(prefix);
    await rm((await openInstance(dataDir)).run, { recursive: true, force: true });
  });
});
