import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pino from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { identify, runCommand } from '../../processes/index.ts';
import { listGroups, readCgroupLayout } from '../host/cgroups.ts';
import { instancePlaces } from '../host/instance.ts';
import { leaseFile } from '../host/lease-file.ts';
import type { PreparedImage } from '../host-stage.ts';
import { readClaims } from '../network/subnets.ts';
import { items } from '../records/json-path.ts';
import type { Sandbox } from '../sandbox.ts';
import { ask } from '../testing/ask.ts';
import { DockerDaemon } from '../testing/docker-daemon.ts';
import { rivalFor } from '../testing/rival.ts';
import { busyboxImage } from '../testing/rootfs.ts';
import { runIn } from '../testing/sandbox-contract.ts';
import { smallSpec } from '../testing/small-spec.ts';
import { testStage } from '../testing/test-stage.ts';
import { until } from '../testing/until.ts';
import { DockerApi } from './docker-api.ts';
import { DockerProvider } from './docker-provider.ts';

const SERVER = fileURLToPath(new URL('../testing/crashing-server.ts', import.meta.url));

let daemon: DockerDaemon;
let dir: string;
let image: PreparedImage;

beforeAll(async () => {
  daemon = await DockerDaemon.start();
  dir = await realpath(await mkdtemp(join(tmpdir(), 'docker-faults-')));
  image = await busyboxImage(join(dir, 'image'));
});
afterAll(async () => {
  await daemon.stop();
  await rm(dir, { recursive: true, force: true });
});

const open = (name: string): DockerProvider =>
  new DockerProvider({
    dataDir: join(dir, name),
    stage: testStage,
    clock: systemClock,
    log: pino({ level: 'silent' }),
    socketPath: daemon.socketPath,
  });

/** Everything of the machine and the daemon that carries the platform's names; makes nothing. */
async function traces(name: string): Promise<Record<string, string[]>> {
  const { prefix, sandboxes, run } = instancePlaces(join(dir, name), '/run/agentplatform');
  const api = new DockerApi(daemon.socketPath);
  const query = { all: '1', filters: JSON.stringify({ label: [`agentplatform.instance=${prefix}`] }) };
  const [containers, networks] = await Promise.all([
    api.json('GET', '/containers/json', { query }),
    api.json('GET', '/networks', { query }),
  ]);
  api.close();
  const lines = (text: string): string[] => text.split('\n').filter((line) => line.includes(prefix));
  return {
    containers: items({ containers }, 'containers').map((found) => JSON.stringify(found)),
    networks: items({ networks }, 'networks').map((found) => JSON.stringify(found)),
    directories: await readdir(sandboxes).catch(() => []),
    groups: await listGroups(await readCgroupLayout(), `/${prefix}`),
    interfaces: lines((await runCommand(['ip', '-brief', 'link'])).stdout),
    mounts: lines(await readFile('/proc/self/mountinfo', 'utf8')).filter((line) => line.includes(run)),
    rules: (await runCommand(['nft', 'list', 'table', 'inet', prefix])).stdout
      .split('\n')
      .filter((line) => line.includes(`"${prefix}-`)),
  };
}

async function expectNoTrace(name: string): Promise<void> {
  const left = await traces(name);
  expect(left).toEqual(Object.fromEntries(Object.keys(left).map((kind) => [kind, []])));
}

it('a sandbox lives through a crash of the daemon that takes its containers over', async () => {
  const provider = open('crash');
  const sandbox = await provider.create(smallSpec(image, 'survivor'));
  expect((await runIn(sandbox, ['/bin/sh', '-c', 'echo kept > /tmp/note'])).code).toBe(0);
  await daemon.crash({ liveRestore: true });
  expect((await runIn(sandbox, ['/bin/cat', '/tmp/note'])).stdout).toBe('kept\n');
  await sandbox.stop({ graceMs: 100 });
  expect(await sandbox.exited).toMatchObject({ outOfMemory: false });
  await expectNoTrace('crash');
  await provider.close();
});

it('a sandbox that the daemon ended with itself is said to have ended, and nothing of it stays', async () => {
  const provider = open('lost');
  const sandbox = await provider.create(smallSpec(image, 'lost'));
  expect((await traces('lost')).rules?.length).toBeGreaterThan(0);
  await daemon.crash({ liveRestore: false });
  await sandbox.exited;
  expect(await provider.sweep(new Set())).toEqual(['lost']);
  await expectNoTrace('lost');
  const next = await provider.create(smallSpec(image, 'lost'));
  expect((await runIn(next, ['/bin/echo', 'again'])).stdout).toBe('again\n');
  await next.stop();
  await provider.close();
});

it('the guard of the containers begins anew when it is killed, is followed by that of the next server, and goes with the last container', async () => {
  const { run, dataDir } = instancePlaces(join(dir, 'guarded'), '/run/agentplatform');
  const guard = async (): Promise<number> => Number(await readFile(join(run, 'lease-guard.pid'), 'utf8'));
  const alive = async (pid: number): Promise<boolean> => (await identify(pid)) !== undefined;
  const first = open('guarded');
  await mkdir(dataDir);
  await writeFile(leaseFile(dataDir), '1 60000');
  await first.create(smallSpec(image, 'guarded'));
  const killed = await guard();
  expect(await alive(killed)).toBe(true);
  process.kill(killed, 'SIGKILL');
  await until(async () => (await guard()) !== killed);
  const left = await guard();
  await first.close();
  expect(await alive(left)).toBe(true);

  const next = open('guarded');
  for await (const _ of next.reattach());
  const last = await guard();
  expect(last).not.toBe(left);
  await until(async () => !(await alive(left)));
  expect(await alive(last)).toBe(true);
  await next.sweep(new Set());
  await next.close();
  await until(async () => !(await alive(last)));
  await expectNoTrace('guarded');
});

