import type { AuditRecord } from '../../kernel/http/pipeline.ts';
import type { Sink } from '../../kernel/journal/index.ts';
import type { Migration } from '../../kernel/storage/index.ts';

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
];

/** Takes audit records from the journal into the table `audit`. */
export const auditSink: Sink<AuditRecord> = {
  // The journal gives back what this server wrote into it.
  parse: (data) => data as AuditRecord,
  async apply(tx, records) {
    await tx.execute(
      `INSERT INTO audit SELECT r->>'requestId', (r->>'at')::bigint, r->>'operation', r->>'accountId', r->>'principal',
         r->>'resource', (r->>'status')::integer, r->>'errorCode', r->>'sourceIp', r->>'userAgent'
       FROM jsonb_array_elements($1::jsonb) r ON CONFLICT (request_id) DO NOTHING`,
      [JSON.stringify(records.map(({ data }) => ({ ...data, at: Math.round(data.at) })))],
    );
  },
};
