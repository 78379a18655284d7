import { hash } from 'node:crypto';
import type { AuditRecord } from '../../kernel/http/index.ts';

/** A row of the audit trail as the table has it. */
export interface AuditRow {
  requestId: string;
  /** Milliseconds since the epoch. */
  at: number;
  operation: string;
  accountId: string | null;
  principal: string | null;
  resource: string | null;
  status: number;
  errorCode: string | null;
  sourceIp: string | null;
  userAgent: string | null;
  /** So many refusals that are alike, until then. */
  count: number;
  until: number | null;
  /** The session that the request named, and the user whom it was made for. */
  sessionId: string | null;
  onBehalfOf: string | null;
}

/** A row in its chain. */
export interface ChainedRow extends AuditRow {
  /** The journal that brought it, which each data directory has one of. */
  chain: string;
  /** 1 for the first of its chain; none is left out. */
  seq: number;
  /** Of the row before it, in hexadecimal. */
  previous: string;
  hash: string;
}

/** Where a chain ends. */
export interface Head {
  seq: number;
  hash: string;
}

/** Columns of a row, under the names of `AuditRow`. */
export const ROW_COLUMNS = `request_id AS "requestId", at, operation, account_id AS "accountId", principal, resource, status,
  error_code AS "errorCode", source_ip AS "sourceIp", user_agent AS "userAgent", count, until, session_id AS "sessionId",
  on_behalf_of AS "onBehalfOf"`;

/** The same with its place. */
export const CHAINED_COLUMNS = `${ROW_COLUMNS}, chain, seq, encode(previous, 'hex') AS previous, encode(hash, 'hex') AS hash`;

/** The row that a record becomes: times in whole milliseconds. */
export function rowOf(record: AuditRecord): AuditRow {
  return {
    requestId: record.requestId,
    at: Math.round(record.at),
    operation: record.operation,
    accountId: record.accountId ?? null,
    principal: record.principal ?? null,
    resource: record.resource ?? null,
    status: record.status,
    errorCode: record.errorCode ?? null,
    sourceIp: record.sourceIp ?? null,
    userAgent: record.userAgent ?? null,
    count: record.count ?? 1,
    until: record.until === undefined ? null : Math.round(record.until),
    sessionId: record.sessionId ?? null,
    onBehalfOf: record.onBehalfOf ?? null,
  };
}

/** What a chain begins with in place of a row. */
export const beginOf = (chain: string): Head => ({
  seq: 0,
  hash: hash('sha256', `agentplatform audit ${chain}`, 'hex'),
});

/** The SHA-256 of a row at its place behind the row with the hash `previous`, in hexadecimal; the 1 names this list of members. */
export function hashOf(
  row: AuditRow,
  { chain, seq, previous }: Pick<ChainedRow, 'chain' | 'seq' | 'previous'>,
): string {
  const members = [
    ...[1, previous, chain, seq, row.requestId, row.at, row.operation, row.accountId, row.principal, row.resource],
    ...[row.status, row.errorCode, row.sourceIp, row.userAgent, row.count, row.until, row.sessionId, row.onBehalfOf],
  ];
  return hash('sha256', JSON.stringify(members), 'hex');
}
