import type { AuditRecord } from '../../kernel/http/index.ts';
import type { Sink } from '../../kernel/journal/index.ts';
import type { Migration } from '../../kernel/storage/index.ts';
import { number, object, orAbsent, type Shape, stored, text } from '../../kernel/stored-shape.ts';

export { auditRetention } from './retention.ts';

export const auditMigrations: Migration[] = [
  {
    id: 'audit/0001-audit',
    sql: `
      CREATE TABLE audit (
        request_id text PRIMARY KEY,
        at bigint NOT NULL,
        operation text NOT NULL,
        account_id text,
        principal text,
        resource text,
        status integer NOT NULL,
        error_code text,
        source_ip text,
        user_agent text
      );
      CREATE INDEX audit_of_account ON audit (account_id, at DESC);`,
  },
  {
    // The journal brings each record once, so that the key guarded nothing, and random keys cost more than the rest of a row.
    id: 'audit/0002-no-key',
    sql: 'ALTER TABLE audit DROP CONSTRAINT audit_pkey',
  },
  {
    // Rows come in order of time: a summary of blocks finds the old ones and costs the hot path next to nothing.
    id: 'audit/0003-by-time',
    sql: 'CREATE INDEX audit_by_time ON audit USING brin (at)',
  },
  {
    // Refusals that are alike are one row: how many, and when the last of them was (NULL for one).
    id: 'audit/0004-counts',
    sql: 'ALTER TABLE audit ADD COLUMN count integer NOT NULL DEFAULT 1, ADD COLUMN until bigint',
  },
];

const AUDITED: Shape<AuditRecord> = object(
  {
    ...{ at: number, requestId: text, operation: text, accountId: orAbsent(text), principal: orAbsent(text) },
    ...{ resource: orAbsent(text), status: number, errorCode: orAbsent(text), sourceIp: orAbsent(text) },
    userAgent: orAbsent(text),
  },
  { count: number, until: number },
);

/** Takes audit records from the journal into the table `audit`. */
export const auditSink: Sink<AuditRecord> = {
  parse: stored(AUDITED).parse,
  async apply(tx, records) {
    await tx.execute(
      `INSERT INTO audit (request_id, at, operation, account_id, principal, resource, status, error_code, source_ip, user_agent,
         count, until)
       SELECT "requestId", at, operation, "accountId", principal, resource, status, "errorCode", "sourceIp", "userAgent",
         coalesce(count, 1), until
       FROM json_to_recordset($1::json) AS r("requestId" text, at bigint, operation text, "accountId" text,
         principal text, resource text, status integer, "errorCode" text, "sourceIp" text, "userAgent" text, count integer,
         until bigint)`,
      [JSON.stringify(records.map(({ data }) => whole(data)))],
    );
  },
};

/** Times in whole milliseconds. */
function whole(record: AuditRecord): AuditRecord {
  const at = Math.round(record.at);
  return record.until === undefined ? { ...record, at } : { ...record, at, until: Math.round(record.until) };
}
