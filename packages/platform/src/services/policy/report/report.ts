import type { Executor } from '../../../kernel/storage/index.ts';
import { list, text } from '../../../kernel/stored-shape.ts';

/** Calls of one tool by one caller that were decided alike. */
export interface ReportRow {
  gateway: string;
  action: string;
  principal: string;
  calls: number;
  /** Of which were refused. */
  denied: number;
  /** Of which went through, and enforcing would have blocked them: the gateway's mode, or that of policies, is LOG_ONLY. */
  wouldBlock: number;
  /** Which policies would have, or an empty list where none permits. */
  policies: string[];
}

/** More than a table shows; what would be blocked most comes first. */
const MOST_ROWS = 500;

/** What decisions of an engine came to since that moment, in ms since the epoch. */
export async function readReport(
  database: Pick<Executor, 'query'>,
  engineArn: string,
  since: number,
): Promise<ReportRow[]> {
  const rows = await database.query<Omit<ReportRow, 'policies'> & { policies: unknown }>(READ, [
    ...[engineArn, since, MOST_ROWS],
  ]);
  return rows.map((row) => ({ ...row, policies: list(text)(row.policies, 'policies') }));
}

const READ = `
  SELECT split_part(gateway_arn, '/', 2) AS gateway, action, principal, count(*)::float8 AS calls,
    count(*) FILTER (WHERE mode = 'ENFORCE' AND decision = 'DENY')::float8 AS denied,
    count(*) FILTER (WHERE would_block)::float8 AS "wouldBlock",
    coalesce((SELECT jsonb_agg(DISTINCT p) FROM unnest(array_agg(by)) b, jsonb_array_elements_text(b) p), '[]') AS policies
  FROM (
    SELECT *, (mode = 'LOG_ONLY' OR decision = 'ALLOW') AND (decision = 'DENY' OR would_be = 'DENY') AS would_block,
      CASE WHEN would_be <> decision THEN log_only WHEN decision = 'DENY' THEN policies ELSE '[]' END AS by
    FROM policy_decisions WHERE engine_arn = $1 AND at >= $2) d
  GROUP BY gateway_arn, action, principal
  ORDER BY count(*) FILTER (WHERE would_block) DESC, count(*) DESC, action, principal LIMIT $3`;
