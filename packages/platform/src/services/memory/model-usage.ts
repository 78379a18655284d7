import type { Clock } from '../../kernel/clock.ts';
import type { Executor } from '../../kernel/storage/index.ts';
import type { ModelUse } from './extraction/model-extractor.ts';
import { MEMORY_KIND } from './memory.ts';

/** Adds one call of a model to the day's account of the memory's strategy. */
export async function meterModel(executor: Executor, clock: Clock, use: ModelUse): Promise<void> {
  await executor.execute(
    `INSERT INTO memory_model_usage AS u (memory_id, strategy_id, day, model, calls, input_tokens, output_tokens)
     VALUES ($1, $2, $3::date, $4, 1, $5, $6)
     ON CONFLICT (memory_id, strategy_id, day, model) DO UPDATE SET calls = u.calls + 1,
       input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens`,
    [
      use.memoryId,
      use.strategyId,
      new Date(clock.now()).toISOString().slice(0, 10),
      use.model,
      use.inputTokens,
      use.outputTokens,
    ],
  );
}

/** What a model did for one strategy of a memory on one day. */
export interface ModelUsageRow {
  memoryId: string;
  strategyId: string;
  /** Of UTC, such as 2026-01-31. */
  day: string;
  model: string;
  calls: number;
  inputTokens: number;
  outputTokens: number;
}

/** Of the account's memories that are there, from that day on, the newest first. */
export function readModelUsage(
  executor: Pick<Executor, 'query'>,
  accountId: string,
  since: Date,
  limit: number,
): Promise<ModelUsageRow[]> {
  return executor.query<ModelUsageRow>(
    `SELECT u.memory_id AS "memoryId", u.strategy_id AS "strategyId", u.day::text AS day, u.model, u.calls::float8 AS calls,
       u.input_tokens::float8 AS "inputTokens", u.output_tokens::float8 AS "outputTokens"
     FROM memory_model_usage u JOIN resources r ON r.id = u.memory_id AND r.kind = $1
     WHERE r.account_id = $2 AND u.day >= $3::date
     ORDER BY u.day DESC, u.memory_id, u.strategy_id, u.model LIMIT $4`,
    [MEMORY_KIND, accountId, since.toISOString().slice(0, 10), limit],
  );
}
