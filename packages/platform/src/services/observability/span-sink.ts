import type { Sink } from '../../kernel/journal/index.ts';
import type { Executor, RetentionRule } from '../../kernel/storage/index.ts';
import { stored } from '../../kernel/stored-shape.ts';
import { type SpanRow, storedRows } from './span-row.ts';

/** Takes batches of spans from the journal into their day's partition, and adds what is new to its session's line. */
export const spanSink: Sink<{ rows: SpanRow[] }> = {
  parse: stored(storedRows).parse,
  async apply(tx, records) {
    const rows = records.flatMap(({ data }) => data.rows);
    if (rows.length === 0) return;
    for (const day of new Set(rows.map((row) => row.day))) await makePartition(tx, day);
    await tx.execute(ADD, [JSON.stringify(rows)]);
  },
};

const DAY_MS = 86_400_000;
const nameOf = (day: string): string => `spans_${day.replaceAll('-', '')}`;

async function makePartition(tx: Executor, day: string): Promise<void> {
  const [there] = await tx.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [nameOf(day)]);
  if (there?.there) return;
  const next = new Date(Date.parse(day) + DAY_MS).toISOString().slice(0, 10);
  await tx.exec(
    `CREATE TABLE IF NOT EXISTS ${nameOf(day)} PARTITION OF spans FOR VALUES FROM ('${day}') TO ('${next}')`,
  );
}

/** Spans are forgotten a day at a time, and the lines of sessions that nothing came of for as long. */
export function spanRetention(database: Executor, keepMs: number): RetentionRule {
  return {
    name: 'spans',
    keepMs,
    async forget(before, limit) {
      const last = nameOf(new Date(before - DAY_MS).toISOString().slice(0, 10));
      const old = await database.query<{ name: string }>(
        `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'spans'::regclass AND c.relname < $1 ORDER BY c.relname LIMIT 10`,
        [last],
      );
      for (const { name } of old) await database.exec(`DROP TABLE IF EXISTS ${name}`);
      const lines = await database.execute(
        `DELETE FROM traced_sessions WHERE ctid IN (SELECT ctid FROM traced_sessions WHERE received_at < $1 LIMIT ${limit})`,
        [Math.floor(before)],
      );
      return old.length + lines;
    },
  };
}

const ADD = `
  WITH added AS (
    INSERT INTO spans (day, account_id, trace_id, span_id, parent_span_id, agent, session_id, user_id, service, scope, name, kind,
      operation, agent_name, model, tool, input_tokens, output_tokens, started_us, duration_us, status, status_message, names_version,
      detail, received_at)
    SELECT day, "accountId", "traceId", "spanId", "parentSpanId", agent, "sessionId", "userId", service, scope, name, kind, operation,
      "agentName", model, tool, "inputTokens", "outputTokens", "startedUs", "durationUs", status, "statusMessage", "namesVersion", detail,
      "receivedAt"
    FROM json_to_recordset($1::json) AS r(day date, "accountId" text, "traceId" text, "spanId" text, "parentSpanId" text, agent text,
      "sessionId" text, "userId" text, service text, scope text, name text, kind smallint, operation text, "agentName" text, model text,
      tool text, "inputTokens" bigint, "outputTokens" bigint, "startedUs" bigint, "durationUs" bigint, status smallint,
      "statusMessage" text, "namesVersion" smallint, detail text, "receivedAt" bigint)
    ON CONFLICT DO NOTHING
    RETURNING account_id, session_id, agent, user_id, operation, input_tokens, output_tokens, started_us, duration_us, status, received_at
  )
  INSERT INTO traced_sessions AS s (account_id, session_id, agent, user_id, first_us, last_us, spans, errors, input_tokens, output_tokens,
    received_at)
  SELECT account_id, session_id, max(agent), max(user_id), min(started_us), max(started_us + duration_us), count(*),
    count(*) FILTER (WHERE status = 2),
    -- Agents sum up what their calls of models took: those calls alone count.
    coalesce(sum(input_tokens) FILTER (WHERE operation IN ('chat', 'embeddings')), 0),
    coalesce(sum(output_tokens) FILTER (WHERE operation IN ('chat', 'embeddings')), 0), max(received_at)
  FROM added GROUP BY 1, 2
  -- The same for all servers, so that none waits for another in a circle.
  ORDER BY 1, 2
  ON CONFLICT (account_id, session_id) DO UPDATE SET
    agent = CASE WHEN excluded.agent = '' THEN s.agent ELSE excluded.agent END,
    user_id = CASE WHEN excluded.user_id = '' THEN s.user_id ELSE excluded.user_id END,
    first_us = least(s.first_us, excluded.first_us), last_us = greatest(s.last_us, excluded.last_us),
    spans = s.spans + excluded.spans, errors = s.errors + excluded.errors, input_tokens = s.input_tokens + excluded.input_tokens,
    output_tokens = s.output_tokens + excluded.output_tokens, received_at = greatest(s.received_at, excluded.received_at)`;
