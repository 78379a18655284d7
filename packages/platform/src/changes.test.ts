import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { LEAN_PLATFORM } from '../../../scripts/test/lean-platform.ts';
import { TOLD } from '../../../tests/faults/told.ts';
import { loadConfig } from './config.ts';
import { ChangeFeed, migrate } from './kernel/storage/index.ts';
import { silent, temporaryPglite } from './kernel/storage/testing/databases.ts';
import { allMigrations } from './migrations.ts';
import { loadServices } from './open-services.ts';
import { createPlatform } from './platform.ts';
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
    ...['spans', 'traced_sessions', 'log_queries'],
    ...['journal_positions', 'session_usage', 'metered', 'memory_model_usage', 'policy_decisions'],
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

/** The file that keeps what it subscribes for: the first that is not the storage's own. */
function keeper(): string {
  const [, file] = /\/src\/((?:kernel\/(?!storage\/)|services\/)[\w./-]+\.ts)/.exec(new Error().stack ?? '') ?? [];
  return file ?? 'unknown';
}

it('whoever keeps something that the feed tells of has a test in which another server changes it', async () => {
  const kept = new Set<string>();
  const subscribe = ChangeFeed.prototype.subscribe;
  const spy = vi.spyOn(ChangeFeed.prototype, 'subscribe').mockImplementation(function (this: ChangeFeed, topics, take) {
    for (const topic of topics) kept.add(`${keeper()}: ${topic}`);
    subscribe.call(this, topics, take);
  });
  const data = await mkdtemp(join(tmpdir(), 'agentplatform-changes-'));
  try {
    const config = loadConfig(['--data', data, '--port', '0', '--sandbox', 'process'], LEAN_PLATFORM);
    await (await createPlatform(config, { restarts: 0 })).close();
  } finally {
    spy.mockRestore();
    await rm(data, { recursive: true, force: true });
  }
  expect([...kept].sort()).toEqual(Object.keys(TOLD).sort());
  const root = join(import.meta.dirname, '../../..');
  const tests = globSync('tests/{faults,e2e}/**/*.ts', { cwd: root })
    .filter((file) => !file.endsWith('told.ts'))
    .map((file) => readFileSync(join(root, file), 'utf8'));
  const missing = Object.values(TOLD).filter((title) => !tests.some((test) => test.includes(`it('${title}'`)));
  expect(missing).toEqual([]);
});
