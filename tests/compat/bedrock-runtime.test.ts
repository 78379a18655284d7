import { join, resolve } from 'node:path';
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  InvokeModelCommand,
} from '@aws-sdk/client-bedrock-runtime';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type ScriptedModel,
  startScriptedModel,
} from '../../packages/platform/src/kernel/models/testing/scripted-model.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployPythonAgent } from '../support/deploy.ts';
import { newUser } from '../support/iam.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { testPython } from '../support/python.ts';

const python = await testPython();
const agent = resolve(import.meta.dirname, '../support/strands-agent');
const strands =
  python && (await pythonPackages(resolve(import.meta.dirname, '../..'), join(agent, 'requirements.txt')));
const MODEL = 'us.anthropic.claude-sonnet-4-20250514-v1:0';
const CALL = { id: 'call_1', name: 'weather', input: { town: 'Berlin' } };
const user = { role: 'user' as const, content: [{ text: 'Hi' }] };
let model: ScriptedModel;
let platform: TestPlatform;
let clients: Clients;
let bedrock: BedrockRuntimeClient;

function clientOf({ ready, credentials }: TestPlatform): BedrockRuntimeClient {
  return new BedrockRuntimeClient({
    endpoint: ready.endpoint,
    region: ready.region,
    credentials,
    maxAttempts: 1,
  });
}

beforeAll(async () => {
  model = await startScriptedModel('openai');
  platform = await startTestPlatform({
    args: ['--models-url', model.url, '--models-name', 'llama3.2'],
    env: { AGENTPLATFORM_MODELS_KEY: 'sk-models' },
  });
  clients = clientsOf(platform);
  bedrock = clientOf(platform);
});
afterAll(async () => {
  bedrock?.destroy();
  clients?.close();
  await platform?.dispose();
  await model?.close();
});
beforeEach(() => {
  model.asked.length = 0;
  model.misbehave = undefined;
  model.cutAfter = undefined;
});

