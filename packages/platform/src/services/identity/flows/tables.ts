import { type Executor, type Migration, noteChanges, type RetentionRule } from '../../../kernel/storage/index.ts';

export const flowMigrations: Migration[] = [
  {
    id: 'identity/0002-tokens',
    sql: `
      CREATE TABLE identity_tokens (
        -- What such requests share: provider, workload, user, scopes, resources, audiences.
        key text PRIMARY KEY,
        account_id text NOT NULL,
        provider_arn text NOT NULL,
        provider_id text NOT NULL,
        workload text NOT NULL,
        -- No names for nobody, one for an id, two for issuer and subject.
        user_names jsonb NOT NULL,
        scopes jsonb NOT NULL,
        -- Access and refresh token, under the key of the account's vault.
        sealed text NOT NULL,
        -- When the access token ends; null where nobody said.
        expires_at timestamptz,
        granted_at timestamptz NOT NULL,
        updated_at timestamptz NOT NULL
      );
      CREATE INDEX identity_tokens_account ON identity_tokens (account_id, workload);
      CREATE INDEX identity_tokens_provider ON identity_tokens (provider_id);
      ${noteChanges('identity_tokens', 'key')}
      -- Who gets a new token now; what is over counts no more.
      CREATE TABLE identity_refreshes (
        key text PRIMARY KEY,
        holder text NOT NULL,
        until timestamptz NOT NULL
      );
      CREATE TABLE identity_authorizations (
        -- The last part of the session's URI.
        id text PRIMARY KEY,
        -- What the same request finds it by.
        request text NOT NULL,
        account_id text NOT NULL,
        provider_arn text NOT NULL,
        provider_id text NOT NULL,
        workload text NOT NULL,
        made_at bigint,
        user_names jsonb NOT NULL,
        scopes jsonb NOT NULL,
        resources jsonb NOT NULL,
        audiences jsonb NOT NULL,
        token_key text NOT NULL,
        return_url text,
        -- STARTED, ALLOWED, RETURNED, EXCHANGING, DONE, FAILED
        status text NOT NULL,
        failure text,
        -- SHA-256 of what the provider sends back, and of the cookie of the browser that it goes by.
        state_hash text UNIQUE,
        browser_hash text,
        -- Parameters and state of the application, PKCE verifier, code: under the key of the account's vault.
        sealed text NOT NULL,
        created_at timestamptz NOT NULL,
        updated_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL
      );
      CREATE INDEX identity_authorizations_request ON identity_authorizations (request);
      CREATE INDEX identity_authorizations_provider ON identity_authorizations (provider_id);
      CREATE INDEX identity_authorizations_expires_at ON identity_authorizations (expires_at);
    `,
  },
  {
    id: 'identity/0004-refreshes-of-what',
    sql: `
      -- When a refresh token was sent of which no answer has been written yet: one that was cut off may have been the last that counts.
      ALTER TABLE identity_tokens ADD COLUMN renewing_since timestamptz;
      -- A hold that is as old as this has lapsed, or its server is another version.
      DROP TABLE identity_refreshes;
      CREATE TABLE identity_refreshes (
        key text PRIMARY KEY,
        holder text NOT NULL,
        -- Id of the holder's server.
        server text NOT NULL,
        -- Whoever forgets the tokens of one of these ends the holds on them.
        account_id text NOT NULL,
        provider_id text NOT NULL,
        workload text NOT NULL,
        until timestamptz NOT NULL
      );
      CREATE INDEX identity_refreshes_account ON identity_refreshes (account_id, workload);
      CREATE INDEX identity_refreshes_provider ON identity_refreshes (provider_id);
      CREATE INDEX identity_authorizations_workload ON identity_authorizations (account_id, workload);
    `,
  },
];

/** After their end, so that who asks late learns what became of them. */
const KEEP_MS = 3_600_000;

/** Consents that came to an end, holds on tokens of servers that died, and tokens of agents for themselves that are over. */
export function flowRetention(database: Executor): RetentionRule[] {
  const forget =
    (table: string, key: string, column: string): RetentionRule['forget'] =>
    (before, limit) =>
      database.execute(
        `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE ${column} < $1 LIMIT ${limit})`,
        [new Date(before)],
      );
  return [
    { name: 'consents', keepMs: KEEP_MS, forget: forget('identity_authorizations', 'id', 'expires_at') },
    {
      name: 'tokens of agents',
      keepMs: KEEP_MS,
      forget: forget('identity_tokens', 'key', `user_names = '[]' AND expires_at`),
    },
    { name: 'holds on tokens', keepMs: KEEP_MS, forget: forget('identity_refreshes', 'key', 'until') },
  ];
}
