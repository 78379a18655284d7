import type { Executor } from '../storage/index.ts';
import type { UsageSample } from './usage.ts';

/** Takes samples from the journal into `session_usage`. Applying one twice, or an older after a newer, changes nothing. */
export async function applyUsageSamples(tx: Executor, samples: readonly UsageSample[]): Promise<void> {
  const latest = new Map<string, UsageSample>();
  for (const sample of samples) {
    const known = latest.get(sample.sandboxId);
    latest.set(sample.sandboxId, known ? merge(known, sample) : sample);
  }
  for (const sample of latest.values()) {
    await tx.execute(
      `INSERT INTO session_usage AS u (sandbox_id, kind, account_id, resource_arn, session_id, started_at, last_sample_at, cpu_seconds, memory_high_water_bytes, final)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
       ON CONFLICT (sandbox_id) DO UPDATE SET
         last_sample_at = greatest(u.last_sample_at, excluded.last_sample_at),
         cpu_seconds = greatest(u.cpu_seconds, excluded.cpu_seconds),
         memory_high_water_bytes = greatest(u.memory_high_water_bytes, excluded.memory_high_water_bytes),
         final = u.final OR excluded.final`,
      [
        sample.sandboxId,
        sample.kind,
        sample.accountId,
        sample.resourceArn,
        sample.sessionId,
        Math.round(sample.startedAt),
        Math.round(sample.at),
        sample.cpuSeconds,
        Math.round(sample.memoryHighWaterBytes),
        sample.final,
      ],
    );
  }
}

function merge(a: UsageSample, b: UsageSample): UsageSample {
  return {
    ...a,
    at: Math.max(a.at, b.at),
    cpuSeconds: Math.max(a.cpuSeconds, b.cpuSeconds),
    memoryHighWaterBytes: Math.max(a.memoryHighWaterBytes, b.memoryHighWaterBytes),
    final: a.final || b.final,
  };
}

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
