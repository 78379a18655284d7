import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { type CacheDirectory, cacheDirectory } from './cache-directory.ts';
import type { Closing } from './closing.ts';
import { configuredModels } from './config/models.ts';
import type { Config } from './config.ts';
import { makeDataDirectory, tryDataDirectory } from './data-directory.ts';
import { identifiers } from './identifiers.ts';
import { type Clock, systemClock } from './kernel/clock.ts';
import { forbidCoreDumps } from './kernel/core-dumps.ts';
import { DiskRoom } from './kernel/disk-room.ts';
import { createModels, type Models } from './kernel/models/index.ts';
import { createOutbound, type Outbound } from './kernel/outbound/index.ts';
import { Preparations } from './kernel/preparations.ts';
import {
  createSandboxProvider,
  LeftSandboxes,
  LiveSandboxes,
  type ProbeReport,
  probeProviders,
  ReservedMemory,
} from './kernel/sandbox/index.ts';
import { readPlaces } from './kernel/shared-places/index.ts';
import { createLogger, createMetrics, logFormat, type Metrics, type Tracer } from './kernel/telemetry/index.ts';
import { Unhandled } from './kernel/unhandled.ts';
import type { Life } from './life.ts';
import { LocalStage } from './local-stage.ts';
import { openTracer, telemetryResource } from './open-telemetry.ts';
import { sandboxOptions } from './sandbox-options.ts';
import { promisedMemory } from './session-options.ts';

/** What is there before anything is stored: the machine, and how this server came to be. */
export interface Ground {
  config: Config;
  life: Life;
  closing: Closing;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  unhandled: Unhandled;
  identifiers: typeof identifiers;
  region: string;
  /** For what can be made or fetched again. */
  cache: CacheDirectory;
  /** What is made or fetched in the background. */
  preparations: Preparations;
  /** Empty at each start. */
  temporaryDir: string;
  room: DiskRoom;
  /** Calls to addresses that users supplied. */
  outbound: Outbound;
  /** Calls to what the configuration itself names: on private addresses, too, and out of users' reach. */
  ownOutbound: Outbound;
  models: Models;
  tracer: Tracer;
  /** What its spans and metrics are of, in OpenTelemetry's names. */
  resource: Record<string, string>;
  provider: LiveSandboxes;
  /** What the provider finds images and volumes by; it knows them once their rooms are open. */
  stage: LocalStage;
  /** What of the machine's memory sandboxes were promised. */
  reserved: ReservedMemory;
  report: ProbeReport;
  /** What isolation the machine offers. */
  probe(): Promise<ProbeReport[]>;
  /** Where the platform is reached; both are known once it listens. */
  reach: { endpoint?: string; sandboxPort?: number };
}

/** Takes hold of the machine. Isolation comes first: without it nothing else is worth starting. */
export async function openGround(config: Config, life: Life, closing: Closing): Promise<Ground> {
  const { data, region } = config;
  const clock = systemClock;
  const log = createLogger({ level: config.log.level, format: logFormat(config.log.format) });
  // Before there is a secret in memory.
  await forbidCoreDumps(log);
  await makeDataDirectory(data);
  const cache = await cacheDirectory(config, process.env, log);
  const { reserveBytes, reservePercent } = config.disk;
  const reserve = { bytes: reserveBytes, percent: reservePercent };
  const room = await DiskRoom.open({ path: data, reserve, clock, log });
  closing.add(async () => room.close());

  const reach: Ground['reach'] = {};
  const stage = new LocalStage();
  const sandboxEndpoint = (): number | undefined => reach.sandboxPort;
  const isolation = sandboxOptions(config, { cacheDir: cache.path, stage, sandboxEndpoint, clock, log });
  const choose = () => createSandboxProvider({ ...isolation, provider: config.sandbox.provider });
  const { provider: chosen, report } = await choose();
  const left = new LeftSandboxes(async () => (await choose()).provider, log);
  await room.makeRoom(left.endLargest).finally(() => left.close());
  await tryDataDirectory(data);
  await watchOtherDisks(room, { config, cache, report });
  const reserved = new ReservedMemory(chosen, promisedMemory(config));
  const provider = new LiveSandboxes(reserved);
  closing.add(() => provider.close());
  const outbound = createOutbound({ allowPrivate: config.outbound.allowPrivateEgress, clock });
  closing.add(() => outbound.close());
  const ownOutbound = createOutbound({ anywhere: true, clock });
  closing.add(() => ownOutbound.close());
  const resource = telemetryResource(config);
  const tracer = await openTracer({ config, resource, ownOutbound, clock, log });
  closing.add(() => tracer.close());
  const models = createModels(configuredModels(config.models), config.models.default, {
    outbound: ownOutbound,
    timeoutMs: config.models.timeoutSeconds * 1000,
  });
  return {
    ...{
      config,
      life,
      closing,
      clock,
      log,
      identifiers,
      region,
      room,
      outbound,
      ownOutbound,
      models,
      tracer,
      resource,
      provider,
      stage,
      reserved,
      report,
      reach,
    },
    metrics: createMetrics(),
    preparations: new Preparations(clock, log),
    unhandled: new Unhandled(log),
    cache,
    temporaryDir: await emptyDirectory(join(data, 'tmp')),
    probe: () => probeProviders(isolation),
  };
}

/** What is written beside the data directory. NFS is left out: a server of it that is silent would hold up whoever asks. */
async function watchOtherDisks(
  room: DiskRoom,
  { config, cache, report }: { config: Config; cache: CacheDirectory; report: ProbeReport },
): Promise<void> {
  await room.watch({ of: 'the cache', path: cache.path, own: true });
  if (report.keepsAt !== undefined) await room.watch({ of: 'the Docker daemon', path: report.keepsAt, own: true });
  if (report.provider === 'process') return;
  for (const [id, place] of readPlaces(config.sandbox.sharedMounts ?? ''))
    if (place.kind === 'directory') await room.watch({ of: `the shared place ${id}`, path: place.path, own: false });
}

async function emptyDirectory(path: string): Promise<string> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { mode: 0o700 });
  return path;
}
