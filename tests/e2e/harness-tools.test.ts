import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { HarnessMessage } from '@aws-sdk/client-bedrock-agentcore';
import { CreateGatewayCommand, type HarnessTool } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startModernBackend } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { modernServer } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { needChromium } from '../support/browser-session.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { lambdaClient, newFunction } from '../support/functions.ts';
import { addMcpServer } from '../support/gateway.ts';
import { type Answer, invokeHarness, newHarness, newSession, user } from '../support/harness.ts';
import { newRole } from '../support/iam.ts';
import { texts, untilRecords } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { ScriptedModel, type ScriptedReply } from '../support/scripted-model.ts';

const TOPIC = 'arn:aws:sns:us-east-1:123456789012:harness-hooks';
const KEY = 'mcp-secret-key';
let platform: TestPlatform;
let clients: Clients;
let model: ScriptedModel;
let backend: { url: string; close(): Promise<void> };
const told: Record<string, unknown>[] = [];

/** The receiver of a topic's messages. */
const webhook = createServer(async (request, response) => {
  const { Message } = (await json(request)) as { Message: string };
  told.push(JSON.parse(Message));
  response.end();
});

beforeAll(async () => {
  model = await ScriptedModel.start();
  await new Promise<void>((done) => webhook.listen(0, '127.0.0.1', done));
  const tools = ['echo', 'fail'].map((name) => ({
    name,
    description: `Does ${name}.`,
    inputSchema: { type: 'object' },
  }));
  backend = await startModernBackend(() =>
    modernServer({
      tools,
      run: ({ name, arguments: args }) => ({
        content: [{ type: 'text', text: `${name} ${JSON.stringify(args)}` }],
        ...(name === 'fail' ? { isError: true } : {}),
      }),
    }),
  );
  platform = await startTestPlatform({
    args: [
      ...['--models-url', model.url, '--models-name', 'scripted', '--allow-private-egress', '127.0.0.0/8'],
      ...['--notifications-webhooks', `${TOPIC}=http://127.0.0.1:${(webhook.address() as AddressInfo).port}`],
      ...['--memory-extraction-delay-seconds', '0.2'],
    ],
  });
  clients = clientsOf(platform);
}, 300_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await backend?.close();
  model?.close();
  webhook.close();
});

beforeEach(() => {
  model.requests.length = 0;
  told.length = 0;
});

/** The model calls one tool, then says what it got. */
const calling = (name: string, input: object): void => {
  model.script = ({ messages }): ScriptedReply =>
    messages.at(-1)?.role === 'tool'
      ? { text: [String(messages.at(-1)?.content)] }
      : { calls: [{ id: `c${model.requests.length}`, name, input }] };
};
const answerOf = async (
  definition: object,
  message: HarnessMessage = user('Go.'),
  more: object = {},
): Promise<Answer> => {
  const { arn: harnessArn } = await newHarness(platform, clients, definition);
  return invokeHarness(clients, { harnessArn, runtimeSessionId: newSession(), messages: [message], ...more });
};

