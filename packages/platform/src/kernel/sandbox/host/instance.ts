import { createHash } from 'node:crypto';
import { chmod, mkdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { awaitCollector } from '../network/subnets.ts';

/**
 * The names and places of one platform's sandboxes. Everything outside the data directory carries `prefix`, which is derived
 * from the data directory, so that several platforms on one machine never touch each other's.
 */
export interface Instance {
  /** `ap` and ten hexadecimal digits. */
  prefix: string;
  /** Resolved data directory. */
  dataDir: string;
  /** State, disk image and log of each sandbox, in a directory of its id. */
  sandboxes: string;
  /** Gone after a reboot, like what it describes: runtime state, address leases, mount points. */
  run: string;
  runtimeRoot: string;
  leases: string;
  /** Mount points used by each sandbox's owner inside a mount namespace of its own. */
  diskMount: string;
  rootMount: string;
  placesMount: string;
  /** What sandboxes that start just now are told in secret; empty otherwise. */
  secrets: string;
  cgroupParent: string;
}

/** Names and places of a platform whose resolved data directory is `dataDir`; touches nothing. */
export function instancePlaces(dataDir: string, runBase: string): Instance {
  const prefix = `ap${createHash('sha256').update(dataDir).digest('hex').slice(0, 10)}`;
  const run = join(runBase, prefix);
  return {
    prefix,
    dataDir,
    sandboxes: join(dataDir, 'sandboxes'),
    run,
    runtimeRoot: join(run, 'runtime'),
    leases: join(run, 'leases'),
    diskMount: join(run, 'disk'),
    rootMount: join(run, 'root'),
    placesMount: join(run, 'places'),
    secrets: join(run, 'secrets'),
    cgroupParent: `/${prefix}`,
  };
}

/** Where platforms on this machine agree on ranges of ids. */
export function idRegistryPlace(runBase: string): string {
  return join(runBase, 'ids');
}

/** Where platforms on this machine agree on address ranges. */
export function registryPlace(runBase: string): string {
  return join(runBase, 'subnets');
}

/**
 * Derives and creates the directories. Rejects with SandboxError `unavailable` when what an earlier platform of this data directory left
 * is being removed for too long.
 */
export async function openInstance(dataDir: string, runBase = '/run/agentplatform'): Promise<Instance> {
  await mkdir(dataDir, { recursive: true });
  const instance = instancePlaces(await realpath(dataDir), runBase);
  await awaitCollector(instance.dataDir, registryPlace(runBase));
  // A server that was killed while one started left them.
  await rm(instance.secrets, { recursive: true, force: true });
  // Passed through, not read, by the runtime's first steps, which it does as an unprivileged user.
  for (const dir of [runBase, instance.run]) await directory(dir, 0o711);
  await directory(instance.rootMount, 0o755);
  for (const dir of [
    instance.sandboxes,
    instance.runtimeRoot,
    instance.leases,
    instance.diskMount,
    instance.placesMount,
    instance.secrets,
  ])
    await directory(dir, 0o700);
  return instance;
}

/** The mode is set regardless of the umask. */
async function directory(path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true });
  await chmod(path, mode);
}