describe.skipIf(!python)('boto3, unmodified, pointed here by its environment', () => {
  it('converses with tools, whole and streamed, and invokes with bodies of Anthropic and OpenAI', async () => {
    const thought = { text: 'Hm.', signature: '' };
    model.script = [
      { text: 'Let me look.', calls: [CALL], stop: 'tool-use' },
      { text: 'It is sunny.' },
      { text: 'Let me look.', calls: [CALL], stop: 'tool-use' },
      { text: 'By its ARN.' },
      { thought, text: 'Hello', calls: [CALL], stop: 'tool-use' },
    ];
    const arn = `arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0`;
    const said = (await python?.run(join(import.meta.dirname, 'bedrock_boto3.py'), { arn }, platform.env)) as Record<
      string,
      unknown
    >;
    const toolUse = { toolUseId: 'call_1', name: 'weather', input: { town: 'Berlin' } };
    const usage = { inputTokens: 8, outputTokens: 7, totalTokens: 18, cacheReadInputTokens: 3 };
    expect(said.first).toEqual({
      output: { message: { role: 'assistant', content: [{ text: 'Let me look.' }, { toolUse }] } },
      stopReason: 'tool_use',
      usage,
    });
    expect(said.second).toEqual([{ text: 'It is sunny.' }]);
    const half = (contentBlockIndex: number, delta: object) => ({ contentBlockDelta: { contentBlockIndex, delta } });
    const { input: _, ...start } = toolUse;
    expect(said.events).toEqual([
      { messageStart: { role: 'assistant' } },
      half(0, { text: 'Let me' }),
      half(0, { text: ' look.' }),
      { contentBlockStop: { contentBlockIndex: 0 } },
      { contentBlockStart: { contentBlockIndex: 1, start: { toolUse: start } } },
      half(1, { toolUse: { input: '{"town":"' } }),
      half(1, { toolUse: { input: 'Berlin"}' } }),
      { contentBlockStop: { contentBlockIndex: 1 } },
      { messageStop: { stopReason: 'tool_use' } },
      { metadata: { usage, metrics: { latencyMs: expect.any(Number) } } },
    ]);
    expect(said.arn).toEqual([{ text: 'By its ARN.' }]);

    expect(said.claude).toMatchObject({
      type: 'message',
      content: [
        { type: 'thinking', thinking: 'Hm.' },
        { type: 'text', text: 'Hello' },
        { type: 'tool_use', ...CALL },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 8, output_tokens: 7, cache_read_input_tokens: 3 },
    });
    const claudeStream = said.claudeStream as { type: string; delta?: Record<string, string> }[];
    expect(claudeStream.map(({ type }) => type)).toEqual([
      'message_start',
      ...['content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_stop'],
      ...['content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_stop'],
      ...['content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_stop'],
      ...['message_delta', 'message_stop'],
    ]);
    expect(claudeStream.map(({ delta }) => delta?.partial_json ?? '').join('')).toBe('{"town":"Berlin"}');
    const called = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"town":"Berlin"}' } };
    expect(said.openai).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { content: 'Hello', tool_calls: [called] }, finish_reason: 'tool_calls' }],
      usage: { prompt_tokens: 11, completion_tokens: 7 },
    });
    const openaiStream = said.openaiStream as { choices: { delta: { content?: string }; finish_reason: string }[] }[];
    expect(openaiStream.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Hello');
    expect(openaiStream.at(-1)?.choices[0]?.finish_reason).toBe('tool_calls');

    // What reached the model: its own id and key, the tool, its result and the picture.
    expect(model.asked.every(({ body }) => body.model === 'llama3.2')).toBe(true);
    expect(model.asked[0]?.headers.authorization).toBe('Bearer sk-models');
    expect(model.asked[0]?.body).toMatchObject({
      messages: [{ role: 'system', content: 'Be kind.' }, { role: 'user' }],
      tools: [{ function: { name: 'weather', description: 'The weather of a town' } }],
      tool_choice: 'required',
    });
    expect(model.asked[1]?.body.messages.slice(1)).toMatchObject([
      { role: 'assistant', content: 'Let me look.', tool_calls: [called] },
      { role: 'tool', tool_call_id: 'call_1', content: '{"sky":"blue"}' },
      { role: 'user', content: [{ type: 'image_url' }] },
    ]);
    expect(model.asked[1]?.body.max_tokens).toBe(50);

    expect(said.nova).toMatchObject({ class: 'ValidationException', message: expect.stringContaining('Converse') });
    expect(said.guardrail).toMatchObject({
      class: 'ValidationException',
      message: expect.stringContaining('guardrail'),
    });
    for (const [key, product] of [
      ['dynamodb', 'Amazon DynamoDB'],
      ['ecr', 'Amazon ECR'],
      ['secrets', 'AWS Secrets Manager'],
      ['ec2', 'Amazon EC2'],
      ['sns', 'Amazon SNS'],
    ] as const)
      expect(said[key]).toMatchObject({
        code: 'UnknownOperationException',
        message: expect.stringContaining(`${product} (`),
      });
    for (const [key, path] of [
      ['models', 'GET /foundation-models'],
      ['knowledge', 'POST /knowledgebases/ABCDEFGHIJ/retrieve'],
    ] as const)
      expect(said[key]).toMatchObject({
        code: 'UnknownOperationException',
        message: expect.stringMatching(RegExp(`^Of Amazon Bedrock this platform serves Converse.* and not ${path}`)),
      });
  }, 120_000);
});