describe('tools of servers', () => {
  it('of a remote MCP server are called by the platform, with the headers of the harness', async () => {
    calling('echo', { word: 'hi' });
    const tools: HarnessTool[] = [
      { type: 'remote_mcp', name: 'remote', config: { remoteMcp: { url: backend.url, headers: { 'x-key': KEY } } } },
    ];
    const answer = await answerOf({ tools });
    expect(answer).toMatchObject({ text: 'echo {"word":"hi"}', stopReason: 'end_turn' });
    const start = answer.events.find(({ contentBlockStart }) => contentBlockStart?.start?.toolUse);
    expect(start?.contentBlockStart?.start?.toolUse).toMatchObject({
      name: 'echo',
      type: 'mcp_tool_use',
      serverName: 'remote',
    });
    const given = answer.events.find(({ contentBlockStart }) => contentBlockStart?.start?.toolResult);
    expect(given?.contentBlockStart?.start?.toolResult?.status).toBe('success');
    expect(JSON.stringify(model.requests)).not.toContain(KEY);
  });

  it('are there as far as allowedTools says, and an error of one is a result', async () => {
    calling('fail', {});
    const tools: HarnessTool[] = [{ type: 'remote_mcp', name: 'remote', config: { remoteMcp: { url: backend.url } } }];
    const answer = await answerOf({ tools, allowedTools: ['@remote/f*'] });
    expect(model.requests[0]?.tools).toEqual(['fail']);
    expect(answer.text).toBe('fail {}');
  });

  it('that cannot be had end the invocation, and say whose they are', async () => {
    const tools: HarnessTool[] = [
      { type: 'remote_mcp', name: 'gone', config: { remoteMcp: { url: 'http://127.0.0.1:9/mcp' } } },
    ];
    await expect(answerOf({ tools })).rejects.toThrow(/tools of gone cannot be had/);
  });

  it('of a gateway are called with the harness’s role', async () => {
    const roleArn = platform.ready.defaultRoleArn;
    const made = await clients.control.send(
      new CreateGatewayCommand({ name: 'tools', roleArn, protocolType: 'MCP', authorizerType: 'AWS_IAM' }),
    );
    await addMcpServer(clients, made.gatewayId ?? '', 'backend', { endpoint: backend.url });
    calling('backend___echo', { word: 'through' });
    const gatewayArn = made.gatewayArn ?? '';
    const answer = await answerOf({
      tools: [{ type: 'agentcore_gateway', config: { agentCoreGateway: { gatewayArn } } }],
    });
    expect(answer.text).toBe('echo {"word":"through"}');
  });

  it('of a code interpreter keep what was run before in the session', async () => {
    const tools: HarnessTool[] = [{ type: 'agentcore_code_interpreter' }];
    const { arn: harnessArn } = await newHarness(platform, clients, { tools });
    const runtimeSessionId = newSession();
    const run = async (code: string): Promise<string> => {
      calling('execute_code', { language: 'python', code });
      return (await invokeHarness(clients, { harnessArn, runtimeSessionId, messages: [user(code)] })).text;
    };
    await expect.poll(() => run('n = 40; print(n)'), { timeout: 120_000, interval: 2_000 }).toContain('40');
    expect(await run('print(n + 2)')).toContain('42');
  }, 180_000);
});

describe('a browser', () => {
  it('is driven by snapshots, and stays where it is from turn to turn', async () => {
    needChromium();
    const allowed = [{ Effect: 'Allow', Action: ['bedrock-agentcore:*', 'bedrock:*'], Resource: '*' }];
    const executionRoleArn = await newRole(platform, 'browses', allowed);
    const tools: HarnessTool[] = [{ type: 'agentcore_browser' }];
    const { arn: harnessArn } = await newHarness(platform, clients, { tools, executionRoleArn });
    const runtimeSessionId = newSession();
    const act = async (name: string, input: object): Promise<string> => {
      calling(name, input);
      return (await invokeHarness(clients, { harnessArn, runtimeSessionId, messages: [user('Go.')] })).text;
    };
    const page = `data:text/html,<h1>Shop</h1><button onclick="document.body.append('Bought')">Buy</button>`;
    await expect
      .poll(() => act('browser_navigate', { url: page }), { timeout: 120_000, interval: 2_000 })
      .toContain('button "Buy" [ref=e1]');
    expect(await act('browser_click', { ref: 'e1' })).toContain('Bought');
    expect(await act('browser_click', { ref: 'e9' })).toContain('no reference e9');
  }, 180_000);
});

