import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { json, text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import Anthropic from '@anthropic-ai/sdk';
import {
  CreateApiKeyCredentialProviderCommand,
  CreateGatewayCommand,
  CreateGatewayTargetCommand,
  type CreateGatewayTargetCommandInput,
  type TargetConfiguration,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { BedrockRuntimeClient, ConverseCommand } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type ScriptedModel,
  startScriptedModel,
} from '../../packages/platform/src/kernel/models/testing/scripted-model.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { settledTarget, signingFetch } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const KEY = 'kiwi-canary-models-51';
const CALL = { id: 'call_1', name: 'weather', input: { town: 'Berlin' } };
let platform: TestPlatform;
let clients: Clients;
let openai: ScriptedModel;
let anthropic: ScriptedModel;
let providerArn: string;
let id: string;
let url: string;
let chat: OpenAI;

async function target(name: string, inference: object, more: Partial<CreateGatewayTargetCommandInput> = {}) {
  // The SDK lacks what is newer than it; the platform's own validators look at all of it.
  const targetConfiguration = { inference } as unknown as TargetConfiguration;
  const input = { gatewayIdentifier: id, name, targetConfiguration, ...more };
  const { targetId = '' } = await clients.control.send(new CreateGatewayTargetCommand(input));
  return settledTarget(clients, id, targetId);
}

const withKey = (more: object = {}): Partial<CreateGatewayTargetCommandInput> => ({
  credentialProviderConfigurations: [
    {
      credentialProviderType: 'API_KEY',
      credentialProvider: { apiKeyCredentialProvider: { providerArn, ...more } },
    },
  ],
});

beforeAll(async () => {
  [openai, anthropic] = await Promise.all([startScriptedModel('openai'), startScriptedModel('anthropic')]);
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  const created = await clients.control.send(
    new CreateApiKeyCredentialProviderCommand({ name: 'models', apiKey: KEY }),
  );
  providerArn = created.credentialProviderArn ?? '';
  const roleArn = platform.ready.defaultRoleArn;
  const made = await clients.control.send(
    new CreateGatewayCommand({ name: 'models', roleArn, authorizerType: 'NONE' }),
  );
  id = made.gatewayId ?? '';
  url = `${platform.ready.endpoint}/gateways/${id}/inference`;
  chat = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
  const mapping = { modelMapping: { providerPrefix: { strip: true } } };
  const one = await target(
    'one',
    {
      provider: {
        endpoint: openai.url.replace('/v1', ''),
        operations: [{ path: '/v1/chat/completions', models: [{ model: 'small' }, { model: 'gpt-*' }] }],
      },
    },
    withKey(),
  );
  expect(one).toMatchObject({ status: 'READY' });
  await target(
    'two',
    {
      provider: {
        ...{ endpoint: anthropic.url.replace('/v1', ''), ...mapping },
        operations: [
          {
            ...{ path: '/v1/messages', providerPath: '/other/v1/messages' },
            models: [{ model: 'anthropic.claude-opus' }, { model: 'gpt-*' }],
          },
        ],
      },
    },
    withKey(),
  );
}, 120_000);
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await Promise.all([openai?.close(), anthropic?.close()]);
});
beforeEach(() => {
  for (const model of [openai, anthropic]) {
    model.asked.length = 0;
    model.misbehave = undefined;
    model.script = [{ text: 'Hello there', calls: [CALL], stop: 'tool-use' }];
  }
});

const MESSAGES = [{ role: 'user' as const, content: 'Hi' }];

