import { access, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type CgroupLayout, listGroups, removeGroup } from './cgroups.ts';
import { instancePlaces } from './instance.ts';
import type { Nft } from './nft.ts';
import type { RunCommand } from './run-command.ts';
import { RuntimeCli, stateOwner } from './runtime-cli.ts';
import { readClaims } from './subnets.ts';

export interface LapsedOptions {
  runBase: string;
  registryDir: string;
  layout: CgroupLayout;
  nft: Nft;
  run: RunCommand;
  runtime: string;
}

/**
 * Removes what platforms left on this machine whose data directory is gone, e.g. a test that was killed: their sandboxes, which no
 * server can take over any more, control groups, rules and claims. Returns the data directories; what cannot be removed stays for the next time.
 */
export async function collectLapsed({
  runBase,
  registryDir,
  layout,
  nft,
  run,
  runtime,
}: LapsedOptions): Promise<string[]> {
  const collected: string[] = [];
  for (const { dataDir, file } of await readClaims(registryDir)) {
    if (
      await access(dataDir).then(
        () => true,
        () => false,
      )
    )
      continue;
    const { prefix, run: runDir, runtimeRoot, cgroupParent } = instancePlaces(dataDir, runBase);
    const cli = new RuntimeCli({ command: runtime, root: runtimeRoot, run });
    try {
      for (const id of new Set((await readdir(runtimeRoot).catch(() => [])).map(stateOwner))) await cli.remove(id);
      for (const id of await listGroups(layout, cgroupParent)) await removeGroup(layout, `${cgroupParent}/${id}`);
      await removeGroup(layout, cgroupParent);
      await nft.apply(`add table inet ${prefix}\ndelete table inet ${prefix}\n`);
      await rm(runDir, { recursive: true, force: true });
      await rm(join(registryDir, file), { force: true });
      collected.push(dataDir);
    } catch {
      // Somebody else may be collecting the same one.
    }
  }
  return collected;
}
