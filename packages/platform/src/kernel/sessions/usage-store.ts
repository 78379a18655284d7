import { addMetered, type Billed, billUpTo, type Metered } from '../metering/index.ts';
import type { Executor } from '../storage/index.ts';
import type { UsageSample } from './usage.ts';

/**
 * Takes samples from the journal into `session_usage`, and bills what they add (`kernel/metering`), in their transaction. Applying one twice, or an older
 * after a newer, changes nothing.
 */
export async function applyUsageSamples(tx: Executor, samples: readonly UsageSample[]): Promise<void> {
  const metered: Metered[] = [];
  // In order of ids, so that two servers never wait for each other in a circle.
  for (const [, group] of [...Map.groupBy(samples, ({ sandboxId }) => sandboxId)].sort(([a], [b]) => (a < b ? -1 : 1)))
    metered.push(...(await applyTo(tx, group)));
  await addMetered(tx, metered);
}

/** What was used is the sandbox's whose samples these are. */
async function applyTo(tx: Executor, samples: readonly UsageSample[]): Promise<Metered[]> {
  const [first] = samples;
  if (!first) return [];
  const { sandboxId, kind, accountId, resourceArn, sessionId } = first;
  await tx.execute(
    `INSERT INTO session_usage (sandbox_id, kind, account_id, resource_arn, session_id, started_at, last_sample_at, cpu_seconds,
       memory_high_water_bytes, final)
     VALUES ($1, $2, $3, $4, $5, $6, $6, 0, 0, false) ON CONFLICT DO NOTHING`,
    [sandboxId, kind, accountId, resourceArn, sessionId, Math.round(first.startedAt)],
  );
  const [row] = await tx.query<Billed>(BILLED, [sandboxId]);
  if (!row) return [];
  const metered: Metered[] = [];
  let billed = row;
  for (const sample of samples) {
    const step = billUpTo(billed, sample);
    billed = step.billed;
    const whose = { accountId, piece: kind, resourceArn, sessionId, userId: '' };
    for (const { day, memoryKibSeconds, cpuMicros } of step.use)
      metered.push(
        { day, ...whose, unit: 'memory-kib-seconds', quantity: memoryKibSeconds },
        { day, ...whose, unit: 'cpu-microseconds', quantity: cpuMicros },
      );
  }
  await tx.execute(
    `UPDATE session_usage SET last_sample_at = greatest(last_sample_at, $2), cpu_seconds = greatest(cpu_seconds, $3),
       memory_high_water_bytes = $4, final = final OR $5, billed_seconds = $6, billed_cpu_micros = $7
     WHERE sandbox_id = $1`,
    [
      sandboxId,
      Math.round(Math.max(...samples.map(({ at }) => at))),
      Math.max(...samples.map(({ cpuSeconds }) => cpuSeconds)),
      ...[billed.memoryHighWaterBytes, samples.some(({ final }) => final), billed.seconds, billed.cpuMicros],
    ],
  );
  return metered;
}

const BILLED = `
  SELECT started_at AS "startedAt", billed_seconds AS seconds, billed_cpu_micros AS "cpuMicros",
    memory_high_water_bytes AS "memoryHighWaterBytes"
  FROM session_usage WHERE sandbox_id = $1 FOR UPDATE`;

/** What one sandbox of a session had used when it was last looked at. */
export interface SessionUsage {
  /** Name of the `SessionKind`; empty for what is older than kinds. */
  kind: string;
  resourceArn: string;
  sessionId: string;
  /** Milliseconds since the epoch. */
  startedAt: number;
  lastSampleAt: number;
  cpuSeconds: number;
  memoryHighWaterBytes: number;
  /** The sandbox is gone: this is all. */
  final: boolean;
}

/** The account's sandboxes that were used since then, the newest first. */
export function readSessionUsage(
  executor: Pick<Executor, 'query'>,
  accountId: string,
  since: Date,
  limit: number,
): Promise<SessionUsage[]> {
  return executor.query<SessionUsage>(
    `SELECT kind, resource_arn AS "resourceArn", session_id AS "sessionId", started_at::float8 AS "startedAt",
       last_sample_at::float8 AS "lastSampleAt", cpu_seconds AS "cpuSeconds",
       memory_high_water_bytes::float8 AS "memoryHighWaterBytes", final
     FROM session_usage WHERE account_id = $1 AND last_sample_at >= $2
     ORDER BY started_at DESC, sandbox_id LIMIT $3`,
    [accountId, since.getTime(), limit],
  );
}
