import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  BatchCreateMemoryRecordsCommand,
  ListCodeInterpreterSessionsCommand,
  StopCodeInterpreterSessionCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { CreateCodeInterpreterCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { startCodeSession } from '../support/code-session.ts';
import { deployAgent } from '../support/deploy.ts';
import { assumeNewRole, newRole } from '../support/iam.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { newMemory, sayIn } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const BUILT_IN = 'aws.codeinterpreter.v1';
const agent = join(resolve(import.meta.dirname, '../..'), 'tests/support/role-agent');
let dir: string;
let platform: TestPlatform;
let root: Clients;
/** Two agents of the default role, and one of a role that may do all that AgentCore has. */
let one: string;
let two: string;
let wide: string;
let custom: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'ownership-'));
  await bundleCode(
    { folder: agent, file: { name: 'role_agent', language: 'javascript', entrypoint: 'index.mjs' } },
    dir,
  );
  platform = await startTestPlatform({ env: { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim' } });
  root = clientsOf(platform);
  await startCodeSession(root).then((session) => session.stop());
  const roleArn = await newRole(platform, 'wide', [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }]);
  one = (await deployAgent(platform, root, { folder: dir })).arn;
  two = (await deployAgent(platform, root, { folder: dir })).arn;
  wide = (await deployAgent(platform, root, { folder: dir, roleArn })).arn;
  const networkConfiguration = { networkMode: 'SANDBOX' as const };
  const made = await root.control.send(new CreateCodeInterpreterCommand({ name: 'shared', networkConfiguration }));
  custom = made.codeInterpreterId ?? '';
}, 400_000);
afterAll(async () => {
  root?.close();
  await platform?.dispose();
  await rm(dir, { recursive: true, force: true });
});

type Call = (command: string, input: object) => Promise<Record<string, unknown>>;
/** Operations as an agent calls them in that session of its own. */
const from =
  (arn: string, session: string): Call =>
  (command, input) =>
    invokeJson(root, arn, session, { do: 'call', command: `${command}Command`, input });

/** What a caller can do with a code interpreter session: the words of success, or the code of the refusal. */
async function attempts(call: Call, codeInterpreterIdentifier: string, id: string): Promise<Record<string, unknown>> {
  const named = { codeInterpreterIdentifier, sessionId: id };
  const run = (name: string, args: object) => call('InvokeCodeInterpreter', { ...named, name, arguments: args });
  const listed = (await call('ListCodeInterpreterSessions', { codeInterpreterIdentifier })) as { items?: object[] };
  const said = ({ error }: Record<string, unknown>) => error ?? 'done';
  return {
    list: listed.items?.some((item) => JSON.stringify(item).includes(id)) ?? said(listed),
    get: said(await call('GetCodeInterpreterSession', named)),
    run: said(await run('executeCode', { language: 'python', code: 'secret' })),
    files: said(await run('listFiles', {})),
    stop: said(await call('StopCodeInterpreterSession', named)),
  };
}

const all = { list: true, get: 'done', run: 'done', files: 'done', stop: 'done' };
const gone = 'ResourceNotFoundException';
const none = { list: false, get: gone, run: gone, files: gone, stop: gone };

describe.each([
  ['the built-in code interpreter', () => BUILT_IN],
  ['one of the account', () => custom],
])('a session of %s', (_, interpreter) => {
  it('is there for the sandbox that started it, and for no other', { timeout: 300_000 }, async () => {
    const starter = from(one, sessionId('starter'));
    const started = await starter('StartCodeInterpreterSession', { codeInterpreterIdentifier: interpreter() });
    const id = String(started.sessionId);
    expect(started).toMatchObject({ sessionId: expect.stringMatching(/^[0-9a-zA-Z]+$/) });
    const neighbours = {
      'another session of the same agent': from(one, sessionId('again')),
      'another agent of the same role': from(two, sessionId('other')),
      'an agent that may use all of AgentCore': from(wide, sessionId('wide')),
    };
    for (const [who, neighbour] of Object.entries(neighbours)) {
      expect(await attempts(neighbour, interpreter(), id), who).toEqual(none);
      // It has its own at the same interpreter: nothing but the owner is between the two.
      const own = await neighbour('StartCodeInterpreterSession', { codeInterpreterIdentifier: interpreter() });
      expect(await attempts(neighbour, interpreter(), String(own.sessionId)), who).toEqual(all);
    }
    expect(await attempts(starter, interpreter(), id)).toEqual(all);
  });
});

