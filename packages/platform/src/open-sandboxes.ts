import { join } from 'node:path';
import { SandboxCredentials } from './kernel/auth/index.ts';
import { createImages, type ImagesRoom } from './kernel/images/index.ts';
import type { ObjectStore } from './kernel/objects/index.ts';
import type { NetworkPolicy } from './kernel/sandbox/index.ts';
import { platformKey } from './kernel/secrets/index.ts';
import { createSqlSessionStore, LogArchive, Sessions } from './kernel/sessions/index.ts';
import type { Access } from './open-access.ts';
import { type FileSystemParts, openFileSystems } from './open-file-systems.ts';
import type { Ground } from './open-ground.ts';
import { openObjects } from './open-objects.ts';
import type { Storage } from './open-storage.ts';
import { roomToPool, sessionOptions } from './session-options.ts';
import { objectLimits } from './storage-quotas.ts';

/** What sandboxes are made of, and the sessions that live in them. */
export interface Sandboxes {
  images: ImagesRoom;
  objects: ObjectStore;
  fileSystems: FileSystemParts;
  sandboxCredentials: SandboxCredentials;
  sessions: Sessions;
  /** What ended sessions printed last. */
  archive: LogArchive;
  /** What a sandbox may reach unless its resource says otherwise. */
  network: NetworkPolicy;
}

export async function openSandboxes(parts: Ground & Storage & Access): Promise<Sandboxes> {
  const { config, cache, accountId, iam, provider, secrets, clock, log, room, closing } = parts;
  const { data } = config;
  const images = await createImages({
    dataDir: data,
    clock,
    log,
    outbound: parts.outbound.apart(),
    cacheDir: cache.path,
    sharedDir: cache.shared ? join(cache.path, 'images') : undefined,
    limits: {
      imageBytes: config.images.maxImageBytes,
      zipBytes: config.images.maxZipBytes,
      zipUnpackedBytes: config.images.maxUnzippedBytes,
    },
    quotas: { accountBytes: config.quotas.imageBytesPerAccount, accountParts: config.quotas.imagePartsPerAccount },
  });
  closing.add(() => images.close());
  const { objects, close: closeObjects } = await openObjects(config, accountId, {
    clock,
    limits: objectLimits(config, room.report().total),
    needRoom: room.need,
  });
  closing.add(async () => closeObjects());
  const fileSystems = await openFileSystems(config, { accountId, objects, clock, log });
  closing.add(() => fileSystems.close());
  parts.stage.open({ images, ...fileSystems });
  const sandboxCredentials = new SandboxCredentials({
    roles: iam,
    findSandbox: (id) => provider.find(id),
    key: await platformKey(secrets, accountId, 'sandbox-credentials'),
    ttlSeconds: config.sandbox.credentialsSeconds,
    clock,
  });
  const archive = new LogArchive(join(data, 'logs'), log);
  const sessions = openSessions(parts, archive);
  const { egress, allowPrivateEgress: allowCidrs } = config.sandbox;
  const network = { egress, allowCidrs, hostPorts: [] };
  return { images, objects, fileSystems, sandboxCredentials, sessions, archive, network };
}

function openSessions(parts: Ground & Storage & Access, archive: LogArchive): Sessions {
  const { config, database, journal, metrics, report, reserved, room, lease, closing } = parts;
  const sessions = new Sessions({
    ...parts,
    store: createSqlSessionStore(database),
    hold: lease,
    roomToPool: () => roomToPool() && reserved.roomToPool && !room.low,
    needRoom: room.need,
    recordUsage: (sample) => void journal.record('usage', sample),
    recordStart: (outcome, seconds) => metrics.sandboxStart(report.provider, outcome).observe(seconds),
    keepLog: (row, endedAt, lines) => archive.keep(row, endedAt, lines),
    newSandboxId: parts.identifiers.sandbox,
    options: sessionOptions(config),
  });
  closing.add(() => sessions.close());
  return sessions;
}
