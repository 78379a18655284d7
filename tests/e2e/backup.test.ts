import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  BatchCreateMemoryRecordsCommand,
  CreateEventCommand,
  ListEventsCommand,
  ListMemoryRecordsCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { CreateMemoryCommand, GetAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { GetObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startPostgres, type TestPostgres } from '../../packages/platform/src/kernel/storage/testing/postgres.ts';
import { postgresBinaries } from '../../packages/platform/src/kernel/storage/testing/postgres-binaries.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent, uploadFolder } from '../support/deploy.ts';
import { guideBlocks } from '../support/guide.ts';
import { newUser } from '../support/iam.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const PAGE = 'backup.md';
const agent = join(import.meta.dirname, '../support/probe-agent');
let work: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'backup-'));
});
afterAll(() => rm(work, { recursive: true, force: true }));

/** Runs the commands of the guide for that data directory and database; services are the test's own to start and stop. */
async function follow(heading: string, folder: string, dataDir: string, url = ''): Promise<void> {
  const blocks = guideBlocks(PAGE, heading, 'sh').filter((block) => url !== '' || !block.includes('DATABASE_URL'));
  expect(blocks.length).toBeGreaterThan(0);
  const script = blocks
    .join('')
    .replace(/^systemctl .*$/gm, '')
    .replaceAll('/var/lib/agentplatform', dataDir);
  const PATH = `${url === '' ? '' : `${await postgresBinaries()}:`}${process.env.PATH}`;
  const env = { ...process.env, PATH, AGENTPLATFORM_DATABASE_URL: url };
  await promisify(execFile)('bash', ['-euxc', script], { cwd: folder, env, timeout: 120_000 });
}

/** What somebody has on a platform. */
interface Kept {
  runtimeArn: string;
  memoryId: string;
  user: { accessKeyId: string; secretAccessKey: string };
  code: { bucket: string; prefix: string };
}

const of = { actorId: 'ada', sessionId: 'talk' };

async function fill(platform: TestPlatform, clients: Clients): Promise<Kept> {
  const { arn } = await deployAgent(platform, clients, { folder: agent });
  await invokeText(clients, arn, sessionId('before'), { do: 'headers' });
  const { memory } = await clients.control.send(new CreateMemoryCommand({ name: 'kept', eventExpiryDuration: 30 }));
  const memoryId = memory?.id ?? '';
  const payload = [{ conversational: { role: 'USER' as const, content: { text: 'I am allergic to peanuts' } } }];
  await clients.data.send(new CreateEventCommand({ memoryId, ...of, eventTimestamp: new Date(), payload }));
  const record = {
    requestIdentifier: 'r1',
    namespaces: ['/facts'],
    content: { text: 'Ada avoids peanuts' },
    timestamp: new Date(),
  };
  await clients.data.send(new BatchCreateMemoryRecordsCommand({ memoryId, records: [record] }));
  const user = await newUser(platform, 'backup', [
    { Effect: 'Allow', Action: 'bedrock-agentcore:ListMemories', Resource: '*' },
  ]);
  return { runtimeArn: arn, memoryId, user, code: await uploadFolder(clients, agent) };
}

/** That it is all there, on a platform with the same data. */
async function look(platform: TestPlatform, { runtimeArn, memoryId, user, code }: Kept): Promise<void> {
  const clients = clientsOf(platform);
  try {
    const agentRuntimeId = runtimeArn.split('/')[1];
    expect((await clients.control.send(new GetAgentRuntimeCommand({ agentRuntimeId }))).status).toBe('READY');
    expect(await invokeText(clients, runtimeArn, sessionId('after'), { do: 'headers' })).toContain('x-amzn');
    const { events } = await clients.data.send(new ListEventsCommand({ memoryId, ...of, includePayloads: true }));
    expect(JSON.stringify(events)).toContain('I am allergic to peanuts');
    const records = await clients.data.send(new ListMemoryRecordsCommand({ memoryId, namespace: '/facts' }));
    expect(records.memoryRecordSummaries?.map(({ content }) => content?.text)).toEqual(['Ada avoids peanuts']);
    // The secret of an access key is encrypted by the master key: without it no signature of its fits.
    const signed = await signedFetch(platform, { method: 'POST', path: '/memories', content: {}, credentials: user });
    expect(signed.status).toBe(200);
    const object = await clients.s3.send(new GetObjectCommand({ Bucket: code.bucket, Key: code.prefix }));
    expect((await object.Body?.transformToByteArray())?.length).toBeGreaterThan(100);
  } finally {
    clients.close();
  }
}

const args = ['--sandbox', 'process'];

describe('the guide on backups', () => {
  it('brings back a platform with the embedded database from another directory', { timeout: 240_000 }, async () => {
    const folder = await mkdtemp(join(work, 'embedded-'));
    const first = await startTestPlatform({ args });
    const clients = clientsOf(first);
    const kept = await fill(first, clients);
    clients.close();
    expect(await first.end()).toBe(0);
    await follow('Back up with the embedded database', folder, first.dataDir);
    await first.dispose();
    const dataDir = join(folder, 'data');
    await follow('Restore', folder, dataDir);
    expect(await readdir(dataDir)).not.toContain('cache');
    const second = await startTestPlatform({ args, dataDir });
    await look(second, kept);
    await second.dispose();
    // What the page says of the master key.
    await follow('Restore', folder, dataDir);
    await rm(join(dataDir, 'keys'), { recursive: true });
    await expect(
      startTestPlatform({ args, dataDir }).then((third) => look(third, kept).finally(third.dispose)),
    ).rejects.toThrow();
  });

  describe('with PostgreSQL', () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await startPostgres();
    });
    afterAll(() => postgres?.stop());

    it('brings back a platform that went on meanwhile', { timeout: 240_000 }, async () => {
      const folder = await mkdtemp(join(work, 'postgres-'));
      const [url, other] = [await postgres.createDatabase(), await postgres.createDatabase()];
      const first = await startTestPlatform({ args, env: { AGENTPLATFORM_DATABASE_URL: url } });
      const clients = clientsOf(first);
      const kept = await fill(first, clients);
      // Whoever reads it has waited for the journal.
      await clients.data.send(new ListEventsCommand({ memoryId: kept.memoryId, ...of }));
      await follow('Back up with PostgreSQL', folder, first.dataDir, url);
      clients.close();
      await first.dispose();
      await postgres.exec(url, 'DROP SCHEMA public CASCADE');
      const dataDir = join(folder, 'data');
      await follow('Restore', folder, dataDir, other);
      const second = await startTestPlatform({ args, dataDir, env: { AGENTPLATFORM_DATABASE_URL: other } });
      await look(second, kept);
      await second.dispose();
    });
  });
});
