import { join, resolve } from 'node:path';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type ScriptedModel,
  startScriptedModel,
} from '../../packages/platform/src/kernel/models/testing/scripted-model.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { modelGateway } from '../support/model-gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { pythonWith } from '../support/python.ts';

const root = resolve(import.meta.dirname, '../..');
const packages = await pythonPackages(root, join(root, 'tests/python-frameworks.txt'));
const CALL = { id: 'call_1', name: 'weather', input: { town: 'Berlin' } };
/** A call of a tool, and what is said once its result is there. */
const TURNS = [
  { calls: [CALL], stop: 'tool-use' as const },
  { text: 'Berlin has a blue sky.', stop: 'end' as const },
];
let platform: TestPlatform;
let clients: Clients;
let model: ScriptedModel;
let url: string;

beforeAll(async () => {
  model = await startScriptedModel('openai');
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  ({ url } = await modelGateway(platform, clients, { one: { url: model.url, models: ['small'] } }));
}, 120_000);
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await model?.close();
});
beforeEach(() => {
  model.asked.length = 0;
});

/** What came of the second request: the call and its result. */
const secondAsked = () => model.asked[1]?.body.messages;
const ANSWERED = expect.arrayContaining([
  expect.objectContaining({ role: 'tool', content: expect.stringContaining('blue sky') }),
]);

describe.skipIf(!packages)('in Python, unmodified, through a gateway', () => {
  const run = (client: string, at = url) =>
    pythonWith(packages ?? '').run(
      join(import.meta.dirname, 'gateway_clients.py'),
      { url: at, model: 'small', client },
      platform.env,
    );

  it('boto3’s client of Bedrock signs as it always does, converses with tools and invokes, whole and streamed', async () => {
    const targets = { one: { url: model.url, models: ['small'] } };
    const signed = await modelGateway(platform, clients, targets, { authorizerType: 'AWS_IAM' });
    model.script = [{ text: 'Hello there', calls: [CALL], stop: 'tool-use' }];
    expect(await run('boto3', signed.url)).toEqual({
      whole: [{ text: 'Hello there' }, { toolUse: { toolUseId: 'call_1', name: 'weather', input: CALL.input } }],
      usage: 18,
      streamed: 'Hello there',
      invoked: { type: 'text', text: 'Hello there' },
      chunks: expect.arrayContaining(['message_start', 'content_block_delta', 'message_stop']),
      refused: expect.stringContaining('has the model none'),
    });
    const models = `${platform.ready.endpoint}/gateways/${signed.id}/inference/v1/models`;
    expect((await fetch(models)).status).toBe(403);
  });

  it('an agent of LangChain calls its tool', async () => {
    model.script = [...TURNS, { text: 'Hello there', stop: 'end' }];
    expect(await run('langchain')).toEqual({
      ...{ kinds: ['human', 'ai', 'tool', 'ai'], last: 'Berlin has a blue sky.', streamed: 'Hello there' },
    });
    expect(secondAsked()).toEqual(ANSWERED);
  });

  it('an agent of Strands calls its tool', async () => {
    model.script = [...TURNS];
    expect(await run('strands')).toEqual({ last: 'Berlin has a blue sky.', turns: 4 });
    expect(secondAsked()).toEqual(ANSWERED);
  });
});

describe('the AI SDK, through a gateway', () => {
  const provider = () => createOpenAICompatible({ name: 'gateway', baseURL: `${url}/v1`, apiKey: 'none' })('small');
  const tools = {
    weather: tool({
      inputSchema: jsonSchema<{ town: string }>({ type: 'object', properties: { town: { type: 'string' } } }),
      execute: async ({ town }) => `${town}: blue sky`,
    }),
  };
  const asking = () => ({ model: provider(), tools, prompt: 'Weather?', stopWhen: stepCountIs(3), maxRetries: 0 });

  it('calls its tool, whole and streamed', async () => {
    model.script = [...TURNS];
    expect((await generateText(asking())).text).toBe('Berlin has a blue sky.');
    expect(secondAsked()).toEqual(ANSWERED);
    model.asked.length = 0;
    model.script = [...TURNS];
    const texts: string[] = [];
    for await (const piece of streamText(asking()).textStream) texts.push(piece);
    expect(texts.join('')).toBe('Berlin has a blue sky.');
    expect(texts.length).toBeGreaterThan(1);
    expect(secondAsked()).toEqual(ANSWERED);
  });
});