it.each([0, 400])('a server killed %i ms into making sandboxes leaves them to the next, or no trace', async (ms) => {
  const name = `killed-${ms}`;
  const server = spawn(process.execPath, [SERVER, join(dir, name), join(dir, `${name}-image`), daemon.socketPath], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(server, 'exit');
  await once(server.stdout, 'data');
  await sleep(ms);
  server.kill('SIGKILL');
  await ended;
  const provider = open(name);
  const found: Sandbox[] = [];
  for await (const sandbox of provider.reattach()) found.push(sandbox);
  expect(found.map(({ id }) => id)).toEqual(expect.arrayContaining(['a1', 'a2', 'a3']));
  expect(await provider.sweep(new Set(['a1']))).toEqual(expect.arrayContaining(['a2', 'a3']));
  const kept = found.find(({ id }) => id === 'a1');
  expect(await kept?.tail()).toMatch(/x\n$/);
  // What the daemon was still making for the dead server may appear after the first look.
  await until(async () => {
    await provider.sweep(new Set());
    return Object.values(await traces(name)).flat().length === 0;
  }).catch(() => undefined);
  await expectNoTrace(name);
  await provider.close();
});

it('what a platform left whose data directory is gone is removed before another gets its addresses', async () => {
  const gone = open('gone');
  await gone.create(smallSpec(image, 'running'));
  await gone.close();
  const before = await traces('gone');
  for (const kind of ['containers', 'networks', 'interfaces', 'mounts', 'rules'])
    expect(before[kind]?.length, kind).toBeGreaterThan(0);
  const claims = await readClaims('/run/agentplatform/subnets');
  const subnet = claims.find(({ dataDir }) => dataDir === join(dir, 'gone'))?.subnet;
  if (!subnet) throw new Error('no addresses were claimed');
  await rm(join(dir, 'gone'), { recursive: true });
  const rival = open(basename(rivalFor(subnet, dir)));
  const command = ['/bin/busybox', 'nc', '-ll', '-p', '8080', '-e', '/bin/echo', 'pong'];
  const sandbox = await rival.create(smallSpec(image, 'answers', { command }));
  await expectNoTrace('gone');
  expect(sandbox.address(8080).host.startsWith(subnet.cidr.replace(/\d+\.\d+\/22$/, ''))).toBe(true);
  // Rules of the dead platform would drop what is answered.
  await until(async () => (await ask(sandbox.address(8080))) === 'pong\n', 60_000);
  await sandbox.stop({ graceMs: 100 });
  await rival.close();
});

it('an image that runs as root is refused, by number and by name', async () => {
  const provider = open('root');
  for (const user of ['0', 'root', '0:1000']) {
    const asRoot = { ...image, config: { ...image.config, user } };
    await expect(provider.create(smallSpec(asRoot, 'root')), user).rejects.toMatchObject({
      reason: 'refused',
      message: expect.stringContaining('USER'),
    });
  }
  await expectNoTrace('root');
  await provider.close();
});

it('mounts carry files in both directions, or only inwards, and show later mounts when they should', async () => {
  const provider = open('mounts');
  const shared = join(dir, 'shared');
  await mkdir(shared);
  await runCommand(['mount', '--bind', shared, shared]);
  await runCommand(['mount', '--make-shared', shared]);
  try {
    await mkdir(join(shared, 'open'), { mode: 0o777 });
    await runCommand(['chmod', '777', join(shared, 'open')]);
    await mkdir(join(shared, 'late'));
    await writeFile(join(shared, 'file'), 'from the host\n');
    const sandbox = await provider.create(
      smallSpec(image, 'mounts', {
        mounts: [
          { source: shared, target: '/mnt/data', readOnly: false, propagate: true },
          { source: join(shared, 'file'), target: '/etc/given.conf', readOnly: true },
          { source: shared, target: '/srv', readOnly: true },
        ],
      }),
    );
    await runCommand(['mount', '-t', 'tmpfs', 'late', join(shared, 'late')]);
    await writeFile(join(shared, 'late/new'), 'arrived\n');
    const script = 'cat /etc/given.conf /mnt/data/late/new; echo back > /mnt/data/open/answer; echo no > /srv/open/no';
    const { stdout, stderr } = await runIn(sandbox, ['/bin/sh', '-c', script]);
    expect(stdout).toBe('from the host\narrived\n');
    expect(stderr).toContain('Read-only file system');
    expect(await readFile(join(shared, 'open/answer'), 'utf8')).toBe('back\n');
    await sandbox.stop();
  } finally {
    await runCommand(['umount', join(shared, 'late')]);
    await until(async () => (await runCommand(['umount', shared])).code === 0);
  }
  await provider.close();
});
