import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { BatchCreateMemoryRecordsCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { sayIn } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const ROOT = resolve(import.meta.dirname, '../..');
let platform: TestPlatform;
let clients: Clients;
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'agentplatform-memory-cli-'));
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await rm(dir, { recursive: true, force: true });
});

async function agentcore(...args: string[]): Promise<string> {
  const command = [join(ROOT, 'packages/cli/bin/agentcore.mjs'), 'memory', ...args];
  const env = { ...process.env, ...platform.env };
  const { stdout } = await promisify(execFile)(process.execPath, command, {
    env,
    cwd: dir,
    timeout: 60_000,
  });
  return stdout.trim();
}

it('agentcore memory makes, shows, searches, exports and imports without loss', async () => {
  const from = await agentcore('create', 'source', '--strategies', 'semantic', '--expiry', '30');
  expect(from).toMatch(/^source-/);
  const session = { memoryId: from, actorId: 'jane', sessionId: 's1' };
  const at = (n: number) => ({
    eventTimestamp: new Date(1_700_000_000_000 + n * 1500),
    extractionMode: 'SKIP' as const,
  });
  const root = await sayIn(
    clients,
    session,
    [
      ['one \u0000', 'USER'],
      ['two', 'ASSISTANT'],
    ],
    at(1),
  );
  await sayIn(clients, session, [['three', 'USER']], { ...at(2), metadata: { mood: { stringValue: 'good' } } });
  await sayIn(clients, session, [['fork', 'USER']], { ...at(3), branch: { name: 'fork', rootEventId: root } });
  await sayIn(clients, session, [], { ...at(4), payload: [{ blob: { deep: [1, null] } }] });
  const metadata = { when: { dateTimeValue: new Date(1e12) }, level: { numberValue: 2.5 } };
  await clients.data.send(
    new BatchCreateMemoryRecordsCommand({
      memoryId: from,
      records: [
        {
          requestIdentifier: 'a',
          namespaces: ['/x/y'],
          content: { text: 'Jane sails a boat' },
          timestamp: new Date(1.7e12),
          metadata,
        },
      ],
    }),
  );
  expect(await agentcore('events', from)).toMatch(/jane\s+s1/);
  expect(await agentcore('events', from, '--actor', 'jane', '--session', 's1', '--limit', '3')).toContain(
    'USER: three',
  );
  expect(await agentcore('records', from)).toBe('/x/y  Jane sails a boat');
  expect(await agentcore('search', from, 'boat')).toMatch(/^1\.00 {2}Jane sails a boat$/);

  const file = join(dir, 'source.jsonl');
  await agentcore('export', from, '--output', file);
  const to = await agentcore('create', 'target');
  for (const _ of [1, 2]) await agentcore('import', to, file);
  const copy = join(dir, 'target.jsonl');
  await agentcore('export', to, '--output', copy);
  const without = async (path: string) =>
    (await readFile(path, 'utf8'))
      .trim()
      .split('\n')
      .map((line) =>
        JSON.parse(line, (key, value) => (/Id$/.test(key) && !/actor|session/.test(key) ? undefined : value)),
      );
  expect(await without(copy)).toEqual(await without(file));
  expect(await without(copy)).toHaveLength(5);

  await writeFile(join(dir, 'bad.jsonl'), '{"kind":"event"}\n');
  await expect(agentcore('import', to, join(dir, 'bad.jsonl'))).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Line 1'),
  });
  await expect(agentcore('create', 'x', '--strategies', 'magic')).rejects.toMatchObject({
    stderr: expect.stringContaining('semantic, preference'),
  });
}, 120_000);
