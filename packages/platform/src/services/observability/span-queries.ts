import { errors } from '@agentplatform/contract';
import type { Executor } from '../../kernel/storage/index.ts';
import { storedText } from '../../kernel/stored-shape.ts';
import { type SpanDetail, type SpanRow, storedDetail } from './span-row.ts';
import { type TreeNode, treeOf } from './span-tree.ts';

type Reader = Pick<Executor, 'query'>;

/** A session with traces, as lists show it. */
export interface TracedSession {
  sessionId: string;
  agent: string;
  userId: string;
  /** Microseconds since the epoch. */
  firstUs: number;
  lastUs: number;
  spans: number;
  errors: number;
  inputTokens: number;
  outputTokens: number;
}

export interface SessionFilter {
  agent?: string | undefined;
  user?: string | undefined;
  status?: 'ok' | 'error' | undefined;
  /** Milliseconds since the epoch. */
  from?: number | undefined;
  to?: number | undefined;
  leastMs?: number | undefined;
  leastTokens?: number | undefined;
  /** Stands in the name, the input or output, or an attribute of one of its spans. */
  text?: string | undefined;
}

/** Where a page of sessions ended. */
export interface SessionPlace {
  lastUs: number;
  sessionId: string;
}

/** The account's sessions that pass the filter, those with the newest spans first. */
export function listSessions(
  database: Reader,
  accountId: string,
  filter: SessionFilter,
  page: { after: SessionPlace | undefined; limit: number },
): Promise<TracedSession[]> {
  const { agent, user, status, from, to, leastMs, leastTokens, text } = filter;
  return database.query<TracedSession>(SESSIONS, [
    ...[accountId, agent ?? null, user ?? null, status ?? null, from === undefined ? null : from * 1000],
    ...[to === undefined ? null : to * 1000, leastMs === undefined ? null : leastMs * 1000, leastTokens ?? null],
    text === undefined ? null : `%${text.replaceAll(/[\\%_]/g, (one) => `\\${one}`)}%`,
    ...[page.after?.lastUs ?? null, page.after?.sessionId ?? '', page.limit],
  ]);
}

const SESSIONS = `
  SELECT session_id AS "sessionId", agent, user_id AS "userId", first_us AS "firstUs", last_us AS "lastUs", spans, errors,
    input_tokens AS "inputTokens", output_tokens AS "outputTokens"
  FROM traced_sessions s
  WHERE account_id = $1 AND ($2::text IS NULL OR agent = $2 OR agent LIKE '%/' || $2) AND ($3::text IS NULL OR user_id = $3)
    AND ($4::text IS NULL OR (errors > 0) = ($4 = 'error')) AND ($5::bigint IS NULL OR last_us >= $5)
    AND ($6::bigint IS NULL OR first_us < $6) AND ($7::bigint IS NULL OR last_us - first_us >= $7)
    AND ($8::bigint IS NULL OR input_tokens + output_tokens >= $8)
    AND ($9::text IS NULL OR EXISTS (SELECT FROM spans p WHERE p.account_id = s.account_id AND p.session_id = s.session_id
      AND (p.name LIKE $9 OR p.detail LIKE $9)))
    AND ($10::bigint IS NULL OR (last_us, session_id) < ($10, $11))
  ORDER BY last_us DESC, session_id DESC LIMIT $12`;

/** A trace of a session: what one request to it set going. */
export interface Turn {
  traceId: string;
  startedUs: number;
  durationUs: number;
  spans: number;
  errors: number;
  inputTokens: number;
  outputTokens: number;
}

/** The turns of a session in their order. */
export function listTurns(database: Reader, accountId: string, sessionId: string, limit: number): Promise<Turn[]> {
  return database.query<Turn>(
    `SELECT trace_id AS "traceId", min(started_us) AS "startedUs", max(started_us + duration_us) - min(started_us) AS "durationUs",
       count(*) AS spans, count(*) FILTER (WHERE status = 2) AS errors,
       coalesce(sum(input_tokens) FILTER (WHERE operation IN ('chat', 'embeddings')), 0)::bigint AS "inputTokens",
       coalesce(sum(output_tokens) FILTER (WHERE operation IN ('chat', 'embeddings')), 0)::bigint AS "outputTokens"
     FROM spans WHERE account_id = $1 AND session_id = $2 GROUP BY trace_id ORDER BY 2, 1 LIMIT $3`,
    [accountId, sessionId, limit],
  );
}

/** A span as it is shown. */
export interface ShownSpan extends Omit<SpanRow, 'detail' | 'day' | 'accountId'>, SpanDetail {}

const SHOWN = `trace_id AS "traceId", span_id AS "spanId", parent_span_id AS "parentSpanId", agent, session_id AS "sessionId",
  user_id AS "userId", service, scope, name, kind, operation, agent_name AS "agentName", model, tool, input_tokens AS "inputTokens",
  output_tokens AS "outputTokens", started_us AS "startedUs", duration_us AS "durationUs", status, status_message AS "statusMessage",
  names_version AS "namesVersion", detail, received_at AS "receivedAt"`;

