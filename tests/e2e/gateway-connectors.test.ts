import {
  type ConnectorConfiguration,
  type ConnectorTargetConfiguration,
  CreateGatewayCommand,
  CreateGatewayTargetCommand,
  CreateMemoryCommand,
  type CredentialProviderConfiguration,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { newRole } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;
let roleArn: string;
let memoryId: string;

beforeAll(async () => {
  platform = await startTestPlatform({ env: { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim' } });
  clients = clientsOf(platform);
  const may = [
    'CreateEvent',
    'ListEvents',
    'InvokeCodeInterpreter',
    'StartCodeInterpreterSession',
    'StopCodeInterpreterSession',
  ];
  const Action = may.map((action) => `bedrock-agentcore:${action}`);
  roleArn = await newRole(platform, 'of-connectors', [{ Effect: 'Allow', Action, Resource: '*' }]);
  const { memory } = await clients.control.send(new CreateMemoryCommand({ name: 'notes', eventExpiryDuration: 30 }));
  memoryId = memory?.id ?? '';
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

let named = 0;
async function gateway(more: object = {}) {
  const { gatewayId: id = '', gatewayUrl: url = '' } = await clients.control.send(
    new CreateGatewayCommand({ name: `connected-${++named}`, roleArn, authorizerType: 'AWS_IAM', ...more }),
  );
  return { id, url };
}

type Connector = Partial<ConnectorTargetConfiguration>;

async function target(
  gatewayIdentifier: string,
  connectorId: string,
  connector: Connector = {},
  credentialProviderConfigurations: CredentialProviderConfiguration[] = [
    { credentialProviderType: 'GATEWAY_IAM_ROLE' },
  ],
) {
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({
      ...{ gatewayIdentifier, name: 'own' },
      targetConfiguration: { mcp: { connector: { source: { connectorId }, ...connector } } },
      ...(credentialProviderConfigurations.length > 0 && { credentialProviderConfigurations }),
    }),
  );
  return settledTarget(clients, gatewayIdentifier, targetId);
}

/** Two tools of one memory; whose conversations they are is fixed for the first. */
const notes = (): ConnectorConfiguration[] => [
  {
    name: 'createEvent',
    description: 'Keeps a note',
    parameterValues: { memoryId, actorId: 'ada' },
    parameterOverrides: [{ path: '/sessionId', description: 'The name of the notebook' }],
  },
  { name: 'listEvents', parameterValues: { memoryId, maxResults: 5 } },
];

const textOf = (result: object): string =>
  (result as { content: { text?: string }[] }).content.map(({ text }) => text).join();

describe('the connector of Memory', () => {
  it('remembers and lists with the gateway’s role; what the target fixes no argument changes', async () => {
    const { id, url } = await gateway();
    const connector = { enabled: ['createEvent', 'listEvents'], configurations: notes() };
    expect(await target(id, 'agentcore-memory', connector)).toMatchObject({ status: 'READY' });
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['own___createEvent', 'own___listEvents']);
    const [create] = tools;
    expect(create).toMatchObject({
      description: 'Keeps a note',
      annotations: { readOnlyHint: false },
      inputSchema: {
        required: ['sessionId', 'messages'],
        properties: { sessionId: { description: 'The name of the notebook' } },
      },
    });
    expect(Object.keys(create?.inputSchema.properties ?? {})).toEqual(['messages', 'sessionId']);
    const note = {
      sessionId: 'diary-of-ada-in-november-2026-0001',
      messages: [{ role: 'USER', text: 'tea, no milk' }],
    };
    const made = await client.callTool({ name: 'own___createEvent', arguments: note });
    expect(made.structuredContent).toMatchObject({ event: { actorId: 'ada', memoryId } });
    const { sessionId } = note;
    const listed = await client.callTool({ name: 'own___listEvents', arguments: { actorId: 'ada', sessionId } });
    expect(textOf(listed)).toContain('tea, no milk');
    const other = await client.callTool({ name: 'own___createEvent', arguments: { ...note, actorId: 'bob' } });
    expect(other.isError).toBe(true);
    expect(textOf(other)).toContain('actorId');
    await client.close();
  });
});

describe('the connector of Code interpreter', () => {
  it('runs code in a session that the next call goes on with', async () => {
    const { id, url } = await gateway();
    expect(await target(id, 'agentcore-code-interpreter')).toMatchObject({ status: 'READY' });
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const run = (code: string, more: object = {}) =>
      client.callTool(
        { name: 'own___executeCode', arguments: { code, language: 'python', ...more } },
        { timeout: 120_000 },
      );
    let first = await run('x = 6 * 7\nprint(x)');
    // A call is let wait only so long for the image of the first session: who is told to come back does.
    for (let left = 10; first.isError && left > 0; left--) first = await run('x = 6 * 7\nprint(x)');
    expect(first.structuredContent, JSON.stringify(first)).toMatchObject({
      sessionId: expect.any(String),
      stdout: expect.stringContaining('42'),
    });
    const { sessionId } = first.structuredContent as { sessionId: string };
    expect((await run('print(x + 1)', { sessionId })).structuredContent).toMatchObject({
      stdout: expect.stringContaining('43'),
    });
    const wrong = await run('1 / 0', { sessionId });
    expect(wrong.isError).toBe(true);
    const stopped = await client.callTool({ name: 'own___stopSession', arguments: { sessionId } });
    expect(stopped.isError).not.toBe(true);
    await client.close();
  });
});

describe('a connector is refused by name', () => {
  it.each([
    ['agentcore-browser', {}, /agentcore-browser comes with the Browser/],
    ['bedrock-knowledge-bases', {}, /no knowledge bases/],
    ['web-search', {}, /searches no web/],
    ['openai', {}, /targets of models/],
    ['toString', {}, /names no connector: toString; there are agentcore-memory, agentcore-code-interpreter/],
    ['agentcore-memory', {}, /createEvent must have parameterValues.memoryId/],
    ['agentcore-code-interpreter', { enabled: ['fly'] }, /names no tool .*: fly; it has executeCode/],
    [
      'agentcore-code-interpreter',
      { configurations: [{ name: 'stopSession', parameterValues: { wings: 2 } }] },
      /wings, which is none/,
    ],
    [
      'agentcore-code-interpreter',
      { configurations: [{ name: 'executeCode', parameterValues: { language: 'cobol' } }] },
      /value for language that/,
    ],
    [
      'agentcore-code-interpreter',
      { configurations: [{ name: 'executeCode', parameterOverrides: [{ path: '/code', visible: false }] }] },
      /hides \/code, which needs a value/,
    ],
    [
      'agentcore-code-interpreter',
      { configurations: [{ name: 'executeCode', parameterOverrides: [{ path: '/a/b' }] }] },
      /overrides \/a\/b/,
    ],
    [
      'agentcore-code-interpreter',
      { source: { connectorId: 'agentcore-code-interpreter', version: '9.9.9' } },
      /must be 1\.0\.0/,
    ],
  ])('%s with %j', async (connectorId, connector, message) => {
    const { id } = await gateway();
    await expect(target(id, connectorId, connector)).rejects.toThrow(message);
  });

  it('without the credentials of the role, and with those of the caller', async () => {
    const { id } = await gateway();
    await expect(target(id, 'agentcore-code-interpreter', {}, [])).rejects.toThrow(/are required for this kind/);
    const asCaller = [{ credentialProviderType: 'CALLER_IAM_CREDENTIALS' as const }];
    await expect(target(id, 'agentcore-code-interpreter', {}, asCaller)).rejects.toThrow(
      /CALLER_IAM_CREDENTIALS are not for this kind of target; it takes GATEWAY_IAM_ROLE/,
    );
  });
});
