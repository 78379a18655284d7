import type { Sink } from '../../../kernel/journal/index.ts';
import { addMetered, counted, type Metered } from '../../../kernel/metering/index.ts';
import type { Executor } from '../../../kernel/storage/index.ts';
import { stored } from '../../../kernel/stored-shape.ts';
import { type ModelUse, storedModelUse } from './model-use.ts';

/** What the models of a gateway did since some time, for one caller. */
export interface UsageRow {
  target: string;
  model: string;
  caller: string;
  /** Attempts, those that failed among them. */
  calls: number;
  failed: number;
  /** Those of them whose tokens are an estimate. */
  estimated: number;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
}

/** Takes attempts from the journal into `gateway_usage`, which has a row for each hour. */
export const usageSink: Sink<ModelUse> = {
  parse: stored(storedModelUse).parse,
  async apply(tx, records) {
    await tx.execute(ADD, [JSON.stringify(records.map(({ data: { usage, ...rest } }) => ({ ...rest, ...usage })))]);
    await addMetered(
      tx,
      records.flatMap(({ data }) => tokensOf(data)),
    );
  },
};

function tokensOf({ at, gatewayArn, caller, usage: { input, output } }: ModelUse): Metered[] {
  const [, , , , accountId = ''] = gatewayArn.split(':');
  const whose = { accountId, resourceArn: gatewayArn, userId: caller };
  return [
    counted('input-tokens', whose, { at, quantity: Math.round(input) }),
    counted('output-tokens', whose, { at, quantity: Math.round(output) }),
  ];
}

/** What was used of a gateway from that hour on, the most tokens first. */
export function readUsage(
  database: Pick<Executor, 'query'>,
  gatewayArn: string,
  since: Date,
  limit: number,
): Promise<UsageRow[]> {
  return database.query<UsageRow>(READ, [gatewayArn, since, limit]);
}

/** Forgets the hours before that time, at most so many rows. */
export function forgetUsage(database: Executor, before: Date, limit: number): Promise<number> {
  return database.execute(
    `DELETE FROM gateway_usage WHERE (gateway_arn, hour, target, model, caller) IN
       (SELECT gateway_arn, hour, target, model, caller FROM gateway_usage WHERE hour < $1 ORDER BY hour LIMIT $2)`,
    [before, limit],
  );
}

const ADD = `
  INSERT INTO gateway_usage AS u
    (gateway_arn, hour, target, model, caller, calls, failed, estimated, input, output, cache_read, cache_write)
  SELECT "gatewayArn", date_trunc('hour', to_timestamp(at / 1000)), target, model, caller, count(*),
    count(*) FILTER (WHERE failed), count(*) FILTER (WHERE estimated), sum(input), sum(output), sum("cacheRead"), sum("cacheWrite")
  FROM json_to_recordset($1::json) AS r("gatewayArn" text, at float8, target text, model text, caller text, failed boolean,
    estimated boolean, input bigint, output bigint, "cacheRead" bigint, "cacheWrite" bigint)
  GROUP BY 1, 2, 3, 4, 5
  -- The same for all servers, so that none waits for another in a circle.
  ORDER BY 1, 2, 3, 4, 5
  ON CONFLICT (gateway_arn, hour, target, model, caller) DO UPDATE SET
    calls = u.calls + excluded.calls, failed = u.failed + excluded.failed, estimated = u.estimated + excluded.estimated,
    input = u.input + excluded.input, output = u.output + excluded.output,
    cache_read = u.cache_read + excluded.cache_read, cache_write = u.cache_write + excluded.cache_write`;

const READ = `
  SELECT target, model, caller, sum(calls)::float8 AS calls, sum(failed)::float8 AS failed, sum(estimated)::float8 AS estimated,
    sum(input)::float8 AS "inputTokens", sum(output)::float8 AS "outputTokens",
    sum(cache_read)::float8 AS "cacheReadTokens", sum(cache_write)::float8 AS "cacheWriteTokens"
  FROM gateway_usage WHERE gateway_arn = $1 AND hour >= date_trunc('hour', $2::timestamptz)
  GROUP BY target, model, caller ORDER BY sum(input + output) DESC, target, model, caller LIMIT $3`;
