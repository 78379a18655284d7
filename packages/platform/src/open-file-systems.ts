import { access } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import type { Clock } from './kernel/clock.ts';
import type { ObjectStore } from './kernel/objects/index.ts';
import { runCommand } from './kernel/sandbox/index.ts';
import { SessionStorage } from './kernel/session-storage/index.ts';
import { readPlaces, SharedPlaces } from './kernel/shared-places/index.ts';

export interface FileSystemParts {
  /** Why sandboxes have no mounts here; undefined when they have. */
  unavailable: string | undefined;
  /** Undefined where a file system of bounded size cannot be had. */
  storage: SessionStorage | undefined;
  places: SharedPlaces;
  close(): Promise<void>;
}

/** Opens what sandboxes can mount, before the first of them is made. Rejects when the operator shares a place that cannot be shared. */
export async function openFileSystems(
  { data: dataDir, region, sandbox, session }: Pick<Config, 'data' | 'region' | 'sandbox' | 'session'>,
  { accountId, objects, clock, log }: { accountId: string; objects: ObjectStore; clock: Clock; log: Logger },
): Promise<FileSystemParts> {
  const run = runCommand;
  const isolated = sandbox.provider !== 'process';
  const places = await SharedPlaces.open({
    places: isolated ? readPlaces(sandbox.sharedMounts ?? '') : new Map(),
    region,
    accountId,
    dataDir,
    objects,
    run,
    log,
  });
  const storage = isolated ? await openStorage() : undefined;
  return {
    unavailable: isolated ? undefined : 'its sandboxes have no file system of their own (provider process)',
    storage,
    places,
    async close() {
      await storage?.close();
      await places.close();
    },
  };

  async function openStorage(): Promise<SessionStorage | undefined> {
    try {
      if (sandbox.disk === 'loop') await access('/dev/loop-control');
      else throw new Error('sandbox.disk is tmpfs');
      return await SessionStorage.open({
        dataDir,
        bytes: session.storageBytes,
        idleMs: session.storageIdleSeconds * 1000,
        clock,
        log,
        run,
      });
    } catch (error) {
      log.info({ err: error }, 'sessions have no storage here: it needs loop devices and the right to mount');
      return undefined;
    }
  }
}
