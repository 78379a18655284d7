import { randomBytes } from 'node:crypto';
import { access, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { type RunCommand, runCommand } from '../../processes/index.ts';
import { lockDirectory } from '../../storage/index.ts';
import { SandboxNetwork } from '../network/network.ts';
import { Nft } from '../network/nft.ts';
import { baseRules } from '../network/nft-rules.ts';
import { awaitCollector, claimSubnet, readClaims, type Subnet } from '../network/subnets.ts';
import { OciProvider } from '../oci/oci-provider.ts';
import { ask } from '../testing/ask.ts';
import { rivalFor } from '../testing/rival.ts';
import { busyboxImage } from '../testing/rootfs.ts';
import { smallSpec } from '../testing/small-spec.ts';
import { testStage } from '../testing/test-stage.ts';
import { until } from '../testing/until.ts';
import type { CgroupLayout } from './cgroups.ts';
import { type Instance, instancePlaces, openInstance, registryPlace } from './instance.ts';
import { collectLapsed } from './lapsed.ts';

const REGISTRY = '/run/agentplatform/subnets';
const nft = new Nft(runCommand);

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
const hasTable = async (table: string): Promise<boolean> =>
  (await runCommand(['nft', 'list', 'table', 'inet', table])).code === 0;

async function ip(...words: string[]): Promise<void> {
  const { code, stderr } = await runCommand(['ip', ...words]);
  if (code !== 0) throw new Error(`ip ${words.join(' ')}: ${stderr}`);
}

describe('what a platform leaves whose data directory is gone', () => {
  let dir: string;
  let dead: Instance;
  let subnet: Subnet;
  let bridge: string;

  const open = (dataDir: string, run: RunCommand = runCommand): OciProvider =>
    new OciProvider({ dataDir, stage: testStage, clock: systemClock, log: pino({ level: 'silent' }), run });
  const claimOf = async (dataDir: string): Promise<Subnet | undefined> =>
    (await readClaims(REGISTRY)).find((claim) => claim.dataDir === dataDir)?.subnet;

  /** Claim, rules and a bridge, as of one that was killed when its sandboxes had ended already. */
  beforeEach(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'lapsed-')));
    dead = await openInstance(join(dir, 'dead'));
    const options = { instance: dead, run: runCommand, nft, cniDir: undefined, registryDir: REGISTRY };
    const network = await SandboxNetwork.open(options);
    subnet = network.subnet;
    bridge = `${dead.prefix}-01`;
    await ip('link', 'add', bridge, 'type', 'bridge');
    await network.admit(bridge);
    await rm(dead.dataDir, { recursive: true });
  });
  afterEach(async () => {
    await runCommand(['ip', 'link', 'delete', 'dev', bridge]);
    await nft.apply(`add table inet ${dead.prefix}\ndelete table inet ${dead.prefix}\n`);
    await rm(dead.run, { recursive: true, force: true });
    await rm(dir, { recursive: true, force: true });
  });

  it('is removed before anybody gets its addresses: its rules would drop his packets', async () => {
    const rival = open(rivalFor(subnet, dir));
    const image = await busyboxImage(join(dir, 'image'));
    const command = ['/bin/busybox', 'nc', '-ll', '-p', '8080', '-e', '/bin/echo', 'pong'];
    const sandbox = await rival.create(smallSpec(image, 'answers', { command }));
    expect(await claimOf(rivalFor(subnet, dir))).toEqual(subnet);
    await until(async () => (await ask(sandbox.address(8080))) === 'pong\n', 60_000);
    expect(await hasTable(dead.prefix)).toBe(false);
    expect(await exists(`/sys/class/net/${bridge}`)).toBe(false);
    expect(await exists(dead.run)).toBe(false);
    expect(await claimOf(dead.dataDir)).toBeUndefined();

    // The control: with those rules back in force nobody is answered.
    const { cidr, gateway } = subnet;
    await nft.apply(baseRules({ table: dead.prefix, subnet: cidr, gateway, nameserver: undefined }));
    expect(await ask(sandbox.address(8080))).toBeUndefined();
    await nft.apply(`delete table inet ${dead.prefix}\n`);
    await until(async () => (await ask(sandbox.address(8080))) === 'pong\n', 60_000);
    await sandbox.stop();
    await rival.close();
  });

  it('is nothing that merely has a name of its table, or an address of its block', async () => {
    const [ours, named, addressed] = ['o', 'n', 'a'].map((kind) => `l${kind}${randomBytes(4).toString('hex')}`);
    if (!ours || !named || !addressed) throw new Error('unreachable');
    try {
      for (const name of [ours, named, addressed]) {
        await ip('link', 'add', name, 'type', 'veth', 'peer', 'name', `${name}p`);
        await ip('link', 'set', name, 'up');
        await ip('link', 'set', `${name}p`, 'up');
      }
      for (const [at, name] of [ours, addressed].entries())
        await ip('route', 'add', `${subnet.gateway.replace(/\d+$/, String(10 + at))}/32`, 'dev', name);
      await nft.apply([ours, named].map((name) => `add element inet ${dead.prefix} members { "${name}" }\n`).join(''));
      const other = open(join(dir, 'other'));
      await other.sweep(new Set());
      await other.close();
      const left = await Promise.all([ours, named, addressed].map((name) => exists(`/sys/class/net/${name}`)));
      expect(left).toEqual([false, true, true]);
    } finally {
      for (const name of [ours, named, addressed]) await runCommand(['ip', 'link', 'delete', 'dev', name]);
    }
  });

  it('stays claimed when it cannot be removed, and the next platform tries again', async () => {
    const stuck: RunCommand = (argv, options) =>
      options?.input?.includes(`delete table inet ${dead.prefix}`)
        ? Promise.resolve({ code: 1, stdout: '', stderr: 'Device or resource busy' })
        : runCommand(argv, options);
    const rivalDir = rivalFor(subnet, dir);
    const rival = open(rivalDir, stuck);
    await rival.sweep(new Set());
    expect(await claimOf(dead.dataDir)).toEqual(subnet);
    expect((await claimOf(rivalDir))?.cidr).not.toBe(subnet.cidr);
    const next = open(join(dir, 'next'));
    await next.sweep(new Set());
    expect(await claimOf(dead.dataDir)).toBeUndefined();
    expect(await hasTable(dead.prefix)).toBe(false);
    await rival.close();
    await next.close();
  });

  it('is stepped around where nobody knows any more whose it is', async () => {
    // As versions before this one left it: the claim taken over, the rules not.
    const claim = (await readClaims(REGISTRY)).find(({ dataDir }) => dataDir === dead.dataDir);
    await rm(claim?.file ?? '');
    const rivalDir = rivalFor(subnet, dir);
    const rival = open(rivalDir);
    await rival.sweep(new Set());
    expect(await claimOf(rivalDir)).toBeDefined();
    expect((await claimOf(rivalDir))?.cidr).not.toBe(subnet.cidr);
    expect(await hasTable(dead.prefix)).toBe(true);
    await rival.close();
  });
});

