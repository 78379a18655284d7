import { createPaginator, type Paginator } from '@agentplatform/contract';
import type { Closing } from './closing.ts';
import type { Config } from './config.ts';
import { createJobs, type Jobs } from './kernel/jobs/index.ts';
import { createMeter, type Meter } from './kernel/metering/index.ts';
import { platformKey } from './kernel/secrets/index.ts';
import type { Life } from './life.ts';
import { type Access, openAccess } from './open-access.ts';
import { type Ground, openGround } from './open-ground.ts';
import { openSandboxes, type Sandboxes } from './open-sandboxes.ts';
import { openStorage, type Storage } from './open-storage.ts';
import { openMetricsExport } from './open-telemetry.ts';
import type { AnyModule } from './service-module.ts';
import { watchMetrics } from './watch-metrics.ts';

/** What every service stands on, and is handed whole when it is made. */
export interface Kernel extends Ground, Storage, Access, Sandboxes {
  paginator: Paginator;
  jobs: Jobs;
  meter: Meter;
}

/** Opens the common parts in order, each from those above it, for the tables and records of these services. What must be closed goes into `closing`. */
export async function openKernel(
  config: Config,
  { life, closing, modules }: { life: Life; closing: Closing; modules: readonly AnyModule[] },
): Promise<Kernel> {
  const ground = await openGround(config, life, closing);
  const storage = await openStorage(ground, modules);
  const access = await openAccess({ ...ground, ...storage });
  const sandboxes = await openSandboxes({ ...ground, ...storage, ...access });
  const { database, secrets } = storage;
  const paginator = createPaginator(await platformKey(secrets, access.accountId, 'page-tokens'));
  const jobs = createJobs({ database, log: ground.log, clock: ground.clock, tracer: ground.tracer });
  closing.add(() => jobs.stop());
  const meter = createMeter({ journal: storage.journal, clock: ground.clock });
  const kernel = { ...ground, ...storage, ...access, ...sandboxes, paginator, jobs, meter };
  watchMetrics(kernel.metrics, kernel);
  closing.add(await openMetricsExport(kernel));
  return kernel;
}
