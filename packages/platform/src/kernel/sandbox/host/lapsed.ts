import { readdir, readFile, rm } from 'node:fs/promises';
import type { RunCommand } from '../../processes/index.ts';
import { DirectoryInUseError, lockDirectory } from '../../storage/index.ts';
import { listRoots, unmountRoot } from '../docker/docker-root.ts';
import type { Nft } from '../network/nft.ts';
import { type Claim, interfacesInto, readClaims } from '../network/subnets.ts';
import { releaseRanges } from '../oci/id-ranges.ts';
import { RuntimeCli, stateOwners } from '../oci/runtime-cli.ts';
import { type CgroupLayout, listGroups, removeGroup } from './cgroups.ts';
import { idRegistryPlace, instancePlaces } from './instance.ts';
import { isGone } from './is-gone.ts';

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
 * server can take over any more, control groups, mounts, interfaces, rules, and last the claim, so that whoever gets their addresses finds
 * no rules that drop his packets. Returns the data directories; what cannot be removed stays claimed, and for the next time. A data directory
 * that is made again meanwhile is left alone from then on; its platform waits in `openInstance` until this is over.
 */
export async function collectLapsed(options: LapsedOptions): Promise<string[]> {
  const { registryDir } = options;
  if ((await lapsedClaims(registryDir)).length === 0) return [];
  // One at a time: a claim that somebody else has collected meanwhile may be a living platform's by now.
  const lock = await lockDirectory(registryDir).catch((error: unknown) => {
    if (error instanceof DirectoryInUseError) return undefined;
    throw error;
  });
  if (!lock) return [];
  try {
    const collected: string[] = [];
    for (const claim of await lapsedClaims(registryDir)) {
      const gone = await removeLeftovers(claim, options).then(
        () => true,
        () => false,
      );
      if (!gone) continue;
      collected.push(claim.dataDir);
    }
    return collected;
  } finally {
    lock.release();
  }
}

async function lapsedClaims(registryDir: string): Promise<Claim[]> {
  const claims = await readClaims(registryDir);
  const gone = await Promise.all(claims.map(({ dataDir }) => isGone(dataDir)));
  return claims.filter((_, index) => gone[index]);
}

/** Everything here carries the prefix that follows from the claim's data directory, or is named by the table that does. The claim goes last. */
async function removeLeftovers(claim: Claim, options: LapsedOptions): Promise<void> {
  const { runBase, layout, nft, run, runtime } = options;
  const places = instancePlaces(claim.dataDir, runBase);
  const { prefix, runtimeRoot, cgroupParent } = places;
  const cli = new RuntimeCli({ command: runtime, root: runtimeRoot, run });
  // Each step may take seconds, and the list of claims is as old as all of them together.
  const stillGone = async (): Promise<void> => {
    if (!(await isGone(claim.dataDir))) throw new Error(`${claim.dataDir} is there again`);
  };
  // It may have been another runtime's sandbox; the end of its control group is what ends it for certain.
  for (const id of stateOwners(await readdir(runtimeRoot).catch(() => []))) {
    await stillGone();
    await cli.remove(id).catch(() => undefined);
  }
  for (const id of await listGroups(layout, cgroupParent)) {
    await stillGone();
    await removeGroup(layout, `${cgroupParent}/${id}`);
  }
  await stillGone();
  await removeGroup(layout, cgroupParent);
  for (const id of await listRoots(places)) {
    await stillGone();
    await unmountRoot(places, id, run);
  }
  // Before the rules: what may still run behind one of them, in a container of a daemon, must not have a network without rules.
  await stillGone();
  await removeInterfaces(claim, prefix, options);
  await stillGone();
  await nft.apply(`add table inet ${prefix}\ndelete table inet ${prefix}\n`);
  await stillGone();
  await rm(places.run, { recursive: true, force: true });
  await stillGone();
  await releaseRanges(idRegistryPlace(runBase), claim.dataDir);
  await rm(claim.file, { force: true });
}

async function removeInterfaces(claim: Claim, prefix: string, { nft, run }: LapsedOptions): Promise<void> {
  const inBlock = interfacesInto(claim.subnet, await readFile('/proc/net/route', 'utf8').catch(() => ''));
  const members = new Set((await nft.list(prefix, 'members')).map(({ ifname }) => ifname));
  for (const name of await interfaces()) {
    // The plugins name theirs at random, so that one of the table may be another's by now; its addresses tell.
    if (!name.startsWith(`${prefix}-`) && !(members.has(name) && inBlock.has(name))) continue;
    const { code, stderr } = await run(['ip', 'link', 'delete', 'dev', name]);
    if (code !== 0 && (await interfaces()).includes(name)) throw new Error(`${name}: ${stderr.trim()}`);
  }
}

function interfaces(): Promise<string[]> {
  return readdir('/sys/class/net');
}
