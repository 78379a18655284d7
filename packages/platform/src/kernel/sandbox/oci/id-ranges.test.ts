import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IdRanges, RANGE_IDS, releaseRanges } from './id-ranges.ts';

/** Far from those of the sandboxes of other tests, whose ids are in use meanwhile. */
const first = 20_000 * RANGE_IDS;

describe('ranges of host ids', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'id-ranges-'));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));
  const open = (
    dataDir: string,
    change: { registryDir?: string; count?: number; subordinate?: string; accounts?: string } = {},
  ) => IdRanges.with({ registryDir: join(dir, 'ids'), dataDir, first: first - 7, count: 6, ...change });

  it('go to one sandbox at a time, on whichever platform, and never to none that is left', async () => {
    const [one, other] = await Promise.all([open('/one'), open('/other')]);
    const taken = await Promise.all([one.take(), other.take(), one.take(), other.take(), one.take()]);
    // The first of the six is what root is on the host's own files.
    expect(taken.sort()).toEqual([1, 2, 3, 4, 5].map((at) => first + at * RANGE_IDS));
    expect(one.rootId).toBe(first);
    await expect(one.take()).rejects.toMatchObject({ reason: 'capacity', message: /sandbox\.idRanges/ });
  });

  it('are all found by as many at once as there are, in whatever order they come', async () => {
    for (let round = 0; round < 60; round += 1) {
      const registryDir = join(dir, String(round));
      const [one, other] = await Promise.all([open('/one', { registryDir }), open('/other', { registryDir })]);
      const taken = await Promise.all([one, other, one, other, one].map((ranges) => ranges.take()));
      expect(new Set(taken).size).toBe(5);
    }
  });

  it('are free again once they are given back, by whoever has them alone', async () => {
    const [one, other] = await Promise.all([open('/one', { count: 2 }), open('/other', { count: 2 })]);
    const id = await one.take();
    await other.release(id);
    await expect(other.take()).rejects.toMatchObject({ reason: 'capacity' });
    await one.release(id);
    expect(await other.take()).toBe(id);
  });

  it('of an earlier server stay with the sandboxes that live, and the others come back', async () => {
    const before = await open('/one');
    const [kept, gone] = [await before.take(), await before.take()];
    const foreign = await (await open('/other')).take();
    const after = await open('/one');
    const mine = await after.take();
    await after.sweep(new Set([kept]));
    expect((await readdir(join(dir, 'ids'))).map(Number).sort()).toEqual([kept, mine, foreign].sort());
    expect(gone).not.toBe(kept);
    await releaseRanges(join(dir, 'ids'), '/one');
    expect(await readdir(join(dir, 'ids'))).toEqual([String(foreign)]);
  });

  it('are not those that this machine gives to others', async () => {
    const at = (index: number): number => first + index * RANGE_IDS;
    const ranges = await open('/one', {
      subordinate: `alice:${at(1) + 5}:3\nagentplatform:${at(2)}:65536\n`,
      accounts: `bob:x:${at(3) + 9}:\nroot:x:0:0\nbroken\n`,
    });
    expect([await ranges.take(), await ranges.take(), await ranges.take()].sort()).toEqual([at(2), at(4), at(5)]);
    await expect(ranges.take()).rejects.toMatchObject({ reason: 'capacity' });
  });
});
