import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  GetCodeInterpreterSessionCommand,
  ListCodeInterpreterSessionsCommand,
  StartCodeInterpreterSessionCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateCodeInterpreterCommand,
  DeleteResourcePolicyCommand,
  ListTagsForResourceCommand,
  PutResourcePolicyCommand,
  TagResourceCommand,
  UntagResourceCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { startCodeSession } from '../support/code-session.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const BUILT_IN = 'aws.codeinterpreter.v1';
const env = { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim', AGENTPLATFORM_CODE_INTERPRETER_WARM_SESSIONS: '0' };
let dataDir: string;
let platform: TestPlatform;
let clients: Clients;

async function restart(): Promise<void> {
  platform = await startTestPlatform({ dataDir, env });
  clients = clientsOf(platform);
}

async function status(sessionId: string): Promise<string | undefined> {
  const about = { codeInterpreterIdentifier: BUILT_IN, sessionId };
  return (await clients.data.send(new GetCodeInterpreterSessionCommand(about))).status;
}

async function listed(wanted: 'READY' | 'TERMINATED'): Promise<(string | undefined)[]> {
  const page = { codeInterpreterIdentifier: BUILT_IN, status: wanted };
  const { items } = await clients.data.send(new ListCodeInterpreterSessionsCommand(page));
  return (items ?? []).map((item) => item.sessionId);
}

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'interpreter-killed-'));
  await restart();
  await startCodeSession(clients).then((session) => session.stop());
}, 400_000);
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await rm(dataDir, { recursive: true, force: true });
});

describe('a session', () => {
  it('ends by itself after the time that was asked for, and calls are told', { timeout: 60_000 }, async () => {
    const start = { codeInterpreterIdentifier: BUILT_IN, sessionTimeoutSeconds: 3 };
    const { sessionId = '' } = await clients.data.send(new StartCodeInterpreterSessionCommand(start));
    while ((await status(sessionId)) !== 'TERMINATED') await sleep(200);
    expect(await listed('TERMINATED')).toContain(sessionId);
    expect(await listed('READY')).not.toContain(sessionId);
  });

  it('lives at most 8 hours', async () => {
    for (const sessionTimeoutSeconds of [28_801, 0])
      await expect(
        clients.data.send(
          new StartCodeInterpreterSessionCommand({ codeInterpreterIdentifier: BUILT_IN, sessionTimeoutSeconds }),
        ),
      ).rejects.toMatchObject({
        name: 'ValidationException',
        fieldList: [{ name: expect.stringContaining('sessionTimeoutSeconds') }],
      });
    const { sessionId } = await clients.data.send(
      new StartCodeInterpreterSessionCommand({ codeInterpreterIdentifier: BUILT_IN }),
    );
    const about = { codeInterpreterIdentifier: BUILT_IN, sessionId };
    expect((await clients.data.send(new GetCodeInterpreterSessionCommand(about))).sessionTimeoutSeconds).toBe(900);
  });
});

describe('a server that is killed', () => {
  it('finds its sessions again with variables and files; an orderly end ends them', { timeout: 200_000 }, async () => {
    const before = await startCodeSession(clients);
    await before.python('kept = 41\nopen("kept.txt", "w").write("file")');
    clients.close();
    await platform.end('SIGKILL');
    await restart();
    expect(await status(before.id)).toBe('READY');
    const after = await startCodeSession(clients, BUILT_IN, before.id);
    expect((await after.python('kept + 1, open("kept.txt").read()')).text).toBe("(42, 'file')");

    clients.close();
    expect(await platform.end('SIGTERM')).toBe(0);
    await restart();
    expect(await status(before.id)).toBe('TERMINATED');
  });
});

describe('an interpreter of one’s own', () => {
  it('has tags and a resource policy that is asked', async () => {
    const made = await clients.control.send(
      new CreateCodeInterpreterCommand({
        name: 'owned',
        networkConfiguration: { networkMode: 'SANDBOX' },
        tags: { team: 'red' },
      }),
    );
    const resourceArn = made.codeInterpreterArn ?? '';
    const { control } = clients;
    await control.send(new TagResourceCommand({ resourceArn, tags: { cost: '7' } }));
    await control.send(new UntagResourceCommand({ resourceArn, tagKeys: ['team'] }));
    expect((await control.send(new ListTagsForResourceCommand({ resourceArn }))).tags).toEqual({ cost: '7' });

    const session = await startCodeSession(clients, made.codeInterpreterId);
    expect((await session.python('1')).text).toBe('1');
    const policy = JSON.stringify({
      Version: '2012-10-17',
      Statement: [
        {
          Effect: 'Deny',
          Principal: '*',
          Action: 'bedrock-agentcore:InvokeCodeInterpreter',
          Resource: resourceArn,
        },
      ],
    });
    await control.send(new PutResourcePolicyCommand({ resourceArn, policy }));
    await expect(session.python('1')).rejects.toMatchObject({ name: 'AccessDeniedException' });
    await control.send(new DeleteResourcePolicyCommand({ resourceArn }));
    expect((await session.python('1')).text).toBe('1');
    await session.stop();
  });
});

describe('what the sessions used', () => {
  it('is metered as that of agents is: processor time and highest memory, in the same table', async () => {
    const busy = await startCodeSession(clients);
    await busy.python('import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass');
    await busy.stop();
    clients.close();
    expect(await platform.end('SIGTERM')).toBe(0);
    const database = await openDatabase({ dataDir, clock: systemClock, log: pino({ enabled: false }) });
    try {
      const rows = await database.query<Record<string, unknown>>('SELECT * FROM session_usage');
      const row = rows.find(({ session_id: id }) => id === busy.id);
      expect(row).toMatchObject({ final: true });
      expect(row?.resource_arn).toMatch(/:aws:code-interpreter\/aws\.codeinterpreter\.v1$/);
      expect(Number(row?.cpu_seconds)).toBeGreaterThan(0.5);
      // A Python server and a kernel have some megabytes at least.
      expect(Number(row?.memory_high_water_bytes)).toBeGreaterThan(32 * 2 ** 20);
    } finally {
      await database.close();
    }
  });
});
