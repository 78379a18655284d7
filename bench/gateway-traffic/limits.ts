import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { migrate, openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { allMigrations } from '../../packages/platform/src/migrations.ts';
import { loadServices } from '../../packages/platform/src/open-services.ts';
import {
  Connections,
  LimitedRequests,
  openLimit,
  Permits,
} from '../../packages/platform/src/services/gateway/rate-limits/index.ts';
import { services } from '../../packages/platform/src/services.ts';
import { median, percentile } from '../support/statistics.ts';

/** Microseconds. */
export interface LimitTimes {
  checkP50: number;
  checkP99: number;
  drawP50: number;
  drawP99: number;
}

const log = pino({ level: 'silent' });
/** A clock tells a millionth of a second at best: so many checks are timed together. */
const TOGETHER = 20;

/**
 * What one rate limit costs a request, in this process with the embedded database: from a portion that is there, and with a draw for it. The check
 * is all of it: values of the dimensions, entry, permit, and the end of the request.
 */
export async function limitTimes(checks: number, draws: number): Promise<LimitTimes> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bench-limits-'));
  const database = await openDatabase({ log, dataDir });
  const permits = new Permits({ database, clock: systemClock, log });
  const connections = new Connections({ database, clock: systemClock, epoch: 1, log });
  try {
    await migrate(database, allMigrations((await loadServices(services)).map(({ module }) => module)), log);
    const limited = new LimitedRequests({ permits, connections });
    const dimensionKeys = ['targetName', '$.context.iam.principal'];
    const entries = [{ dimensions: { targetName: '*' }, requests: [{ rate: 1e9, period: 'minute' as const }] }];
    const limits = [openLimit({ gatewayArn: 'arn', id: 'bench', dimensionKeys, entries, createdAt: 0, updatedAt: 0 })];
    const principal = {
      kind: 'iam' as const,
      accountId: '1',
      arn: 'arn:aws:iam::1:user/ann',
      accessKeyId: 'A',
      tags: {},
    };
    const admit = async (targetName: string): Promise<void> => {
      const { end } = await limited.admit(limits, [{ principal, headers: {}, body: undefined, targetName }]);
      end();
    };
    for (let i = 0; i < 2_000; i += 1) await admit('warm');
    const checked: number[] = [];
    for (let i = 0; i < checks; i += TOGETHER) {
      const begun = performance.now();
      for (let j = 0; j < TOGETHER; j += 1) await admit('warm');
      checked.push(((performance.now() - begun) * 1000) / TOGETHER);
    }
    const drawn: number[] = [];
    for (let i = 0; i < draws; i += 1) {
      const begun = performance.now();
      await admit(`target-${i}`);
      drawn.push((performance.now() - begun) * 1000);
    }
    return {
      ...{ checkP50: median(checked), checkP99: percentile(checked, 0.99) },
      ...{ drawP50: median(drawn), drawP99: percentile(drawn, 0.99) },
    };
  } finally {
    await permits.close();
    await connections.close();
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}