describe('hooks', () => {
  const decide = (name: string, body: string): Promise<string> =>
    newFunction(lambdaClient(platform), platform, name, {
      files: { 'index.mjs': `export const handler = async (event) => { ${body} };` },
    });
  const hookEvents = ({ events }: Answer) => events.flatMap(({ hookEvent }) => hookEvent ?? []);

  it('before a tool call skip what they deny, and the loop goes on', async () => {
    const arn = await decide(
      'guard',
      `return event.toolInput.command === 'true' ? { decision: 'allow' } : { decision: 'deny', reason: 'Not here.' };`,
    );
    calling('shell', { command: 'rm -rf /' });
    const hooks = [{ beforeToolCall: { name: 'guard', target: { lambda: { arn } } } }];
    const answer = await answerOf({ hooks });
    expect(answer).toMatchObject({ stopReason: 'end_turn', text: expect.stringContaining('Not here.') });
    expect(hookEvents(answer)).toMatchObject([
      { name: 'guard', type: 'before_tool_call', decision: 'deny', reason: 'Not here.' },
    ]);
    calling('shell', { command: 'true' });
    const { arn: harnessArn } = await newHarness(platform, clients, { hooks });
    const allowed = await invokeHarness(clients, {
      harnessArn,
      runtimeSessionId: newSession(),
      messages: [user('Go.')],
    });
    expect(hookEvents(allowed)).toMatchObject([{ decision: 'allow' }]);
  }, 120_000);

  it('before an invocation stop it, and one that fails counts as deny unless it says otherwise', async () => {
    const arn = await decide('broken', `throw new Error('no');`);
    model.script = () => ({ text: ['Hello.'] });
    const hook = (failureMode?: 'allow') => ({
      hooks: [
        { beforeInvocation: { name: 'broken', target: { lambda: { arn, ...(failureMode && { failureMode }) } } } },
      ],
    });
    const stopped = await answerOf(hook());
    expect(stopped).toMatchObject({ stopReason: 'hook_stopped', text: '' });
    expect(model.requests).toEqual([]);
    expect(await answerOf(hook('allow'))).toMatchObject({ stopReason: 'end_turn', text: 'Hello.' });
  }, 120_000);

  it('that are topics are told, and decide nothing', async () => {
    calling('shell', { command: 'true' });
    const target = { sns: { arn: TOPIC } };
    const hooks = [
      { beforeInvocation: { name: 'first', target } },
      { beforeToolCall: { name: 'second', target } },
      { afterToolCall: { name: 'third', target } },
      { afterInvocation: { name: 'last', target } },
    ];
    const answer = await answerOf({ hooks });
    expect(hookEvents(answer).map(({ name, type, decision }) => [name, type, decision])).toEqual([
      ['first', 'before_invocation', undefined],
      ['second', 'before_tool_call', undefined],
      ['third', 'after_tool_call', undefined],
      ['last', 'after_invocation', undefined],
    ]);
    await expect.poll(() => told.map(({ name }) => name).sort()).toEqual(['first', 'last', 'second', 'third']);
    expect(told.find(({ name }) => name === 'second')).toMatchObject({
      toolName: 'shell',
      toolInput: { command: 'true' },
    });
    expect(told.find(({ name }) => name === 'last')).toMatchObject({ stopReason: 'end_turn' });
  });
});

describe('memory', () => {
  it('is there without a word, is told of each turn, and is looked up before it, for its actor alone', async () => {
    const harness = await newHarness(platform, clients, { memory: undefined });
    const memoryArn = harness.memory?.managedMemoryConfiguration?.arn ?? '';
    const memoryId = memoryArn.slice(memoryArn.lastIndexOf('/') + 1);
    // The model also makes the records.
    model.script = ({ messages }) =>
      messages.some(({ content }) => content?.includes('JSON'))
        ? { text: [JSON.stringify({ facts: [{ fact: 'The user has a dog called Rex.', messages: [1] }] })] }
        : { text: ['Good to know.'] };
    const say = (actorId: string, text: string): Promise<Answer> => {
      const messages = [user(text)];
      return invokeHarness(clients, { harnessArn: harness.arn, runtimeSessionId: newSession(), messages, actorId });
    };
    await say('ann', 'My dog is called Rex.');
    const records = await untilRecords(clients, memoryId, '/actors/ann/facts', (found) => found.length > 0);
    expect(texts(records)[0]).toContain('Rex');
    model.requests.length = 0;
    await say('ann', 'What is my dog called?');
    const system = () =>
      model.requests.find(({ messages }) => messages.at(-1)?.content?.includes('my dog'))?.messages[0];
    expect(system()?.content).toMatch(/<recalled_memory>[\s\S]*Rex[\s\S]*<\/recalled_memory>/);
    model.requests.length = 0;
    await say('bob', 'What is my dog called?');
    expect(JSON.stringify(system())).not.toContain('Rex');
  }, 150_000);
});