describe('who administers', () => {
  it('is root, and who is allowed to by name; a caller of the operations alone is not', {
    timeout: 300_000,
  }, async () => {
    const starter = from(one, sessionId('administered'));
    const id = String(
      (await starter('StartCodeInterpreterSession', { codeInterpreterIdentifier: BUILT_IN })).sessionId,
    );
    const role = async (name: string, Action: string[]) =>
      clientsOf(platform, {
        credentials: await assumeNewRole(platform, name, [{ Effect: 'Allow', Action, Resource: '*' }]),
      });
    const plain = await role('plain', ['bedrock-agentcore:*']);
    const admin = await role('admin', ['bedrock-agentcore:*', 'agentplatform:AdministerCodeInterpreterSessions']);
    const ids = async ({ data }: Clients) => {
      const list = new ListCodeInterpreterSessionsCommand({ codeInterpreterIdentifier: BUILT_IN });
      return (await data.send(list)).items?.map(({ sessionId }) => sessionId);
    };
    try {
      expect(await ids(root)).toContain(id);
      expect(await ids(admin)).toContain(id);
      expect(await ids(plain)).toEqual([]);
      expect((await (await startCodeSession(admin, BUILT_IN, id)).python('6 * 7')).text).toBe('42');
      const stop = new StopCodeInterpreterSessionCommand({ codeInterpreterIdentifier: BUILT_IN, sessionId: id });
      await expect(plain.data.send(stop)).rejects.toMatchObject({ name: gone });
      expect((await admin.data.send(stop)).sessionId).toBe(id);
    } finally {
      plain.close();
      admin.close();
    }
  });
});

describe('the default role', () => {
  it('lists no users of a memory and ends no session of another agent', async () => {
    const call = from(one, sessionId('curious'));
    const memory = (await newMemory(root)).id;
    await sayIn(root, { memoryId: memory, actorId: 'ada', sessionId: 's' }, [['hello', 'USER']]);
    const victim = sessionId('victim');
    await invokeJson(root, two, victim, { do: 'env' });
    const stop = { agentRuntimeArn: two, runtimeSessionId: victim };
    const denied = { error: 'AccessDeniedException' };
    expect(await call('ListActors', { memoryId: memory })).toMatchObject(denied);
    expect(await call('StopRuntimeSession', stop)).toMatchObject(denied);
    // The control: both are there for who may.
    const wideCall = from(wide, sessionId('wide'));
    expect(await wideCall('ListActors', { memoryId: memory })).toMatchObject({ actorSummaries: [{ actorId: 'ada' }] });
    expect(await wideCall('StopRuntimeSession', stop)).toMatchObject({ runtimeSessionId: victim });
  });

  it('finds records of a place that it names, not those of all whom a memory serves', async () => {
    const memoryId = (await newMemory(root)).id;
    const record = { content: { text: 'she is allergic to peanuts' }, timestamp: new Date(), requestIdentifier: 'r' };
    const records = [{ ...record, namespaces: ['/users/ada'] }];
    await root.data.send(new BatchCreateMemoryRecordsCommand({ memoryId, records }));
    const [call, wideCall] = [from(one, sessionId('curious')), from(wide, sessionId('wide'))];
    const found = { memoryRecordSummaries: [{ content: { text: record.content.text } }] };
    const searchCriteria = { searchQuery: 'peanuts' };
    for (const place of [{}, { namespacePath: '/' }, { namespacePath: '/users' }, { namespacePath: '//users/' }])
      for (const [operation, more] of [
        ['ListMemoryRecords', {}] as const,
        ['RetrieveMemoryRecords', { searchCriteria }] as const,
      ]) {
        const answer = await call(operation, { memoryId, ...place, ...more });
        expect(answer, JSON.stringify([operation, place])).toMatchObject({ error: 'AccessDeniedException' });
      }
    for (const place of [{ namespace: '/users/ada' }, { namespacePath: '/users/ada' }])
      expect(await call('ListMemoryRecords', { memoryId, ...place })).toMatchObject(found);
    // The control: they are there for who may look everywhere.
    expect(await wideCall('ListMemoryRecords', { memoryId, namespacePath: '/' })).toMatchObject(found);
  });
});