describe('the AWS SDK for JavaScript', () => {
  it('is told what became of the model, by the errors of Bedrock', async () => {
    const refused = { status: 400, body: '{"error":{"message":"tools[0] is odd"}}' };
    const cases = [
      [{ status: 429, body: '{}' }, 'ThrottlingException', 429, 'too many requests'],
      [refused, 'ValidationException', 400, 'tools[0] is odd'],
      [
        { status: 400, body: '{"error":{"message":"context_length"}}' },
        'ValidationException',
        400,
        'Input is too long',
      ],
      [{ status: 401, body: 'sk-models is wrong' }, 'ModelErrorException', 424, 'answered 401'],
      [{ status: 500, body: '{}' }, 'ServiceUnavailableException', 503, 'answered 500'],
    ] as const;
    for (const [misbehave, name, status, message] of cases) {
      model.misbehave = misbehave;
      for (const command of [ConverseCommand, ConverseStreamCommand]) {
        const error = await bedrock
          .send(new command({ modelId: MODEL, messages: [user] }) as ConverseCommand)
          .catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ name, $metadata: { httpStatusCode: status } });
        expect(String(error)).toContain(message);
        expect(String(error)).not.toContain('sk-models');
      }
    }
    expect(platform.log()).not.toContain('sk-models');
  });

  it('hears in the midst of a stream that the model broke off', async () => {
    model.script = [{ text: 'Hello there' }];
    model.cutAfter = 2;
    const { stream } = await bedrock.send(new ConverseStreamCommand({ modelId: MODEL, messages: [user] }));
    const texts: (string | undefined)[] = [];
    const reading = (async () => {
      for await (const event of stream ?? []) texts.push(event.contentBlockDelta?.delta?.text);
    })();
    await expect(reading).rejects.toMatchObject({ name: 'ModelStreamErrorException' });
    expect(texts.join('')).toBe('Hello ');
  });

  it('ends the call of the model when its client leaves', async () => {
    model.misbehave = (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('\n');
    const leaving = new AbortController();
    const command = new ConverseStreamCommand({ modelId: MODEL, messages: [user] });
    const call = bedrock.send(command, { abortSignal: leaving.signal }).catch((error: unknown) => error);
    await expect.poll(() => model.open()).toBe(1);
    leaving.abort();
    expect(await call).toMatchObject({ name: 'AbortError' });
    await expect.poll(() => model.open()).toBe(0);
  });

  it('reaches a model under the name of its maker, and is refused a body that is none', async () => {
    model.script = [{ text: 'Hello' }];
    const command = new ConverseCommand({ modelId: 'meta-llama/Llama-3.1-8B', messages: [user] });
    expect((await bedrock.send(command)).stopReason).toBe('end_turn');
    for (const body of ['', '[]', '{', '{"prompt":"x"}'])
      await expect(bedrock.send(new InvokeModelCommand({ modelId: MODEL, body })), body).rejects.toMatchObject({
        name: 'ValidationException',
      });
  });
});

describe('policies', () => {
  it('are asked for InvokeModel and InvokeModelWithResponseStream on the ARN of the model, as the original asks', async () => {
    model.script = [{ text: 'Hello' }];
    const { region, endpoint } = platform.ready;
    const Resource = `arn:aws:bedrock:${region}::foundation-model/us.anthropic.*`;
    const credentials = await newUser(platform, 'asker', [
      { Effect: 'Allow', Action: 'bedrock:InvokeModel', Resource },
    ]);
    const client = new BedrockRuntimeClient({ region, endpoint, credentials });
    expect((await client.send(new ConverseCommand({ modelId: MODEL, messages: [user] }))).stopReason).toBe('end_turn');
    const refused = [
      new ConverseStreamCommand({ modelId: MODEL, messages: [user] }),
      new ConverseCommand({ modelId: 'amazon.nova-lite-v1:0', messages: [user] }),
    ];
    for (const command of refused)
      await expect(client.send(command as ConverseCommand)).rejects.toMatchObject({ name: 'AccessDeniedException' });
    expect(model.asked).toHaveLength(1);
    client.destroy();
  });
});

describe('a platform without a model', () => {
  it('says so, and names the setting', async () => {
    const bare = await startTestPlatform({ args: ['--sandbox', 'process'] });
    const client = clientOf(bare);
    const error = client.send(new ConverseCommand({ modelId: MODEL, messages: [user] }));
    await expect(error).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
      message: expect.stringMatching(/No model is set up .*Set models\.url /),
    });
    client.destroy();
    await bare.dispose();
  });
});

describe.skipIf(!strands)('Strands’ Agent(), with no line changed, in a sandbox', () => {
  it('answers from the model of the platform, with its tool', async () => {
    const { arn } = await deployPythonAgent(platform, clients, { agent, packages: strands ?? '' });
    model.script = [
      { calls: [{ id: 'call_1', name: 'population', input: { city: 'Berlin' } }], stop: 'tool-use' },
      { text: 'Berlin has 3.7 million people.' },
    ];
    const answer = await invokeText(clients, arn, sessionId('strands'), {
      prompt: 'How many people live in Berlin?',
    });
    expect(JSON.parse(answer)).toEqual({ text: 'Berlin has 3.7 million people.\n', turns: 4 });
    expect(model.asked.at(-1)?.body.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', tool_calls: [{ function: { name: 'population' } }] },
      { role: 'tool', content: expect.stringContaining('3700000') },
    ]);
    expect(model.asked.at(-1)?.body.stream).toBe(true);
  }, 180_000);
});