/** A trace holds no more here; `more` says that there are. */
export const MOST_SPANS = 10_000;

/** A trace as a tree. Rejects with ResourceNotFoundException where there is none. */
export async function readTrace(
  database: Reader,
  accountId: string,
  traceId: string,
): Promise<{ traceId: string; roots: TreeNode<ShownSpan>[]; spans: number; more: boolean }> {
  const rows = await database.query<SpanRow>(
    `SELECT ${SHOWN} FROM spans WHERE account_id = $1 AND trace_id = $2 ORDER BY started_us, span_id LIMIT ${MOST_SPANS + 1}`,
    [accountId, traceId],
  );
  if (rows.length === 0) throw errors.resourceNotFound(`There is no trace ${traceId.slice(0, 64)}.`);
  const spans = rows.slice(0, MOST_SPANS).map(shown);
  return { traceId, roots: treeOf(spans), spans: spans.length, more: rows.length > MOST_SPANS };
}

function shown({ detail, ...row }: SpanRow): ShownSpan {
  return { ...row, ...storedText(storedDetail, detail) };
}

/** How often something is in a trace, and what it takes. */
export interface Share {
  count: number;
  errors: number;
  durationUs: number;
  inputTokens: number;
  outputTokens: number;
}

export interface Comparison {
  /** By operation and name of spans; null where a trace has none of it. */
  lines: { operation: string; name: string; a: Share | null; b: Share | null }[];
}

/** Two traces beside each other. Rejects as `readTrace`. */
export async function compareTraces(
  database: Reader,
  accountId: string,
  [a, b]: readonly [string, string],
): Promise<Comparison> {
  const [ofA, ofB] = await Promise.all([a, b].map((id) => sharesOf(database, accountId, id)));
  const names = [...new Set([...(ofA?.keys() ?? []), ...(ofB?.keys() ?? [])])].sort();
  return {
    lines: names.map((key) => {
      const [operation = '', name = ''] = key.split('\0');
      return { operation, name, a: ofA?.get(key) ?? null, b: ofB?.get(key) ?? null };
    }),
  };
}

async function sharesOf(database: Reader, accountId: string, traceId: string): Promise<Map<string, Share>> {
  const rows = await database.query<Share & { operation: string; name: string }>(
    `SELECT operation, name, count(*) AS count, count(*) FILTER (WHERE status = 2) AS errors, sum(duration_us)::bigint AS "durationUs",
       sum(input_tokens)::bigint AS "inputTokens", sum(output_tokens)::bigint AS "outputTokens"
     FROM spans WHERE account_id = $1 AND trace_id = $2 GROUP BY operation, name ORDER BY 1, 2 LIMIT ${MOST_SPANS}`,
    [accountId, traceId],
  );
  if (rows.length === 0) throw errors.resourceNotFound(`There is no trace ${traceId.slice(0, 64)}.`);
  return new Map(rows.map(({ operation, name, ...share }) => [`${operation}\0${name}`, share]));
}

/** Spans that came after that place, in the order in which they came. */
export async function tail(
  database: Reader,
  accountId: string,
  after: { receivedAt: number; spanId: string },
  limit: number,
): Promise<ShownSpan[]> {
  const rows = await database.query<SpanRow>(
    `SELECT ${SHOWN} FROM spans WHERE account_id = $1 AND (received_at, span_id) > ($2, $3) ORDER BY received_at, span_id LIMIT $4`,
    [accountId, after.receivedAt, after.spanId, limit],
  );
  return rows.map(shown);
}

/** What spans of one kind of work did since a moment (milliseconds since the epoch). */
export interface OperationMetrics {
  operation: string;
  model: string;
  tool: string;
  count: number;
  errors: number;
  medianUs: number;
  p95Us: number;
  inputTokens: number;
  outputTokens: number;
}

export function readMetrics(
  database: Reader,
  accountId: string,
  since: Date,
  limit: number,
): Promise<OperationMetrics[]> {
  return database.query<OperationMetrics>(
    `SELECT operation, model, tool, count(*) AS count, count(*) FILTER (WHERE status = 2) AS errors,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_us) AS "medianUs",
       percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_us) AS "p95Us",
       sum(input_tokens)::bigint AS "inputTokens", sum(output_tokens)::bigint AS "outputTokens"
     FROM spans WHERE account_id = $1 AND received_at >= $2 AND day >= ($3::timestamptz AT TIME ZONE 'UTC')::date
     GROUP BY operation, model, tool ORDER BY count DESC, operation, model, tool LIMIT $4`,
    [accountId, since.getTime(), since, limit],
  );
}
