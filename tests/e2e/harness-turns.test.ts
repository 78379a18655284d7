import { type HarnessMessage, InvokeHarnessCommand } from '@aws-sdk/client-bedrock-agentcore';
import type { Harness } from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateApiKeyCredentialProviderCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { type Answer, answerOf, invokeHarness, newHarness, newSession, user } from '../support/harness.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { ScriptedModel, type ScriptedReply, type ScriptedRequest } from '../support/scripted-model.ts';

let platform: TestPlatform;
let clients: Clients;
let model: ScriptedModel;
let other: ScriptedModel;
let harness: Harness;

const inline = (name: string) => ({
  ...{ type: 'inline_function' as const, name },
  config: { inlineFunction: { description: `Does ${name}`, inputSchema: { type: 'object' } } },
});

beforeAll(async () => {
  model = await ScriptedModel.start();
  other = await ScriptedModel.start();
  platform = await startTestPlatform({
    args: ['--models-url', model.url, '--models-name', 'scripted', '--allow-private-egress', '127.0.0.0/8'],
  });
  clients = clientsOf(platform);
  harness = await newHarness(platform, clients, { tools: [inline('weather'), inline('news')] });
}, 300_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  model?.close();
  other?.close();
});

beforeEach(() => {
  for (const one of [model, other]) one.requests.length = 0;
});

const reply =
  (...replies: ScriptedReply[]) =>
  (): ScriptedReply =>
    replies.shift() ?? { text: ['Done.'] };
const invoke = (runtimeSessionId: string, messages: HarnessMessage[], more: object = {}): Promise<Answer> =>
  invokeHarness(clients, { harnessArn: harness.arn, runtimeSessionId, messages, ...more });
/** The last request of a model, without the system prompt. */
const asked = (of = model): ScriptedRequest['messages'] =>
  (of.requests.at(-1)?.messages ?? []).filter(({ role }) => role !== 'system');
const calls = ({ calls: made }: Answer, ...names: string[]): HarnessMessage => ({
  role: 'assistant',
  content: made
    .filter(({ name }) => names.includes(name))
    .map(({ toolUseId, name, input }) => ({ toolUse: { toolUseId, name, input: input as Record<string, string> } })),
});
const results = (...of: [toolUseId: string, text: string][]): HarnessMessage => ({
  role: 'user',
  content: of.map(([toolUseId, text]) => ({ toolResult: { toolUseId, content: [{ text }], status: 'success' } })),
});

