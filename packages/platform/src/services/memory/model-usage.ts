import type { Clock } from '../../kernel/clock.ts';
import type { Executor } from '../../kernel/storage/index.ts';
import type { ModelUse } from './extraction/model-extractor.ts';

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
