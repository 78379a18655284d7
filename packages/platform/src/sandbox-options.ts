import type { Logger } from 'pino';
import type { Config } from './config.ts';
import type { Clock } from './kernel/clock.ts';
import type { HostStage } from './kernel/sandbox/host-stage.ts';
import { readPlaces } from './kernel/shared-places/index.ts';

/** The settings of isolation as the kernel's providers take them; `stage` finds images and volumes; `sandboxEndpoint` gives the port that sandboxes reach the platform by, once it is open. */
export function sandboxOptions(
  { data, sandbox }: Pick<Config, 'data' | 'sandbox'>,
  {
    cacheDir,
    ...parts
  }: { cacheDir: string; stage: HostStage; sandboxEndpoint(): number | undefined; clock: Clock; log: Logger },
) {
  return {
    dataDir: data,
    seen: [{ of: 'the cache', path: cacheDir, always: false }, ...seenPlaces(sandbox.sharedMounts ?? '')],
    runtime: sandbox.ociRuntime,
    socketPath: sandbox.dockerSocket,
    dockerRuntime: sandbox.dockerRuntime,
    cniDir: sandbox.cniDir,
    disk: sandbox.disk,
    snapshotBytes: sandbox.snapshotBytes,
    poolSize: sandbox.preparedNetworks,
    firstId: sandbox.firstId,
    idRanges: sandbox.idRanges,
    creates: { running: sandbox.maxConcurrentStarts, waiting: sandbox.maxQueuedStarts },
    ...parts,
  };
}

/** NFS, and the file system of a prefix of the object store, never show files with other owners. */
function seenPlaces(sharedMounts: string) {
  return [...readPlaces(sharedMounts)].map(([id, place]) => ({
    of: `the shared place ${id}`,
    path: place.kind === 'directory' ? place.path : undefined,
    always: false,
  }));
}
