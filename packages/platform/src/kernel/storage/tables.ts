import { changesTable } from './changes.ts';
import type { Migration } from './migrations.ts';

export const storageMigrations: Migration[] = [
  {
    // Every resource of the control plane, whatever service owns it. `parent` is the ARN of the resource that this one
    // belongs to, or '' for none (NULLs would all differ in the unique key); `seq` is the order of creation, which lists go by.
    id: 'storage/0001-resources',
    sql: `
      CREATE TABLE resources (
        arn text PRIMARY KEY,
        kind text NOT NULL,
        account_id text NOT NULL,
        id text NOT NULL,
        parent text NOT NULL,
        name text NOT NULL,
        data jsonb NOT NULL,
        tags jsonb NOT NULL,
        version integer NOT NULL,
        created_at timestamptz NOT NULL,
        updated_at timestamptz NOT NULL,
        seq bigint GENERATED ALWAYS AS IDENTITY,
        CONSTRAINT resources_name_key UNIQUE (account_id, kind, parent, name)
      );
      CREATE INDEX resources_list ON resources (account_id, kind, seq);
      CREATE INDEX resources_list_of_parent ON resources (account_id, kind, parent, seq);
    `,
  },
  {
    id: 'storage/0002-idempotency-records',
    // Read and written by idempotency-store.ts alone.
    sql: `
      CREATE TABLE idempotency_records (
        account_id text NOT NULL,
        operation text NOT NULL,
        token text NOT NULL,
        fingerprint text NOT NULL,
        owner text NOT NULL,
        response jsonb,
        done integer NOT NULL,
        expires_at timestamptz NOT NULL,
        PRIMARY KEY (account_id, operation, token)
      );
      CREATE INDEX idempotency_records_expiry ON idempotency_records (expires_at);
    `,
  },
  {
    // Read by change-feed.ts. A table of which servers keep something in memory is given the same trigger by its own room (`noteChanges`).
    id: 'storage/0003-changes',
    sql: changesTable,
  },
];
