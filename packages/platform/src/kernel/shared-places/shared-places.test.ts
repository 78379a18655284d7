import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { openDirectoryStore } from '../objects/index.ts';
import { type RunCommand, runCommand } from '../processes/index.ts';
import { readMounts } from '../session-storage/index.ts';
import { silent } from '../storage/testing/databases.ts';
import type { Missing } from './missing.ts';
import { readPlaces } from './places.ts';
import { SharedPlaces } from './shared-places.ts';

const ID = 'fsap-0123456789abcdef0';
const FS = 'fs-0123456789abcdef0';

describe('shared places', () => {
  let dir: string;
  let dataDir: string;

  const open = async (text: string, run: RunCommand = runCommand, lacking: Missing[] = []): Promise<SharedPlaces> =>
    SharedPlaces.open({
      places: readPlaces(text),
      region: 'us-east-1',
      accountId: '123456789012',
      dataDir,
      objects: await openDirectoryStore({ directory: join(dataDir, 'objects'), clock: systemClock }),
      run,
      missing: () => lacking,
      log: silent,
      runBase: join(dir, 'run'),
    });

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'shared-places-'));
    dataDir = join(dir, 'data');
    await mkdir(join(dataDir, 'inside'), { recursive: true });
    await mkdir(join(dir, 'shared'));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  it('are found by the ARN of their access point, of either kind, in this region and account alone', async () => {
    const places = await open(`${ID}=${join(dir, 'shared')}`);
    const found = [
      `arn:aws:elasticfilesystem:us-east-1:123456789012:access-point/${ID}`,
      `arn:aws:s3files:us-east-1:123456789012:file-system/${FS}/access-point/${ID}`,
    ];
    for (const arn of found) expect(places.find(arn)).toBe(ID);
    const other = [
      `arn:aws:elasticfilesystem:us-west-2:123456789012:access-point/${ID}`,
      `arn:aws:elasticfilesystem:us-east-1:999999999999:access-point/${ID}`,
      `arn:aws:elasticfilesystem:us-east-1:123456789012:access-point/${ID}0`,
      `arn:aws:s3:us-east-1:123456789012:access-point/${ID}`,
      // Other spellings, which policies on the access point would not know.
      `arn:aws-cn:elasticfilesystem:us-east-1:123456789012:access-point/${ID}`,
      `arn:aws:elasticfilesystem:us-east-1:123456789012:x:access-point/${ID}`,
      `arn:aws:elasticfilesystem:us-east-1:123456789012:x-access-point/${ID}`,
      ID,
      '',
    ];
    for (const arn of other) expect(places.find(arn), arn).toBeUndefined();
    expect(await places.source(ID)).toBe(join(dir, 'shared'));
    await expect(places.source('fsap-00000000')).rejects.toMatchObject({ reason: 'refused' });
  });

  it('are no places of the system or of the platform, also not by a link, and are directories', async () => {
    await symlink(dataDir, join(dir, 'link-to-data'));
    await symlink('/etc', join(dir, 'link-to-etc'));
    await writeFile(join(dir, 'file'), '');
    const bad = ['/', '/etc', '/proc', dataDir, join(dataDir, 'inside'), dir, join(dir, 'link-to-data')];
    for (const path of [...bad, join(dir, 'link-to-etc'), join(dir, 'file'), join(dir, 'none')])
      await expect(open(`${ID}=${path}`), path).rejects.toThrow(path);
  });

  it('are looked at anew for each sandbox', async () => {
    const path = join(dir, 'changing');
    await mkdir(path);
    const places = await open(`${ID}=${path}`);
    expect(await places.source(ID)).toBe(path);
    await rm(path, { recursive: true });
    await expect(places.source(ID)).rejects.toMatchObject({ reason: 'failed' });
    await symlink(dataDir, path);
    await expect(places.source(ID)).rejects.toMatchObject({ reason: 'failed', message: expect.stringContaining(ID) });
  });

  it('of kind nfs are mounted once, when they are first wanted, and let go of at the end', async () => {
    const asked: string[][] = [];
    // There is no NFS server here: what mount(8) is asked for is looked at, and a file system in memory takes its place.
    const run: RunCommand = (argv, options) => {
      if (!argv.includes('nfs')) return runCommand(argv, options);
      asked.push(argv);
      return runCommand(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', argv.at(-1) ?? '']);
    };
    const places = await open(`${ID}=nfs://10.0.0.5/export/a`, run);
    const [one, two] = await Promise.all([places.source(ID), places.source(ID)]);
    expect(await places.source(ID)).toBe(one);
    expect(two).toBe(one);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toEqual(expect.arrayContaining(['10.0.0.5:/export/a', one]));
    expect(asked[0]?.join(' ')).toMatch(/nosuid,nodev/);
    await places.close();
    expect((await readMounts()).filter(({ path }) => path.startsWith(dir))).toEqual([]);
  });

  it('for which the machine lacks something say what it is and how to get it', async () => {
    const places = await open(`${ID}=nfs://10.0.0.5/export`, runCommand, [{ what: '/dev/it', remedy: 'modprobe it' }]);
    const sentence = '/dev/it is missing (modprobe it)';
    expect(places.unavailable(ID)).toBe(sentence);
    expect(places.report()).toEqual([{ id: ID, kind: 'nfs', missing: [{ what: '/dev/it', remedy: 'modprobe it' }] }]);
    await expect(places.source(ID)).rejects.toMatchObject({
      reason: 'failed',
      message: expect.stringContaining(sentence),
    });
    await places.close();
    expect((await open(`${ID}=${join(dir, 'shared')}`)).unavailable(ID)).toBeUndefined();
  });

  it('that the machine cannot mount say so', async () => {
    const run: RunCommand = (argv, options) =>
      argv.includes('nfs')
        ? Promise.resolve({ code: 32, stdout: '', stderr: 'mount: unknown filesystem type nfs' })
        : runCommand(argv, options);
    const places = await open(`${ID}=nfs://10.0.0.5/export`, run);
    await expect(places.source(ID)).rejects.toMatchObject({
      reason: 'failed',
      message: expect.stringContaining('unknown filesystem type nfs'),
    });
    await places.close();
  });
});