describe('a gateway before two providers', () => {
  it('lists the models that targets name, to clients of OpenAI and of Anthropic', async () => {
    const ids: string[] = [];
    for await (const model of chat.models.list()) ids.push(model.id);
    expect(ids).toEqual(['small', 'claude-opus']);
    const client = new Anthropic({ baseURL: url, apiKey: 'none' });
    expect((await client.models.list()).data.map((model) => model.display_name)).toEqual(ids);
    expect(await chat.models.retrieve('small')).toMatchObject({ owned_by: 'one' });
    await expect(chat.models.retrieve('none')).rejects.toMatchObject({ status: 404 });
  });

  it('answers a client of OpenAI from a provider of Anthropic, with its model id, path and key', async () => {
    const said = await chat.chat.completions.create({ model: 'claude-opus', messages: MESSAGES });
    expect(said.choices[0]?.message).toMatchObject({
      content: 'Hello there',
      tool_calls: [{ function: { name: 'weather', arguments: '{"town":"Berlin"}' } }],
    });
    expect(said.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7 });
    const [{ path, headers, body } = { path: '', headers: {}, body: {} }] = anthropic.asked;
    expect(path).toBe('/other/v1/messages');
    expect(headers['x-api-key']).toBe(KEY);
    expect(headers).not.toHaveProperty('authorization');
    expect(body.model).toBe('anthropic.claude-opus');
    expect(openai.asked).toEqual([]);
  });

  it('answers a client of Anthropic from a provider of OpenAI, as it comes', async () => {
    const client = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
    const stream = client.messages.stream({ model: 'one/small', max_tokens: 9, messages: MESSAGES });
    const texts: string[] = [];
    stream.on('text', (text) => texts.push(text));
    const { content, usage } = await stream.finalMessage();
    expect(texts).toEqual(['Hello ', 'there']);
    expect(content[1]).toMatchObject({ type: 'tool_use', input: CALL.input });
    expect(usage.output_tokens).toBe(7);
    expect(openai.asked[0]).toMatchObject({ headers: { authorization: `Bearer ${KEY}` }, body: { model: 'small' } });
  });

  it('shows the key where the target says, and nowhere else, whatever the client brings', async () => {
    const provider = {
      endpoint: openai.url,
      operations: [{ path: '/v1/chat/completions', models: [{ model: 'own' }] }],
    };
    await target('three', { provider }, withKey({ credentialParameterName: 'X-Mine', credentialPrefix: 'Token' }));
    await chat.chat.completions.create({ model: 'own', messages: MESSAGES });
    const headers: Record<string, unknown> = openai.asked[0]?.headers ?? {};
    expect(headers['x-mine']).toBe(`Token ${KEY}`);
    expect(Object.values(headers).filter((value) => String(value).includes(KEY))).toHaveLength(1);
    expect(headers).not.toHaveProperty('authorization');
  });

  it('answers a client of Bedrock', async () => {
    const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
    const settings = { endpoint: url, region: 'us-east-1', credentials, requestHandler: new NodeHttpHandler() };
    const client = new BedrockRuntimeClient({
      ...settings,
      token: { token: 'none' },
      authSchemePreference: ['httpBearerAuth'],
    });
    const message = { role: 'user' as const, content: [{ text: 'Hi' }] };
    const said = await client.send(new ConverseCommand({ modelId: 'small', messages: [message] }));
    expect(said).toMatchObject({ stopReason: 'tool_use', usage: { inputTokens: 8, outputTokens: 7 } });
    expect(openai.asked).toMatchObject([{ body: { model: 'small' } }]);
    client.destroy();
  });

  it('takes turns where several have a model, and asks the named one where one is named', async () => {
    for (let i = 0; i < 4; i++) await chat.chat.completions.create({ model: 'gpt-x', messages: MESSAGES });
    expect([openai.asked.length, anthropic.asked.length]).toEqual([2, 2]);
    for (let i = 0; i < 2; i++) await chat.chat.completions.create({ model: 'two/gpt-x', messages: MESSAGES });
    expect([openai.asked.length, anthropic.asked.length]).toEqual([2, 4]);
  });

  it('says in the client’s own words what is wrong, and never the key', async () => {
    const client = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
    const none = client.messages.create({ model: 'none', max_tokens: 9, messages: MESSAGES });
    await expect(none).rejects.toMatchObject({ status: 404, error: { error: { type: 'not_found_error' } } });
    await expect(chat.chat.completions.create({ model: 'none', messages: MESSAGES })).rejects.toMatchObject({
      ...{ status: 404, type: 'not_found_error' },
    });
    openai.misbehave = { status: 400, body: `{"error":{"message":"odd ${KEY}"}}` };
    const refused = await chat.chat.completions
      .create({ model: 'small', messages: MESSAGES })
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ status: 400, message: expect.stringContaining('odd [redacted]') });
    expect(platform.log()).not.toContain(KEY);
  });

  it('ends the call of the provider when its client leaves', async () => {
    openai.misbehave = (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('\n');
    const leaving = new AbortController();
    const call = chat.chat.completions
      .create({ model: 'small', messages: MESSAGES, stream: true }, { signal: leaving.signal })
      .catch(() => 'gone');
    await expect.poll(() => openai.open()).toBe(1);
    leaving.abort();
    expect(await call).toBe('gone');
    await expect.poll(() => openai.open()).toBe(0);
  });

  it('takes prompts of 25 MB at most', async () => {
    const body = { model: 'small', messages: [{ role: 'user', content: 'x'.repeat(25_000_001) }] };
    const headers = { 'content-type': 'application/json' };
    const reply = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) });
    expect(reply.status).toBe(413);
    expect(openai.asked).toEqual([]);
  });

  it.each(['said', 'not said'])(
    'refuses a prompt of 100 MB, whose length is %s, and reads no more of it than it may have',
    async (length) => {
      const part = Buffer.alloc(2 ** 20, 'x');
      const most = 100;
      let sent = 0;
      const [before, after] = ['{"model":"small","messages":[{"role":"user","content":"', '"}]}'];
      function* prompt() {
        yield Buffer.from(before);
        for (; sent < most; sent += 1) yield part;
        yield Buffer.from(after);
      }
      const headers = {
        'content-type': 'application/json',
        ...(length === 'said' && { 'content-length': before.length + most * part.length + after.length }),
      };
      const call = request(`${url}/v1/chat/completions`, { method: 'POST', headers });
      // It may stop to listen once it has answered.
      call.on('error', () => undefined);
      const answer = once(call, 'response') as Promise<[IncomingMessage]>;
      pipeline(prompt, call).catch(() => undefined);
      const [response] = await answer;
      expect(response.statusCode).toBe(413);
      expect(await json(response)).toMatchObject({
        error: { message: expect.stringContaining('at most 25000000 bytes') },
      });
      // What the network holds is sent, but not read.
      expect(sent).toBeLessThan(70);
      expect(openai.asked).toEqual([]);
      call.destroy();
      const said = await chat.chat.completions.create({ model: 'small', messages: MESSAGES });
      expect(said.choices[0]?.message.content).toBe('Hello there');
    },
  );

  it('gives a client that reads slowly all of a long answer, and others theirs meanwhile', async () => {
    const words = Array.from({ length: 15_000 }, (_, i) => `word${i} ${'x'.repeat(200)} `);
    openai.misbehave = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = (delta: object, finish_reason: string | null = null) =>
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
      Readable.from([...words.map((content) => chunk({ content })), chunk({}, 'stop'), 'data: [DONE]\n\n']).pipe(
        response,
      );
    };
    const body = JSON.stringify({ model: 'small', messages: MESSAGES, stream: true });
    const headers = { 'content-type': 'application/json' };
    const call = request(`${url}/v1/chat/completions`, { method: 'POST', headers }).end(body);
    const [slow] = (await once(call, 'response')) as [IncomingMessage];
    // It is read no further for now.
    slow.pause();
    openai.misbehave = undefined;
    for (let i = 0; i < 5; i++) {
      const said = await chat.chat.completions.create({ model: 'small', messages: MESSAGES });
      expect(said.choices[0]?.message.content).toBe('Hello there');
    }
    const events = (await text(slow)).split('\n\n').filter((event) => event.startsWith('data: {'));
    const texts = events.map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? '');
    expect(texts.join('')).toBe(words.join(''));
  });

  it('is not asked without a right to it', async () => {
    const roleArn = platform.ready.defaultRoleArn;
    const { gatewayId } = await clients.control.send(
      new CreateGatewayCommand({ name: 'closed', roleArn, authorizerType: 'AWS_IAM' }),
    );
    const models = `${platform.ready.endpoint}/gateways/${gatewayId}/inference/v1/models`;
    expect((await fetch(models)).status).toBe(403);
    expect((await signingFetch(platform)(models)).status).toBe(200);
  });
});

describe('a target of models', () => {
  it.each([
    ['an unknown path', { provider: { endpoint: 'https://models.example.com', operations: [{ path: '/v2/x' }] } }],
    ['a private address', { provider: { endpoint: 'https://10.0.0.1' } }],
    ['an unknown connector', { connector: { source: { connectorId: 'none' } } }],
    ['a connector without credentials', { connector: { source: { connectorId: 'openai' } } }],
  ])('is refused with %s', async (_what, inference) => {
    await expect(target('odd', inference)).rejects.toMatchObject({ name: 'ValidationException' });
  });

  it('is a connector', async () => {
    const made = await target('vendor', { connector: { source: { connectorId: 'anthropic' } } }, withKey());
    expect(made).toMatchObject({ status: 'READY' });
  });
});
