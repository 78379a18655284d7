import type { Migration } from '../storage/index.ts';

export const secretMigrations: Migration[] = [
  {
    id: 'secrets/0001-secrets',
    sql: `
      CREATE TABLE secrets (
        account_id text NOT NULL,
        name text NOT NULL,
        -- The master key that sealed the data key.
        key_id text NOT NULL,
        sealed_key bytea NOT NULL,
        sealed_value bytea NOT NULL,
        version integer NOT NULL,
        updated_at timestamptz NOT NULL,
        PRIMARY KEY (account_id, name)
      );
      CREATE INDEX secrets_key ON secrets (key_id);
    `,
  },
];
