import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  BatchCreateMemoryRecordsCommand,
  ListCodeInterpreterSessionsCommand,
  ListSessionsCommand,
  StopCodeInterpreterSessionCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateCodeInterpreterCommand,
  CreateGatewayCommand,
  CreateGatewayTargetCommand,
  type TargetConfiguration,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { startCodeSession } from '../support/code-session.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeFunction, lambdaClient, newFunction } from '../support/functions.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { assumeNewRole, newRole, newUser, setPolicy } from '../support/iam.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { newMemory, sayIn } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const BUILT_IN = 'aws.codeinterpreter.v1';
/** What agents of the default role may do with memories that were given to them; `whose-operations.test.ts` has the same list. */
const GIVEN_OPERATIONS = [
  ...['CreateEvent', 'GetEvent', 'ListEvents', 'ListSessions', 'GetMemoryRecord', 'ListMemoryRecords'],
  ...['RetrieveMemoryRecords', 'BatchCreateMemoryRecords', 'BatchUpdateMemoryRecords', 'BatchDeleteMemoryRecords'],
  'DeleteMemoryRecord',
];
/** A function that answers with the credentials of its role. */
const TELLS_CREDENTIALS = `export const handler = async () =>
  (await fetch(process.env.AWS_CONTAINER_CREDENTIALS_FULL_URI, {
    headers: { authorization: process.env.AWS_CONTAINER_AUTHORIZATION_TOKEN },
  })).json();`;
