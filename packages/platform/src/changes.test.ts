import { expect, it } from 'vitest';
import { migrate } from './kernel/storage/index.ts';
import { silent, temporaryPglite } from './kernel/storage/testing/databases.ts';
import { allMigrations } from './migrations.ts';
import { loadServices } from './open-services.ts';
import { services } from './services.ts';

/**
 * Tables of which no server keeps anything in memory that another may change, and why. A new table stands here, or its room has its changes
 * noted (`noteChanges`).
 */
const UNKEPT: Record<string, readonly string[]> = {
  'the storage itself': ['changes', 'changes_forgotten', 'schema_migrations'],
  'read at each use': [
    ...['idempotency_records', 'browser_sessions', 'code_interpreter_sessions', 'jobs', 'harness_conversations'],
    ...['identity_authorizations', 'identity_refreshes', 'identity_portal_sessions', 'identity_portal_sign_ins'],
  ],
  'read at each use; the keys of the platform that are kept are made once and never change': ['secrets'],
  'another resource is noted with them': [
    ...['gateway_documents', 'gateway_first_tools', 'gateway_offers', 'gateway_tools'],
  ],
  'the vector of a text never changes; what is not in memory is read again': ['gateway_tool_vectors'],
  'each commit also moves iam_revision': ['iam_records'],
  'written and read in batches, each by one server at a time': [
    ...['audit', 'audit_chains', 'audit_checkpoints', 'audit_joins'],
    ...['journal_positions', 'session_usage', 'memory_model_usage', 'policy_decisions'],
  ],
  'the lease is the authority, see ADR 11': ['servers', 'sessions'],
  'data, read at each use': [
    ...['memory_branches', 'memory_events', 'memory_records', 'memory_sessions'],
    ...['gateway_usage', 'gateway_sticky_sessions', 'policy_events', 'policy_sessions'],
    ...['memory_extraction_jobs', 'memory_purges', 'memory_vector_models'],
  ],
  'counted by the database; a sum is believed for a second': ['memory_usage'],
  'counted by the database; a server has what it has drawn': ['gateway_connections', 'gateway_permits'],
};

it('changes of every table are noted, or nobody keeps what stands in it', async () => {
  const { database, dispose } = await temporaryPglite();
  try {
    const modules = (await loadServices(services)).map(({ module }) => module);
    await migrate(database, allMigrations(modules), silent);
    const rows = await database.query<{ name: string; noted: boolean }>(
      `SELECT c.relname AS name, EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'note_changes') AS noted
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') ORDER BY c.relname`,
    );
    const of = (noted: boolean) => rows.flatMap((row) => (row.noted === noted ? [row.name] : []));
    expect(of(true)).toEqual(['iam_revision', 'identity_tokens', 'resource_policies', 'resources']);
    expect(of(false)).toEqual(Object.values(UNKEPT).flat().sort());
  } finally {
    await dispose();
  }
});
