import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ListEventsCommand, ListMemoryRecordsCommand } from '@aws-sdk/client-bedrock-agentcore';
import {
  GetAgentRuntimeCommand,
  GetAgentRuntimeEndpointCommand,
  GetMemoryCommand,
  GetResourcePolicyCommand,
  ListAgentRuntimesCommand,
  ListCodeInterpretersCommand,
  ListTagsForResourceCommand,
  ListWorkloadIdentitiesCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { migrate, openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { allMigrations } from '../../packages/platform/src/migrations.ts';
import { loadServices } from '../../packages/platform/src/open-services.ts';
import { services } from '../../packages/platform/src/services.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

/** What an earlier version had stored. */
interface FormerData {
  masterKey: string;
  credentials: string;
  /** Of a user who may get, and nothing else. */
  user: { accessKeyId: string; secretAccessKey: string };
  /** Those that had been applied, with the hash of their text. */
  migrations: Record<string, string>;
  rows: Record<string, object[]>;
}

const log = pino({ enabled: false });
let dataDir: string;
let platform: TestPlatform;
let clients: Clients;
let former: FormerData;

/** A data directory as the earlier version had left it: tables by the migrations of then, its rows, its keys. */
async function restore({ masterKey, credentials, migrations, rows }: FormerData): Promise<void> {
  await mkdir(join(dataDir, 'keys'), { mode: 0o700 });
  await writeFile(join(dataDir, 'keys', 'master.key'), `${masterKey}\n`, { mode: 0o600 });
  await writeFile(join(dataDir, 'credentials'), credentials, { mode: 0o600 });
  const modules = (await loadServices(services)).map(({ module }) => module);
  const known = new Map(allMigrations(modules).map((migration) => [migration.id, migration]));
  const then = Object.keys(migrations).flatMap((id) => known.get(id) ?? []);
  const database = await openDatabase({ dataDir, clock: systemClock, log });
  try {
    await migrate(database, then, log);
    const applied = await database.query<{ id: string; hash: string }>('SELECT id, hash FROM schema_migrations');
    expect(Object.fromEntries(applied.map(({ id, hash }) => [id, hash]))).toEqual(migrations);
    for (const [table, kept] of Object.entries(rows)) {
      await database.execute(`DELETE FROM ${table}`);
      const [{ columns = '' } = {}] = await database.query<{ columns: string }>(
        `SELECT string_agg(quote_ident(column_name), ', ') AS columns FROM information_schema.columns
         WHERE table_name = $1 AND is_generated = 'NEVER'`,
        [table],
      );
      await database.execute(
        `INSERT INTO ${table} (${columns}) OVERRIDING SYSTEM VALUE
         SELECT ${columns} FROM jsonb_populate_recordset(NULL::${table}, $1::jsonb)`,
        [JSON.stringify(kept)],
      );
    }
  } finally {
    await database.close();
  }
}

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-former-'));
  const file = join(import.meta.dirname, '../support/former-data/2026-11-23.json');
  former = JSON.parse(await readFile(file, 'utf8'));
  await restore(former);
  platform = await startTestPlatform({ dataDir, args: ['--sandbox', 'process'] });
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

it('of an earlier version is upgraded and read: runtimes, memories, policies, tags, users and secrets', async () => {
  const { control, data } = clients;
  expect(platform.credentials.accessKeyId).toBe(/aws_access_key_id = (\S+)/.exec(former.credentials)?.[1]);
  const [{ agentRuntimeId = '', agentRuntimeArn: resourceArn = '' } = {}] =
    (await control.send(new ListAgentRuntimesCommand({}))).agentRuntimes ?? [];
  expect(await control.send(new GetAgentRuntimeCommand({ agentRuntimeId }))).toMatchObject({
    ...{ status: 'READY', environmentVariables: { MARK: 'one' }, lifecycleConfiguration: { maxLifetime: 28_800 } },
    agentRuntimeArtifact: { codeConfiguration: { runtime: 'NODE_22', entryPoint: ['index.mjs'] } },
  });
  const endpoint = new GetAgentRuntimeEndpointCommand({ agentRuntimeId, endpointName: 'pinned' });
  expect(await control.send(endpoint)).toMatchObject({ status: 'READY', liveVersion: '1' });
  expect((await control.send(new ListTagsForResourceCommand({ resourceArn }))).tags).toEqual({ team: 'red' });
  expect((await control.send(new GetResourcePolicyCommand({ resourceArn }))).policy).toContain('StopRuntimeSession');

  const memoryId = String(former.rows.memory_events?.map((row) => 'memory_id' in row && row.memory_id)[0]);
  expect((await control.send(new GetMemoryCommand({ memoryId }))).memory).toMatchObject({
    ...{ status: 'ACTIVE', eventExpiryDuration: 365, strategies: [{ name: 'facts' }] },
  });
  const session = { memoryId, actorId: 'ann', sessionId: 'one' };
  expect((await data.send(new ListEventsCommand({ ...session, includePayloads: true }))).events).toMatchObject([
    {
      payload: [{ conversational: { role: 'USER', content: { text: 'hello' } } }],
      metadata: { place: { stringValue: 'home' } },
    },
  ]);
  const found = await data.send(new ListMemoryRecordsCommand({ memoryId, namespace: '/facts/ann' }));
  expect(found.memoryRecordSummaries).toMatchObject([{ content: { text: 'Ann likes tea.' } }]);

  const own = await control.send(new ListCodeInterpretersCommand({ type: 'CUSTOM' }));
  expect(own.codeInterpreterSummaries).toMatchObject([{ name: 'own', status: 'READY' }]);
  const { workloadIdentities = [] } = await control.send(new ListWorkloadIdentitiesCommand({}));
  expect(workloadIdentities.map(({ name }) => name)).toContain('assistant');

  // A user's key still signs, and means what it meant.
  const ann = clientsOf(platform, { credentials: former.user });
  expect(await ann.control.send(new GetMemoryCommand({ memoryId }))).toMatchObject({ memory: { id: memoryId } });
  await expect(ann.control.send(new ListAgentRuntimesCommand({}))).rejects.toMatchObject({
    name: 'AccessDeniedException',
  });
  ann.close();
  // What is sealed is opened with the key of then, and is no other's: there is one to remove.
  const path = '/_platform/registry-credentials/ghcr.io';
  expect((await signedFetch(platform, { method: 'DELETE', path })).status).toBe(204);
});
