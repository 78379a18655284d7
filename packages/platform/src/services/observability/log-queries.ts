import { errors } from '@agentplatform/contract';
import type { Executor } from '../../kernel/storage/index.ts';
import { number, object, storedText, text } from '../../kernel/stored-shape.ts';
import { type InsightsQuery, passes, readInsightsQuery, valueAt } from './insights-query.ts';
import { type SpanRow, storedDetail } from './span-row.ts';

/** What `StartQuery` asks. */
export interface LogQuery {
  group: string;
  /** Seconds since the epoch. */
  from: number;
  to: number;
  query: string;
}

/** Where the vendor's tools look for spans; of logs of a runtime there are none yet. */
const SPANS_GROUP = 'aws/spans';
const RUNTIME_GROUP = /^\/aws\/bedrock-agentcore\/runtimes\/[A-Za-z0-9_.-]{1,200}$/;
const shape = object<LogQuery>({ group: text, from: number, to: number, query: text });
const MOST_SPANS = 20_000;
const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];
const STATUS = ['UNSET', 'OK', 'ERROR'];

/** Keeps a query under an id. Throws MalformedQueryException, or ResourceNotFoundException for a group that there is not. */
export async function startQuery(
  database: Executor,
  { id, accountId, at }: { id: string; accountId: string; at: number },
  asked: LogQuery,
): Promise<void> {
  if (asked.group !== SPANS_GROUP && !RUNTIME_GROUP.test(asked.group))
    throw errors.resourceNotFound('The specified log group does not exist.');
  readInsightsQuery(asked.query);
  await database.execute('INSERT INTO log_queries VALUES ($1, $2, $3, $4)', [
    id,
    accountId,
    JSON.stringify(asked),
    Math.round(at),
  ]);
}

export interface LogResults {
  results: { field: string; value: string }[][];
  matched: number;
  scanned: number;
}

/** What the query finds. Rejects with ResourceNotFoundException where no such query was started. */
export async function queryResults(database: Executor, accountId: string, id: string): Promise<LogResults> {
  const [kept] = await database.query<{ query: string }>(
    'SELECT query FROM log_queries WHERE id = $1 AND account_id = $2',
    [id, accountId],
  );
  if (!kept) throw errors.resourceNotFound('The specified query does not exist.');
  const asked = storedText(shape, kept.query);
  if (asked.group !== SPANS_GROUP) return { results: [], matched: 0, scanned: 0 };
  const query = readInsightsQuery(asked.query);
  const rows = await candidates(database, accountId, asked, query);
  const found = rows.flatMap((row) => {
    const document = documentOf(row);
    const message = JSON.stringify(document);
    return passes(document, message, query.conditions) ? [{ document, message, row }] : [];
  });
  const results = found
    .slice(0, query.limit)
    .map(({ document, message, row }) => [
      ...query.fields.map((field) => ({ field, value: textOf(field, { document, message, row }) })),
      { field: '@ptr', value: `${row.traceId}.${row.spanId}` },
    ]);
  return { results, matched: found.length, scanned: rows.length };
}

/** Spans of that time; those alone that may have the text which every filter on a session or the message asks for. */
function candidates(database: Executor, accountId: string, asked: LogQuery, query: InsightsQuery): Promise<SpanRow[]> {
  const needle = query.conditions.find((one) => one.kind !== 'present' && /^@message$|session\.id$/.test(one.field));
  const value = needle && needle.kind !== 'present' ? needle.value : undefined;
  return database.query<SpanRow>(
    `SELECT trace_id AS "traceId", span_id AS "spanId", parent_span_id AS "parentSpanId", session_id AS "sessionId", scope, name, kind,
       started_us AS "startedUs", duration_us AS "durationUs", status, status_message AS "statusMessage", detail
     FROM spans WHERE account_id = $1 AND started_us >= $2 AND started_us < $3
       AND ($4::text IS NULL OR session_id = $4 OR detail LIKE '%' || $5 || '%' OR trace_id = $4 OR name LIKE '%' || $5 || '%')
     ORDER BY started_us ${query.newestFirst ? 'DESC' : 'ASC'}, span_id LIMIT ${MOST_SPANS}`,
    [
      ...[accountId, asked.from * 1e6, (asked.to + 1) * 1e6, value ?? null],
      (value ?? '').replaceAll(/[\\%_]/g, (one) => `\\${one}`),
    ],
  );
}

/** A span as AWS's distribution of OpenTelemetry writes it into a log group. */
function documentOf(row: SpanRow): Record<string, unknown> {
  const detail = storedText(storedDetail, row.detail);
  return {
    resource: { attributes: detail.resource },
    scope: { name: row.scope },
    ...{ traceId: row.traceId, spanId: row.spanId, parentSpanId: row.parentSpanId, name: row.name },
    kind: KINDS[row.kind] ?? 'UNSPECIFIED',
    startTimeUnixNano: row.startedUs * 1000,
    endTimeUnixNano: (row.startedUs + row.durationUs) * 1000,
    durationNano: row.durationUs * 1000,
    attributes: { 'session.id': row.sessionId, ...detail.attributes },
    events: detail.events.map(({ name, atUs, attributes }) => ({ timeUnixNano: atUs * 1000, name, attributes })),
    status: { code: STATUS[row.status] ?? 'UNSET', ...(row.statusMessage !== '' && { message: row.statusMessage }) },
  };
}

function textOf(
  field: string,
  { document, message, row }: { document: Record<string, unknown>; message: string; row: SpanRow },
): string {
  if (field === '@message') return message;
  if (field === '@timestamp') return new Date(row.startedUs / 1000).toISOString().replace('T', ' ').slice(0, 23);
  const value = valueAt(document, field);
  return typeof value === 'string' ? value : JSON.stringify(value ?? '');
}
