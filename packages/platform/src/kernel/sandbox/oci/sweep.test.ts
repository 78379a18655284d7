import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Instance } from '../host/instance.ts';
import type { SandboxNetwork } from '../network/network.ts';
import { writeRecord } from '../records/sandbox-record.ts';
import type { IdRanges } from './id-ranges.ts';
import type { RuntimeCli } from './runtime-cli.ts';
import { type SweepOptions, sweepSandboxes } from './sweep.ts';

let dir: string;
let instance: Instance;
let stuck: Set<string>;
const ranges = { sweep: vi.fn(async () => undefined), release: vi.fn(async () => undefined) };
const network = { sweep: vi.fn(async () => undefined), release: vi.fn(async () => undefined) };

beforeEach(async () => {
  vi.clearAllMocks();
  dir = await mkdtemp(join(tmpdir(), 'sweep-'));
  const [sandboxes, runtimeRoot] = [join(dir, 'sandboxes'), join(dir, 'runtime')];
  instance = { sandboxes, runtimeRoot, cgroupParent: 'nowhere' } as Instance;
  stuck = new Set(['stuck']);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** A sandbox of a server that is gone, as it stands on the disk. */
async function left(id: string, firstId: number, record = true): Promise<void> {
  await mkdir(join(instance.sandboxes, id), { recursive: true });
  await mkdir(join(instance.runtimeRoot, id), { recursive: true });
  if (!record) return;
  await writeRecord(join(instance.sandboxes, id), {
    ...{ id, labels: {}, isolation: 'container', slot: id, ip: '10.0.0.2', hostInterface: `veth${id}`, firstId },
    // Nobody has that id.
    owner: { pid: 2 ** 22 + 1, startedAt: 'never' },
    ...{ network: { mode: 'public', allow: [] }, openFiles: undefined },
  } as never);
}

const sweep = (kept: string[] = []): Promise<string[]> =>
  sweepSandboxes({
    ...{ instance, layout: { version: 'v2', controllers: new Map(), unified: undefined }, pooled: [], busy: false },
    kept: new Set(kept),
    runtime: {
      remove: async (id: string) => {
        if (stuck.has(id)) throw new Error(`${id} does not go`);
      },
    } as unknown as RuntimeCli,
    ranges: ranges as unknown as IdRanges,
    network: network as unknown as SandboxNetwork,
  } satisfies SweepOptions);

it('what could not be removed keeps its ids and its address, until it is gone', async () => {
  await left('stuck', 200_000);
  await left('kept', 300_000);
  await left('gone', 400_000);
  await expect(sweep(['kept'])).rejects.toThrow('1 things of ended sandboxes could not be removed');
  expect(ranges.sweep).toHaveBeenLastCalledWith(new Set([200_000, 300_000]));
  expect(network.sweep).toHaveBeenLastCalledWith([
    expect.objectContaining({ id: 'kept' }),
    expect.objectContaining({ id: 'stuck' }),
  ]);
  expect(ranges.release).toHaveBeenCalledExactlyOnceWith(400_000);
  stuck.clear();
  expect(await sweep(['kept'])).toEqual(['stuck']);
  expect(ranges.sweep).toHaveBeenLastCalledWith(new Set([300_000]));
  expect(await readdir(instance.sandboxes)).toEqual(['kept']);
});

it('where nobody knows what one that stays has, nothing is given to others', async () => {
  await left('stuck', 200_000, false);
  await expect(sweep()).rejects.toThrow('could not be removed');
  expect(ranges.sweep).not.toHaveBeenCalled();
  expect(network.sweep).not.toHaveBeenCalled();
});
