import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { claimSubnet, dotted, readClaims, releaseSubnet } from './subnets.ts';

describe('address ranges', () => {
  let dir: string;
  let registryDir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'subnets-'));
    registryDir = join(dir, 'registry');
  });
  afterEach(() => rm(dir, { recursive: true }));

  const platform = async (name: string): Promise<string> => {
    await mkdir(join(dir, name), { recursive: true });
    return join(dir, name);
  };

  it('are the same for the same data directory, and within 10.224.0.0/11', async () => {
    const a = await platform('a');
    const first = await claimSubnet(a, { registryDir, routes: '' });
    expect(await claimSubnet(a, { registryDir, routes: '' })).toEqual(first);
    expect(first.cidr).toMatch(/^10\.(22[4-9]|2[34]\d|25[0-5])\.\d+\.0\/22$/);
    expect(first.gateway).toBe(dotted(first.base + 1));
  });

  it('never go to two platforms, also when many ask at once', async () => {
    const dirs = await Promise.all(Array.from({ length: 60 }, (_, index) => platform(`p${index}`)));
    const claims = await Promise.all(dirs.map((dataDir) => claimSubnet(dataDir, { registryDir, routes: '' })));
    expect(new Set(claims.map((claim) => claim.cidr)).size).toBe(60);
    expect((await readdir(registryDir)).filter((name) => !/^block-\d+$/.test(name))).toEqual([]);
  });

  it('step aside for a range that the host routes elsewhere, but not for the default route', async () => {
    const a = await platform('a');
    const wanted = await claimSubnet(a, { registryDir, routes: '' });
    await releaseSubnet(a, wanted, registryDir);
    const hex = (address: number): string => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32LE(address);
      return bytes.toString('hex').toUpperCase();
    };
    const route = (address: number, mask: number): string =>
      `Iface\tDestination\tGateway\neth9\t${hex(address)}\t00000000\t0001\t0\t0\t0\t${hex(mask)}\t0\t0\t0\n`;
    const around = await claimSubnet(a, { registryDir, routes: route(wanted.base & 0xffff0000, 0xffff0000) });
    expect(around.cidr).not.toBe(wanted.cidr);
    await releaseSubnet(a, around, registryDir);
    expect(await claimSubnet(a, { registryDir, routes: route(0, 0) })).toEqual(wanted);
  });

  it('stay with a platform that was given another than its first, when that has become free', async () => {
    const [a, trial] = [await platform('a'), join(dir, 'trial')];
    const first = await claimSubnet(a, { registryDir: trial, routes: '' });
    await mkdir(registryDir);
    const file = join(registryDir, (await readdir(trial))[0] ?? '');
    await writeFile(file, join(dir, 'other'));
    const given = await claimSubnet(a, { registryDir, routes: '' });
    expect(given.cidr).not.toBe(first.cidr);
    await rm(file);
    expect(await claimSubnet(a, { registryDir, routes: '' })).toEqual(given);
  });

  it('step aside for a range that packet rules name, whoever made them, and not for others', async () => {
    const a = await platform('a');
    const wanted = await claimSubnet(a, { registryDir, routes: '' });
    await releaseSubnet(a, wanted, registryDir);
    const rules = (cidr: string): string => `table inet x {\n\tchain y {\n\t\tip saddr ${cidr} drop\n\t}\n}\n`;
    const around = await claimSubnet(a, { registryDir, routes: '', rules: rules(wanted.cidr) });
    expect(around.cidr).not.toBe(wanted.cidr);
    await releaseSubnet(a, around, registryDir);
    expect(await claimSubnet(a, { registryDir, routes: '', rules: rules('10.0.0.0/22') })).toEqual(wanted);
  });

  it('of a data directory that is gone are nobody’s until they are collected, and not given back', async () => {
    const a = await platform('a');
    const first = await claimSubnet(a, { registryDir, routes: '' });
    await rm(a, { recursive: true });
    await releaseSubnet(a, first, registryDir);
    expect((await readClaims(registryDir)).map((claim) => claim.subnet)).toEqual([first]);
  });

  it('are refused, and not shared, when all are taken', async () => {
    const full = 'Iface\tDestination\nx\t0000E00A\t0\t0\t0\t0\t0\t0000E0FF\n';
    await expect(claimSubnet(await platform('a'), { registryDir, routes: full })).rejects.toMatchObject({
      reason: 'unavailable',
    });
  });
});
