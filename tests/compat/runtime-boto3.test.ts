import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { uploadFolder } from '../support/deploy.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { testPython } from '../support/python.ts';

const python = await testPython();
const probe = join(import.meta.dirname, '../support/probe-agent');
let platform: TestPlatform;
let clients: Clients;

beforeAll(async () => {
  platform = await startTestPlatform();
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

describe.skipIf(!python)('boto3, unmodified, pointed here by its environment', () => {
  it('drives the whole runtime', async () => {
    const place = await uploadFolder(clients, probe);
    Object.assign(process.env, platform.env);
    const seen = await python?.run(join(import.meta.dirname, 'runtime_boto3.py'), {
      roleArn: platform.ready.defaultRoleArn,
      place,
    });
    expect(seen).toMatchObject({
      status: 'READY',
      counts: [1, 2, 1],
      stream: ['data: part 1', 'data: part 2', 'data: part 3'],
      typeSeen: 'application/json',
      contentType: 'text/event-stream',
      stopped: true,
      fresh: 1,
      agentFails: { code: 'RuntimeClientError', class: 'RuntimeClientError' },
      noRuntime: { code: 'ResourceNotFoundException', class: 'ResourceNotFoundException' },
      updated: '2',
      versions: ['2', '1'],
      endpoint: '1',
      endpoints: ['DEFAULT', 'pinned'],
      paginated: ['from_boto3'],
      tags: { team: 'red' },
      deleted: 'DELETING',
    });
    expect((seen as { large: number }).large).toBeGreaterThan(2_000_000);
  });
});