it('platforms that start at once collect lapsed claims without taking one from each other', async () => {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'lapsed-')));
  const registryDir = join(dir, 'registry');
  const run: RunCommand = async () => ({ code: 0, stdout: '', stderr: '' });
  const layout: CgroupLayout = { version: 'v2', controllers: new Map(), unified: undefined };
  const options = { runBase: join(dir, 'run'), registryDir, layout, nft: new Nft(run), run, runtime: 'none' };
  try {
    const wanted = Array.from({ length: 20 }, (_, index) => join(dir, `p${index}`));
    // Each block that will be wanted is claimed by a platform that is gone.
    await mkdir(registryDir);
    for (const dataDir of wanted) {
      const { base } = await claimSubnet(dataDir, { registryDir: join(dir, 'trial'), routes: '' });
      await writeFile(join(registryDir, `block-${(base - 0x0ae00000) / 1024}`), join(dir, 'gone', dataDir));
    }
    const claims = await Promise.all(
      wanted.map(async (dataDir) => {
        await mkdir(dataDir);
        await collectLapsed(options);
        return claimSubnet(dataDir, { registryDir, routes: '' });
      }),
    );
    await collectLapsed(options);
    expect(new Set(claims.map(({ cidr }) => cidr)).size).toBe(20);
    const held = new Map((await readClaims(registryDir)).map((claim) => [claim.dataDir, claim.subnet]));
    expect(held).toEqual(new Map(wanted.map((dataDir, index) => [dataDir, claims[index]])));
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});

