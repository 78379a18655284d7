import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ListAgentRuntimesCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startPostgres, type TestPostgres } from '../../packages/platform/src/kernel/storage/testing/postgres.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let postgres: TestPostgres;
let platform: TestPlatform;
let clients: Clients;
let dataDir: string;

beforeAll(async () => {
  postgres = await startPostgres();
  dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-down-'));
  platform = await startTestPlatform({ dataDir, env: { AGENTPLATFORM_DATABASE_URL: await postgres.createDatabase() } });
  clients = clientsOf(platform);
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await postgres?.stop();
  await rm(dataDir, { recursive: true, force: true });
});

describe('the platform on PostgreSQL', () => {
  it('keeps live sessions serving while the database is away, says what is wrong, and recovers by itself', async () => {
    const { arn } = await deployAgent(platform, clients, {
      folder: join(import.meta.dirname, '../support/probe-agent'),
    });
    const live = sessionId('live');
    expect((await invokeJson(clients, arn, live, { do: 'count' })).count).toBe(1);

    await postgres.kill();
    expect((await invokeJson(clients, arn, live, { do: 'count' })).count).toBe(2);
    const failure = await clients.control.send(new ListAgentRuntimesCommand({})).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'ServiceUnavailableException', $metadata: { httpStatusCode: 503 } });
    expect(String(failure)).toContain('database');
    expect((await fetch(`${platform.ready.endpoint}/readyz`)).status).toBe(503);
    expect((await fetch(`${platform.ready.endpoint}/healthz`)).status).toBe(200);

    await postgres.start();
    for (
      const deadline = Date.now() + 30_000;
      (await fetch(`${platform.ready.endpoint}/readyz`)).status !== 200;
      await sleep(200)
    ) {
      expect(Date.now()).toBeLessThan(deadline);
    }
    expect((await clients.control.send(new ListAgentRuntimesCommand({}))).agentRuntimes).toHaveLength(1);
    expect((await invokeJson(clients, arn, sessionId('new'), { do: 'count' })).count).toBe(1);
    expect((await invokeJson(clients, arn, live, { do: 'count' })).count).toBe(3);
  });
});
