import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { endProcess } from '../../processes/index.ts';
import { type CgroupLayout, listGroups, removeGroup } from '../host/cgroups.ts';
import type { Instance } from '../host/instance.ts';
import type { Attachment, SandboxNetwork } from '../network/network.ts';
import { readRecord, type SandboxRecord } from '../records/sandbox-record.ts';
import type { IdRanges } from './id-ranges.ts';
import { type RuntimeCli, stateOwners } from './runtime-cli.ts';

export interface SweepOptions {
  instance: Instance;
  layout: CgroupLayout;
  network: SandboxNetwork;
  ranges: IdRanges;
  runtime: RuntimeCli;
  /** Ids that stay, those being made included. */
  kept: ReadonlySet<string>;
  /** Interfaces that are ready for future sandboxes. */
  pooled: Attachment[];
  /** Sandboxes are being made: addresses whose owner is not known yet are left alone. */
  busy: boolean;
}

/**
 * Removes whatever carries this instance's names and belongs to none of `kept`: processes, control groups, runtime state,
 * directories, addresses, rules. Mounts and namespaces end with the processes that hold them. Returns the ids removed; rejects
 * with an AggregateError of `errors` and of what could not be removed, after having tried the rest.
 */
export async function sweepSandboxes(options: SweepOptions, errors: unknown[] = []): Promise<string[]> {
  const { instance, layout, network, kept, pooled, busy } = options;
  const [directories, states, groups] = await Promise.all([
    names(instance.sandboxes),
    names(instance.runtimeRoot).then(stateOwners),
    listGroups(layout, instance.cgroupParent),
  ]);
  const orphans = [...new Set([...directories, ...states, ...groups])].filter((id) => !kept.has(id));
  const left: string[] = [];
  for (const id of orphans) {
    try {
      await removeOrphan(id, options, states.includes(id));
    } catch (error) {
      errors.push(error);
      left.push(id);
    }
  }
  const recordOf = (id: string): Promise<SandboxRecord | undefined> => readRecord(join(instance.sandboxes, id));
  const ofLeft = await Promise.all(left.map(recordOf));
  // What could not be removed may live: its ids and its address stay its own, and where nobody knows which they are all do.
  if (!busy && ofLeft.every((record) => record !== undefined)) {
    const records = [...(await Promise.all([...kept].map(recordOf))), ...ofLeft];
    const owned = records.filter((record): record is SandboxRecord => record !== undefined);
    const ids = new Set(owned.flatMap(({ firstId }) => firstId ?? []));
    await options.ranges.sweep(ids).catch((error: unknown) => errors.push(error));
    await network.sweep([...owned, ...pooled]).catch((error: unknown) => errors.push(error));
  }
  if (errors.length > 0)
    throw new AggregateError(errors, `${errors.length} things of ended sandboxes could not be removed`);
  return orphans;
}

async function removeOrphan(id: string, options: SweepOptions, hasState: boolean): Promise<void> {
  const { instance, layout, network, runtime } = options;
  const dir = join(instance.sandboxes, id);
  const record = await readRecord(dir);
  // First: what has made it its tracer cannot be reaped by anybody else.
  if (record) await endProcess(record.owner);
  if (hasState) await runtime.remove(id);
  await removeGroup(layout, `${instance.cgroupParent}/${id}`);
  if (record) await network.release(record, record.network);
  if (record?.firstId !== undefined) await options.ranges.release(record.firstId);
  await rm(dir, { recursive: true, force: true });
  await rm(join(instance.runtimeRoot, id), { recursive: true, force: true });
}

async function names(dir: string): Promise<string[]> {
  return readdir(dir).catch(() => []);
}