describe('a data directory that was gone', () => {
  const layout: CgroupLayout = { version: 'v2', controllers: new Map(), unified: undefined };
  let dir: string;
  let runBase: string;
  let registryDir: string;
  beforeEach(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'lapsed-')));
    runBase = join(dir, 'run');
    registryDir = registryPlace(runBase);
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  /** Claim and run directory of a platform whose data directory is gone. */
  const leave = async (name: string): Promise<string> => {
    const { dataDir } = await openInstance(join(dir, name), runBase);
    await claimSubnet(dataDir, { registryDir, routes: '' });
    await rm(dataDir, { recursive: true });
    return dataDir;
  };
  /** Collects; `onTable` is called before each table is deleted. */
  const collect = (onTable: (prefix: string) => Promise<unknown> = async () => undefined): Promise<string[]> => {
    const run: RunCommand = async (_argv, options) => {
      const prefix = /delete table inet (\w+)/.exec(options?.input ?? '')?.[1];
      if (prefix !== undefined) await onTable(prefix);
      return { code: 0, stdout: '', stderr: '' };
    };
    return collectLapsed({ runBase, registryDir, layout, nft: new Nft(run), run, runtime: 'none' });
  };
  const left = async (dataDirs: string[]): Promise<string[]> => {
    const claimed = new Set((await readClaims(registryDir)).map((claim) => claim.dataDir));
    const kept = await Promise.all(dataDirs.map((one) => exists(instancePlaces(one, runBase).run)));
    return dataDirs.filter((one, index) => claimed.has(one) && kept[index]);
  };

  it('and is there again is left alone from then on, also half-way', async () => {
    const dead = await Promise.all(['a', 'b', 'c'].map(leave));
    expect(await left(dead)).toEqual(dead);
    const touched = new Set<string>();
    const again = async (prefix: string) => {
      touched.add(prefix);
      for (const dataDir of dead) await mkdir(dataDir, { recursive: true });
    };
    expect(await collect(again)).toEqual([]);
    expect(touched.size).toBe(1);
    expect(await left(dead)).toEqual(dead);
    // The control: gone for good, every one of them is removed.
    for (const dataDir of dead) await rm(dataDir, { recursive: true });
    expect((await collect()).toSorted()).toEqual(dead);
    expect(await left(dead)).toEqual([]);
  });

  it('is not one that cannot be looked at', async () => {
    const [looped, dead, below] = await Promise.all(['looped', 'dead', 'file/below'].map(leave));
    if (!looped || !dead || !below) throw new Error('unreachable');
    await rm(join(dir, 'file'), { recursive: true });
    await writeFile(join(dir, 'file'), '');
    await expect(access(below)).rejects.toMatchObject({ code: 'ENOTDIR' });
    await symlink(looped, looped);
    await expect(access(looped)).rejects.toMatchObject({ code: 'ELOOP' });
    expect((await collect()).toSorted()).toEqual([dead, below]);
    expect(await left([looped, dead])).toEqual([looped]);
  });

  it('is opened again only when nobody removes what it left any more', async () => {
    const dead = await leave('dead');
    const { run } = instancePlaces(dead, runBase);
    await rm(run, { recursive: true });
    const collector = await lockDirectory(registryDir);
    try {
      const opening = openInstance(dead, runBase);
      await until(() => exists(dead));
      // The control: another, of which nothing is there that could be removed, waits for nobody.
      await openInstance(join(dir, 'other'), runBase);
      expect(await exists(run)).toBe(false);
      await expect(awaitCollector(dead, registryDir, 2)).rejects.toMatchObject({ reason: 'unavailable' });
      expect(await exists(run)).toBe(false);
      collector.release();
      await opening;
      expect(await exists(run)).toBe(true);
    } finally {
      collector.release();
    }
  });
});