const agent = join(resolve(import.meta.dirname, '../..'), 'tests/support/role-agent');
let dir: string;
let platform: TestPlatform;
let root: Clients;
/** Two agents of the default role, and one of a role that may do all that AgentCore has. */
let one: string;
let two: string;
let wide: string;
let custom: string;
/** A memory that is given to agent `one` alone. */
let memoryId: string;

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
  memoryId = (await newMemory(root)).id;
  const environmentVariables = { MEMORY_ID: memoryId };
  one = (await deployAgent(platform, root, { folder: dir, environmentVariables })).arn;
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
    await sayIn(root, { memoryId, actorId: 'ada', sessionId: 's' }, [['hello', 'USER']]);
    const victim = sessionId('victim');
    await invokeJson(root, two, victim, { do: 'env' });
    const stop = { agentRuntimeArn: two, runtimeSessionId: victim };
    const denied = { error: 'AccessDeniedException' };
    expect(await call('ListActors', { memoryId })).toMatchObject(denied);
    expect(await call('StopRuntimeSession', stop)).toMatchObject(denied);
    // The control: both are there for who may.
    const wideCall = from(wide, sessionId('wide'));
    expect(await wideCall('ListActors', { memoryId })).toMatchObject({ actorSummaries: [{ actorId: 'ada' }] });
    expect(await wideCall('StopRuntimeSession', stop)).toMatchObject({ runtimeSessionId: victim });
  });

  it('finds records of a place that it names, not those of all whom a memory serves', async () => {
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

/** Whoever may deploy, but may not give memories away. */
const DEPLOYER = [
  {
    Effect: 'Allow',
    Action: ['bedrock-agentcore:*', 'iam:PassRole', 's3:*', 'lambda:*'],
    Resource: '*',
  },
];
const GIVER = [{ Effect: 'Allow', Action: 'agentplatform:UseMemory', Resource: '*' }];

describe('a memory', () => {
  /** All that the default role may do with it, at one event and one record of `ada`. */
  async function everyOperation(call: Call, memory: string): Promise<Record<string, unknown>> {
    const [actorId, sessionId, namespace] = ['ada', 'talk', '/users/ada'];
    const eventId = await sayIn(root, { memoryId: memory, actorId, sessionId }, [['hello', 'USER']]);
    const record = () => ({ content: { text: 'tea' }, timestamp: 0, requestIdentifier: 'r', namespaces: [namespace] });
    const made = async (): Promise<string> => {
      const records = [{ ...record(), timestamp: new Date(0) }];
      const { successfulRecords } = await root.data.send(
        new BatchCreateMemoryRecordsCommand({ memoryId: memory, records }),
      );
      return successfulRecords?.[0]?.memoryRecordId ?? '';
    };
    const [first, second, third] = [await made(), await made(), await made()];
    const payload = [{ conversational: { role: 'USER', content: { text: 'hi' } } }];
    const session = { memoryId: memory, actorId, sessionId };
    const changed = { memoryRecordId: first, timestamp: 0, content: { text: 'milk' } };
    const asked: [string, object][] = [
      ['CreateEvent', { ...session, eventTimestamp: 0, payload }],
      ['GetEvent', { ...session, eventId }],
      ['ListEvents', session],
      ['ListSessions', { memoryId: memory, actorId }],
      ['GetMemoryRecord', { memoryId: memory, memoryRecordId: first }],
      ['ListMemoryRecords', { memoryId: memory, namespace }],
      ['RetrieveMemoryRecords', { memoryId: memory, namespace, searchCriteria: { searchQuery: 'tea' } }],
      ['BatchCreateMemoryRecords', { memoryId: memory, records: [record()] }],
      ['BatchUpdateMemoryRecords', { memoryId: memory, records: [{ ...changed, sourceNamespaces: [namespace] }] }],
      ['BatchDeleteMemoryRecords', { memoryId: memory, records: [{ memoryRecordId: second }] }],
      ['DeleteMemoryRecord', { memoryId: memory, memoryRecordId: third }],
    ];
    const said: Record<string, unknown> = {};
    for (const [operation, input] of asked) said[operation] = (await call(operation, input)).error ?? 'done';
    return said;
  }
  const everywhere = (said: string): Record<string, unknown> =>
    Object.fromEntries(GIVEN_OPERATIONS.map((name) => [name, said]));

  it('is there for agents of the default role that it was given to, and for no other that knows its id', {
    timeout: 120_000,
  }, async () => {
    const other = (await newMemory(root)).id;
    const [given, curious] = [from(one, sessionId('given')), from(two, sessionId('curious'))];
    expect(await everyOperation(curious, memoryId)).toEqual(everywhere('AccessDeniedException'));
    const { message } = await curious('ListSessions', { memoryId, actorId: 'ada' });
    expect(message).toContain('Name the memory in an environment variable');
    expect(await everyOperation(given, other)).toEqual(everywhere('AccessDeniedException'));
    // The controls: who was given it, and who may use every memory, does all of that.
    expect(await everyOperation(given, memoryId)).toEqual(everywhere('done'));
    expect(await everyOperation(from(wide, sessionId('wide')), other)).toEqual(everywhere('done'));
  });

  it('is given away by nobody who may not, to an agent, a function or a gateway', { timeout: 300_000 }, async () => {
    const { id } = await newMemory(root);
    const arn = `arn:aws:bedrock-agentcore:${platform.ready.region}:${platform.ready.accountId}:memory/${id}`;
    const credentials = await newUser(platform, 'deployer', DEPLOYER);
    const deployer = clientsOf(platform, { credentials });
    const lambda = lambdaClient(platform, { credentials });
    const seek = { memoryId: id, actorId: 'ada' };
    let round = 0;
    const reached = async (): Promise<Record<string, unknown>> => {
      round++;
      const deployed = await deployAgent(platform, deployer, { folder: dir, environmentVariables: { NOTES: arn } });
      const agent = await from(deployed.arn, sessionId('deployed'))('ListSessions', seek);

      const name = `seeker-${round}`;
      const Environment = { Variables: { NOTES: id } };
      await newFunction(lambda, platform, name, { files: { 'index.mjs': TELLS_CREDENTIALS }, Environment });
      const { AccessKeyId, SecretAccessKey, Token } = (await invokeFunction(lambda, name)).value;
      const own = { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: Token };
      const asFunction = clientsOf(platform, { credentials: own });
      const listed = await asFunction.data.send(new ListSessionsCommand(seek)).then(
        () => 'done',
        (error: Error) => error.name,
      );
      asFunction.close();

      const [passing, tools] = [await gateway(round, 'traffic'), await gateway(round, 'tools')];
      const source = { connectorId: 'agentcore-memory' };
      await target(passing.id, {
        http: { connector: { source, parameters: { memoryId: id } } },
      } as TargetConfiguration);
      const configurations = [{ name: 'listSessions', parameterValues: { memoryId: id } }];
      const connector = { source, enabled: ['listSessions'], configurations };
      await target(tools.id, { mcp: { connector } } as TargetConfiguration);
      const path = `/gateways/${passing.id}/notes/memories/${id}/actor/ada/sessions`;
      const { status } = await signedFetch(platform, { method: 'POST', path, content: {} });
      const client = await connectMcp(tools.url, { fetch: signingFetch(platform) });
      const called = await client.callTool({ name: 'notes___listSessions', arguments: { actorId: 'ada' } });
      await client.close();
      return { agent: agent.error ?? 'done', function: listed, traffic: status, tools: called.isError === true };
    };
    const gateway = async (round: number, kind: string) => {
      const roleArn = platform.ready.defaultRoleArn;
      const protocol = kind === 'tools' ? { protocolType: 'MCP' as const } : {};
      const { gatewayId = '', gatewayUrl = '' } = await deployer.control.send(
        new CreateGatewayCommand({ name: `${kind}-${round}`, roleArn, authorizerType: 'AWS_IAM', ...protocol }),
      );
      return { id: gatewayId, url: gatewayUrl };
    };
    const target = async (gatewayIdentifier: string, targetConfiguration: TargetConfiguration) => {
      const { targetId = '' } = await deployer.control.send(
        new CreateGatewayTargetCommand({
          ...{ gatewayIdentifier, name: 'notes', targetConfiguration },
          credentialProviderConfigurations: [{ credentialProviderType: 'GATEWAY_IAM_ROLE' }],
        }),
      );
      expect(await settledTarget(deployer, gatewayIdentifier, targetId)).toMatchObject({ status: 'READY' });
    };
    try {
      const no = 'AccessDeniedException';
      expect(await reached()).toEqual({ agent: no, function: no, traffic: 403, tools: true });
      // The control: by somebody who may.
      await setPolicy(platform, 'deployer', [...DEPLOYER, ...GIVER], 'users');
      expect(await reached()).toEqual({ agent: 'done', function: 'done', traffic: 200, tools: false });
    } finally {
      deployer.close();
      lambda.destroy();
    }
  });
});