describe('a turn with an inline function', () => {
  const paused = async (session: string, input: object = { city: 'Paris' }): Promise<Answer> => {
    model.script = reply({ calls: [{ id: 'call_1', name: 'weather', input }] });
    return invoke(session, [user('How is the weather?')]);
  };

  it('ends its stream with tool_use, and the call is the client’s', async () => {
    const answer = await paused(newSession());
    expect(answer.stopReason).toBe('tool_use');
    expect(answer.calls).toEqual([
      { toolUseId: 'call_1', name: 'weather', input: { city: 'Paris' }, type: 'tool_use' },
    ]);
  });

  it('goes on with the call and its result, sent together', async () => {
    const session = newSession();
    const answer = await paused(session);
    model.script = reply({ text: ['Sunny it is.'] });
    const done = await invoke(session, [calls(answer, 'weather'), results(['call_1', 'sunny'])]);
    expect(done).toMatchObject({ text: 'Sunny it is.', stopReason: 'end_turn' });
    expect(asked()).toMatchObject([
      { role: 'user', content: 'How is the weather?' },
      { role: 'assistant', tool_calls: [{ id: 'call_1' }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
    ]);
  });

  it('leaves the session as it was when the client never returns, and a new message goes on', async () => {
    const session = newSession();
    model.script = reply({ text: ['Hello.'] });
    await invoke(session, [user('Hi.')]);
    await paused(session);
    model.script = reply({ text: ['Fine.'] });
    await invoke(session, [user('Never mind.')]);
    expect(asked().map(({ content }) => content)).toEqual(['Hi.', 'Hello.', 'Never mind.']);
    await invoke(session, [user('And now?')]);
    expect(asked().map(({ content }) => content)).toEqual(['Hi.', 'Hello.', 'Never mind.', 'Fine.', 'And now?']);
  });

  it.each<[what: string, messages: (answer: Answer) => HarnessMessage[]]>([
    ['the result alone', () => [results(['call_1', 'x'])]],
    ['the call alone', (answer) => [calls(answer, 'weather')]],
    ['a wrong id', (answer) => [calls(answer, 'weather'), results(['call_2', 'x'])]],
    ['an id twice', (answer) => [calls(answer, 'weather'), results(['call_1', 'x'], ['call_1', 'y'])]],
  ])('is refused %s, and still waits', async (_what, messages) => {
    const session = newSession();
    const answer = await paused(session);
    await expect(invoke(session, messages(answer))).rejects.toThrow(/messages/);
    const done = await invoke(session, [calls(answer, 'weather'), results(['call_1', 'sunny'])]);
    expect(done.stopReason).toBe('end_turn');
  });

  it('may call several at once, beside tools of the sandbox', async () => {
    const session = newSession();
    model.script = reply({
      calls: [
        { id: 'a', name: 'weather', input: {} },
        { id: 'b', name: 'shell', input: { command: 'echo from the sandbox' } },
        { id: 'c', name: 'news', input: {} },
      ],
    });
    const answer = await invoke(session, [user('All of it.')]);
    expect(answer.stopReason).toBe('tool_use');
    expect(answer.calls.map(({ name, type }) => [name, type])).toEqual([
      ['weather', 'tool_use'],
      ['shell', 'server_tool_use'],
      ['news', 'tool_use'],
    ]);
    const both = [calls(answer, 'weather', 'news'), results(['c', 'quiet'], ['a', 'sunny'])];
    expect((await invoke(session, both)).stopReason).toBe('end_turn');
    const tools = asked().filter(({ role }) => role === 'tool');
    expect(tools.map(({ tool_call_id: id }) => id)).toEqual(['a', 'b', 'c']);
    expect(tools[1]?.content).toContain('from the sandbox');
  });
});

describe('limits', () => {
  const again = (): ScriptedReply => ({
    calls: [{ id: `c${Math.random()}`, name: 'shell', input: { command: 'true' } }],
  });
  const ends = async (more: object, session = newSession()): Promise<string | undefined> =>
    (await invoke(session, [user('Go on.')], more)).stopReason;

  it.each([
    [{ maxIterations: 2 }, 'max_iterations_exceeded'],
    [{ maxTokens: 6 }, 'max_output_tokens_exceeded'],
  ])('%o ends a turn with %s, and leaves the session as it was', async (more, stopReason) => {
    const session = newSession();
    model.script = again;
    expect(await ends(more, session)).toBe(stopReason);
    model.script = reply({ text: ['Here.'] });
    expect(await ends({}, session)).toBe('end_turn');
    expect(asked()).toHaveLength(1);
  });

  it('timeoutSeconds ends a turn whose model does not answer', async () => {
    model.script = () => ({ never: true });
    expect(await ends({ timeoutSeconds: 1 })).toBe('timeout_exceeded');
  });
});

describe('a model that fails', () => {
  it.each<[what: string, replies: ScriptedReply[], outcome: string]>([
    ['is busy once', [{ status: 429 }, { text: ['Late.'] }], 'end_turn'],
    [
      'calls a tool with no JSON',
      [{ calls: [{ id: 'x', name: 'weather', input: {} }], brokenInput: '{"city": ' }],
      'malformed_tool_use',
    ],
    ['says too much', [{ text: ['Long'], finish: 'length' }], 'max_tokens'],
    ['refuses', [{ text: ['I'], finish: 'content_filter' }], 'content_filtered'],
    ['says nothing', [{ text: [] }], 'malformed_model_output'],
  ])('%s', async (_what, replies, stopReason) => {
    const session = newSession();
    model.script = reply(...replies);
    expect((await invoke(session, [user('Do it.')])).stopReason).toBe(stopReason);
    model.script = reply({ text: ['Back.'] });
    expect((await invoke(session, [user('And now?')])).text).toBe('Back.');
  });

  it.each<[what: string, replies: ScriptedReply[]]>([
    ['breaks off in the middle', [{ text: ['Hel', 'lo'], cut: true }]],
    ['answers with an error', [{ status: 500 }]],
    ['refuses the request', [{ status: 400, error: 'no such parameter' }]],
  ])('%s: the stream ends in an error, and the session is as it was', async (_what, replies) => {
    const session = newSession();
    model.script = reply({ text: ['Hello.'] });
    await invoke(session, [user('Hi.')]);
    model.script = reply(...replies);
    await expect(invoke(session, [user('Lost.')])).rejects.toThrow(/gave no answer/);
    model.script = reply({ text: ['Back.'] });
    await invoke(session, [user('Again.')]);
    expect(asked().map(({ content }) => content)).toEqual(['Hi.', 'Hello.', 'Again.']);
  });

  it('and one that is too long for it is truncated and asked again once', async () => {
    const session = newSession();
    model.script = reply({ text: ['One.'] }, { text: ['Two.'] });
    await invoke(session, [user('First.')]);
    await invoke(session, [user('Second.')]);
    model.script = reply({ status: 400, error: 'maximum context length is 10 tokens' }, { text: ['Three.'] });
    const answer = await invoke(session, [user('Third.')]);
    expect(answer.stopReason).toBe('end_turn');
    expect(asked().length).toBeLessThan(5);
  });
});

it('a session has one invocation at a time', async () => {
  const session = newSession();
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  model.script = () => ({ text: ['Slow', 'ly.'], pause: () => held });
  const input = { harnessArn: harness.arn, runtimeSessionId: session, messages: [user('Go.')] };
  const { stream } = await clients.data.send(new InvokeHarnessCommand(input));
  const events = [];
  for await (const event of stream ?? []) {
    events.push(event);
    if (events.length > 2) continue;
    // It streams: the first words are there while the model still speaks.
    if (event.contentBlockDelta) {
      await expect(invoke(session, [user('Me too.')])).rejects.toThrow(/under way/);
      release();
    }
  }
  expect(answerOf(events).text).toBe('Slowly.');
});

describe('a model of another provider', () => {
  it('takes over in the middle of a conversation, with a key that no sandbox has', async () => {
    const { credentialProviderArn: apiKeyArn = '' } = await clients.control.send(
      new CreateApiKeyCredentialProviderCommand({ name: 'other-model', apiKey: 'sk-very-secret' }),
    );
    const session = newSession();
    model.script = reply({ text: ['Hello.'] });
    await invoke(session, [user('Hi.')]);
    other.script = reply({ calls: [{ id: 'e', name: 'shell', input: { command: 'env; cat /proc/1/environ' } }] });
    const openAiModelConfig = { modelId: 'gpt-x', apiKeyArn, apiBase: other.url };
    const answer = await invoke(session, [user('Who has the key?')], { model: { openAiModelConfig } });
    expect(answer.stopReason).toBe('end_turn');
    expect(other.requests.map(({ authorization }) => authorization)).toEqual(Array(2).fill('Bearer sk-very-secret'));
    expect(asked(other).map(({ content }) => content?.slice(0, 20))).toContain('Hello.');
    const seen = asked(other).find(({ role }) => role === 'tool')?.content ?? '';
    expect(seen).toContain('AWS_REGION');
    expect(seen).not.toContain('sk-very-secret');
    await invoke(session, [user('Back again.')], {
      model: { liteLlmModelConfig: { modelId: 'ollama/m', apiBase: model.url } },
    });
    expect(asked().length).toBeGreaterThan(4);
  });
});

it('what an invocation says goes before what the harness says, for this invocation', async () => {
  model.script = reply({ text: ['A.'] }, { text: ['B.'] });
  const session = newSession();
  await invoke(session, [user('One.')], { systemPrompt: [{ text: 'Be odd.' }], allowedTools: ['shell'] });
  expect(model.requests[0]).toMatchObject({ tools: ['shell'], messages: [{ role: 'system', content: 'Be odd.' }, {}] });
  await invoke(session, [user('Two.')]);
  expect(model.requests[1]?.tools.sort()).toEqual(['file_operations', 'news', 'shell', 'weather']);
});
