import type { ServerResponse } from 'node:http';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { agentcoreInside } from '../../packages/cli/test/agentcore.ts';
import {
  type ScriptedModel,
  startScriptedModel,
} from '../../packages/platform/src/kernel/models/testing/scripted-model.ts';
import { OtlpReceiver } from '../../packages/platform/src/kernel/telemetry/testing/otlp-receiver.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { signingFetch } from '../support/gateway.ts';
import { modelGateway } from '../support/model-gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;
let first: ScriptedModel;
let second: ScriptedModel;
let receiver: OtlpReceiver;

beforeAll(async () => {
  [first, second] = await Promise.all([startScriptedModel('openai'), startScriptedModel('openai')]);
  receiver = await OtlpReceiver.start();
  platform = await startTestPlatform({
    args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'],
    env: { AGENTPLATFORM_TELEMETRY_OTLP_ENDPOINT: receiver.url },
  });
  clients = clientsOf(platform);
}, 120_000);
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await Promise.all([first?.close(), second?.close(), receiver?.close()]);
});
beforeEach(() => {
  for (const model of [first, second]) {
    model.asked.length = 0;
    model.misbehave = undefined;
    model.cutAfter = undefined;
    model.script = [{ text: 'Hello there', stop: 'end' }];
  }
});

const messages = [{ role: 'user' as const, content: 'Hi' }];
const chatOf = (url: string) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const gateway = () =>
  modelGateway(platform, clients, {
    one: { url: first.url, models: ['small'] },
    two: { url: second.url, models: ['large'] },
  });

/** The SDK leaves out what is newer than it. */
async function post(path: string, body: object): Promise<void> {
  const url = `${platform.ready.endpoint}/gateways/${path}`;
  const headers = { 'content-type': 'application/json' };
  const reply = await signingFetch(platform)(url, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(reply.ok, await reply.text()).toBe(true);
}

/** A gateway with that rule before the two. */
async function ruled(route: object, conditions: object[] = []): Promise<OpenAI> {
  return (await ruledGateway(route, conditions)).chat;
}

async function ruledGateway(route: object, conditions: object[] = []): Promise<{ id: string; chat: OpenAI }> {
  const { id, url } = await gateway();
  const actions = [{ routeToTarget: { staticRoute: route } }];
  await post(`${id}/rules`, { priority: 1, conditions, actions });
  return { id, chat: chatOf(url) };
}

describe('rules on models', () => {
  it('send what asks for a model to another target, with another model; others go on as before', async () => {
    const conditions = [{ matchPaths: { anyOf: ['/inference/*'] } }, { matchModels: { anyOf: [{ value: 'sm*' }] } }];
    const chat = await ruled({ targetName: 'two', model: 'large' }, conditions);
    const said = await chat.chat.completions.create({ model: 'small', messages });
    // The client is told the name that it knows.
    expect(said).toMatchObject({ model: 'small', choices: [{ message: { content: 'Hello there' } }] });
    expect([first.asked, second.asked]).toMatchObject([[], [{ body: { model: 'large' } }]]);
    await expect(chat.chat.completions.create({ model: 'none', messages })).rejects.toMatchObject({ status: 404 });
  });

  const fallback = (more: object = {}) => ({
    targetName: 'one',
    fallback: { targetFallback: [{ targetName: 'two', model: 'large' }], ...more },
  });

  it.each([
    ['an error of the server', { status: 503, body: '{}' }, {}],
    ['a status that the rule names', { status: 429, body: '{}' }, { triggerOn: { statusCodes: ['429'] } }],
    ['the very status, not ours', { status: 502, body: '{}' }, { triggerOn: { statusCodes: ['502'] } }],
    ['nothing in its time', () => undefined, { firstByteTimeoutMilliseconds: 1_000 }],
    ['a cut connection', (response: { destroy(): void }) => response.destroy(), {}],
  ])('ask the next target after %s, streamed and whole', async (_, misbehave, more) => {
    const chat = await ruled(fallback(more));
    first.misbehave = misbehave as ScriptedModel['misbehave'];
    const said = await chat.chat.completions.create({ model: 'small', messages });
    expect(said.choices[0]?.message.content).toBe('Hello there');
    const stream = await chat.chat.completions.create({ model: 'small', messages, stream: true });
    const texts: string[] = [];
    for await (const { choices } of stream) texts.push(choices[0]?.delta.content ?? '');
    expect(texts.join('')).toBe('Hello there');
    expect([first.asked.length, second.asked.length]).toEqual([2, 2]);
  });

  it.each([
    ['a refusal of the request', { status: 400, body: '{"error":{"message":"odd"}}' }, {}, 400],
    ['a status that the rule does not name', { status: 503, body: '{}' }, { triggerOn: { statusCodes: ['429'] } }, 503],
  ])('ask nobody else after %s', async (_, misbehave, more, status) => {
    const chat = await ruled(fallback(more));
    first.misbehave = misbehave;
    await expect(chat.chat.completions.create({ model: 'small', messages })).rejects.toMatchObject({ status });
    expect([first.asked.length, second.asked.length]).toEqual([1, 0]);
  });

  it('ask the next target for a model that the first has not', async () => {
    const chat = await ruled(fallback());
    const said = await chat.chat.completions.create({ model: 'other', messages });
    expect(said.choices[0]?.message.content).toBe('Hello there');
    expect([first.asked.length, second.asked.length]).toEqual([0, 1]);
  });

  it('ask nobody else once the answer has begun', async () => {
    const chat = await ruled(fallback());
    first.cutAfter = 2;
    const stream = await chat.chat.completions.create({ model: 'small', messages, stream: true });
    const texts: string[] = [];
    const read = async () => {
      for await (const { choices } of stream) texts.push(choices[0]?.delta.content ?? '');
    };
    await expect(read()).rejects.toThrow('gave no answer');
    expect(texts.join('')).not.toBe('');
    expect([first.asked.length, second.asked.length]).toEqual([1, 0]);
  });

  it('pass over a target that fails again and again', async () => {
    const chat = await ruled(fallback());
    first.misbehave = { status: 500, body: '{}' };
    for (let i = 0; i < 7; i++) await chat.chat.completions.create({ model: 'small', messages });
    expect([first.asked.length, second.asked.length]).toEqual([5, 7]);
  });

  it('are the same for a client of Anthropic, in its own words', async () => {
    const chat = await ruled(fallback());
    for (const model of [first, second]) model.misbehave = { status: 503, body: '{}' };
    const client = new Anthropic({ baseURL: chat.baseURL.replace(/\/v1$/, ''), apiKey: 'none', maxRetries: 0 });
    const asked = client.messages.create({ model: 'small', max_tokens: 9, messages });
    await expect(asked).rejects.toMatchObject({ status: 503, error: { type: 'error' } });
    expect([first.asked.length, second.asked.length]).toEqual([1, 1]);
  });
});

it('each attempt of a fallback is traced, with its target and how it went', async () => {
  const chat = await ruled({
    targetName: 'one',
    fallback: { targetFallback: [{ targetName: 'two', model: 'large' }] },
  });
  first.misbehave = { status: 503, body: '{}' };
  const traceId = '0af7651916cd43dd8448eb211c80319d';
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
  const stream = await chat.chat.completions.create({ model: 'small', messages, stream: true }, { headers });
  for await (const _ of stream);
  const named = (name: string) =>
    receiver.spans
      .filter((span) => span.traceId === traceId && span.name === name)
      .toSorted((a, b) => (a.start < b.start ? -1 : 1));
  await expect.poll(() => named('GatewayTarget').length, { timeout: 20_000 }).toBe(2);
  const [failed, answered] = named('GatewayTarget');
  expect(failed).toMatchObject({ status: 2, attributes: { 'gateway.target': 'one' } });
  expect(answered).toMatchObject({ attributes: { 'gateway.target': 'two' } });
  expect(answered?.status).not.toBe(2);
  const [asked, next] = [named('chat small')[0], named('chat large')[0]];
  expect([asked?.parentId, next?.parentId]).toEqual([failed?.spanId, answered?.spanId]);
  expect(next?.attributes).toMatchObject({ 'gen_ai.request.model': 'large', 'gen_ai.usage.output_tokens': 7 });
  expect(failed?.parentId).toBe(answered?.parentId);
});

describe('limits of tokens', () => {
  /** A chat at a gateway that lets a hundred tokens a minute through to each model. */
  async function limited(dimensionKeys: string[]): Promise<OpenAI> {
    const { id, url } = await gateway();
    const dimensions = Object.fromEntries(dimensionKeys.map((key) => [key, '*']));
    const entries = [{ dimensions, tokens: [{ rate: 100, period: 'minute' }] }];
    await post(`${id}/rate-limits`, { rateLimitId: 'few', dimensionKeys, entries });
    return chatOf(url);
  }

  it.each([false, true])('count what the provider says, and refuse what comes after; streamed: %s', async (stream) => {
    const chat = await limited(['qualifiedModelId']);
    first.script = [{ text: 'Hello there', stop: 'end', usage: { input: 900, output: 200, cacheRead: 0 } }];
    const ask = async (model: string): Promise<unknown> => {
      const said = await chat.chat.completions.create({ model, messages, stream });
      if (!('choices' in said)) for await (const _ of said);
      return undefined;
    };
    await ask('small');
    // A debt of a thousand is not made up for within a minute or two.
    const refusal = await ask('small').catch((error: unknown) => error);
    expect(refusal).toMatchObject({ status: 429, message: expect.stringContaining('few') });
    expect(refusal).toMatchObject({ message: expect.stringContaining('100 tokens a minute') });
    expect(first.asked).toHaveLength(1);
    // By whatever name, and another model for itself.
    await expect(ask('one/small')).rejects.toMatchObject({ status: 429 });
    await ask('large');
  });

  it('count for all models of a target together, and give back what was held', async () => {
    const chat = await limited(['targetName']);
    first.script = [{ text: 'Hello', stop: 'end', usage: { input: 1, output: 1, cacheRead: 0 } }];
    // Each may take ninety, and takes two.
    for (let i = 0; i < 3; i++) await chat.chat.completions.create({ model: 'small', messages, max_tokens: 70 });
    expect(first.asked).toHaveLength(3);
  });

  it('refuse in the words of the client’s own format', async () => {
    const chat = await limited(['targetName']);
    first.script = [{ text: 'Hello', stop: 'end', usage: { input: 900, output: 200, cacheRead: 0 } }];
    const client = new Anthropic({ baseURL: chat.baseURL.replace(/\/v1$/, ''), apiKey: 'none', maxRetries: 0 });
    await client.messages.create({ model: 'small', max_tokens: 9, messages });
    const asked = client.messages.create({ model: 'small', max_tokens: 9, messages });
    await expect(asked).rejects.toMatchObject({
      ...{ status: 429, error: { error: { type: 'rate_limit_error' } } },
    });
    const again = await asked.catch((error: { headers?: Headers }) => error.headers);
    expect(Number((again as Headers).get('retry-after'))).toBeGreaterThan(0);
  });
});

/** What that command says; it has no other platform to find. */
async function command(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await agentcoreInside(args, { cwd: platform.dataDir, env: platform.env });
  expect(code, stderr).toBe(0);
  return stdout;
}

describe('what models took', () => {
  const usage = { input: 20, output: 3, cacheRead: 5 };
  const usageOf = async (id: string) => JSON.parse(await command('gateway', 'usage', '--gateway', id, '--json'));

  it('is told by target, model and caller; each attempt counts, and what was never sent does not', async () => {
    const { id, chat } = await ruledGateway({
      targetName: 'one',
      fallback: { targetFallback: [{ targetName: 'two', model: 'large' }] },
    });
    first.misbehave = { status: 503, body: '{}' };
    second.script = [{ text: 'Hello', stop: 'end', usage }];
    await chat.chat.completions.create({ model: 'small', messages });
    await chat.chat.completions.create({ model: 'small', messages });
    // Several answers are not asked for.
    await expect(chat.chat.completions.create({ model: 'small', messages, n: 2 })).rejects.toMatchObject({
      status: 400,
    });
    await expect
      .poll(() => usageOf(id))
      .toEqual([
        expect.objectContaining({
          ...{ target: 'two', model: 'large', caller: 'anonymous', calls: 2, failed: 0, estimated: 0 },
          ...{ inputTokens: 40, outputTokens: 6, cacheReadTokens: 10 },
        }),
        expect.objectContaining({ target: 'one', model: 'small', calls: 2, failed: 2, inputTokens: 0 }),
      ]);
  });

  it('is estimated where a stream ends early', async () => {
    const { id, url } = await gateway();
    first.cutAfter = 2;
    const stream = await chatOf(url).chat.completions.create({ model: 'small', messages, stream: true });
    await expect(stream.toReadableStream().pipeTo(new WritableStream())).rejects.toThrow();
    await expect.poll(() => usageOf(id)).toMatchObject([{ calls: 1, failed: 0, estimated: 1 }]);
    expect((await usageOf(id))[0].inputTokens).toBeGreaterThan(0);
  });

  it('is nobody’s to see without a right to it', async () => {
    const { id } = await gateway();
    const url = `${platform.ready.endpoint}/_platform/gateways/${id}/usage`;
    expect((await fetch(url)).status).toBe(403);
    expect((await signingFetch(platform)(`${url}?hours=0`)).status).toBe(400);
    expect((await signingFetch(platform)(url)).status).toBe(200);
  });
});

describe('guard rails', () => {
  const put = async (id: string, rails: object): Promise<void> => {
    const url = `${platform.ready.endpoint}/_platform/gateways/${id}/guard-rails`;
    const reply = await signingFetch(platform)(url, { method: 'PUT', body: JSON.stringify(rails) });
    expect(reply.status, await reply.text()).toBe(200);
  };
  const logged = () => platform.log().includes('a model behind a gateway was asked');

  it('are nobody’s to change without a right to it, and are off', async () => {
    const { id, url } = await gateway();
    const rails = `${platform.ready.endpoint}/_platform/gateways/${id}/guard-rails`;
    expect((await fetch(rails, { method: 'PUT', body: '{}' })).status).toBe(403);
    expect((await signingFetch(platform)(rails, { method: 'PUT', body: '{"log":1}' })).status).toBe(400);
    const chat = chatOf(url);
    for (let i = 0; i < 2; i++) await chat.chat.completions.create({ model: 'small', messages });
    expect(first.asked).toHaveLength(2);
    expect(logged()).toBe(false);
  });

  it('give the same caller the same answer, whole ones alone, and count nothing for it', async () => {
    const { id, url } = await gateway();
    await put(id, { cacheSeconds: 600, budgets: [{ per: 'caller', tokens: 1_000, period: 'day' }] });
    first.script = [{ text: 'Hello', stop: 'end', usage: { input: 500, output: 100, cacheRead: 0 } }];
    const chat = chatOf(url);
    const ask = (body: object = {}) =>
      chat.chat.completions.create({ model: 'small', messages, ...body }).withResponse();
    const [one, two] = [await ask(), await ask()];
    expect([one, two].map(({ response }) => response.headers.get('x-agentplatform-cache'))).toEqual([null, 'hit']);
    expect(two.data).toEqual(one.data);
    expect(first.asked).toHaveLength(1);
    await ask({ temperature: 0.5 });
    expect(first.asked).toHaveLength(2);
    // Twice six hundred are gone; what was answered before still is.
    await expect(ask({ temperature: 0.6 })).rejects.toMatchObject({
      ...{ status: 429, message: expect.stringContaining('budget of this caller') },
    });
    expect((await ask()).response.headers.get('x-agentplatform-cache')).toBe('hit');
  });

  it('write what is said to the log without what is private in it, and spare models it', async () => {
    const { id } = await gateway();
    const url = `${platform.ready.endpoint}/gateways/${id}/inference`;
    const options = ['--log', '--redact-requests', '--budget', 'caller=900000/month', 'key:AKX=5/day'];
    expect(await command('gateway', 'guard', '--gateway', id, ...options)).toMatch(
      /each caller +900000 tokens a month\n.*key AKX +5 tokens a day/,
    );
    first.script = [{ text: 'Mail bob@mail.example.com', stop: 'end' }];
    const content = 'I am ann@mail.example.com';
    await chatOf(url).chat.completions.create({ model: 'small', messages: [{ role: 'user', content }] });
    await expect.poll(logged).toBe(true);
    expect(platform.log()).toContain('user: I am [email]');
    expect(platform.log()).toContain('Mail [email]');
    expect(platform.log()).not.toContain('@mail.example.com');
    expect(JSON.stringify(first.asked[0]?.body)).toContain('I am [email]');
    const off = ['--no-log', '--remove-budget', 'key:AKX/day'];
    const now = JSON.parse(await command('gateway', 'guard', '--gateway', id, ...off, '--json'));
    expect(now).toMatchObject({ log: false, redactRequests: true, budgets: [{ per: 'caller', tokens: 900_000 }] });
  });
});

describe('the command line', () => {
  it('lists models, tries one, and shows what it took', async () => {
    const { id } = await gateway();
    first.script = [{ text: 'Hello \u001b[2Jthere', stop: 'end', usage: { input: 20, output: 3, cacheRead: 0 } }];
    expect(await command('gateway', 'models', '--gateway', id)).toMatch(/small +one\n.*large +two/);
    const said = await command('gateway', 'try-model', 'small', 'Hi', '--gateway', id);
    expect(said).toContain('there');
    expect(said).not.toContain('\u001b[2J');
    await expect
      .poll(() => command('gateway', 'usage', '--gateway', id))
      .toMatch(/one +small +anonymous +1 +0 +0 +20 +3/);
    const none = ['gateway', 'try-model', 'none', '--gateway', id];
    const { code, stderr } = await agentcoreInside(none, { cwd: platform.dataDir, env: platform.env });
    expect([code, stderr]).toEqual([4, expect.stringContaining('has the model none')]);
  });

  it('gives the SDKs of OpenAI and Anthropic what they need', async () => {
    const { id } = await gateway();
    const env = JSON.parse(await command('env', '--openai', '--gateway', id, '--json'));
    const chat = new OpenAI({ baseURL: env.OPENAI_BASE_URL, apiKey: env.OPENAI_API_KEY });
    expect((await chat.chat.completions.create({ model: 'small', messages })).choices[0]?.message.content).toBe(
      'Hello there',
    );
    const client = new Anthropic({
      baseURL: env.ANTHROPIC_BASE_URL,
      authToken: env.ANTHROPIC_AUTH_TOKEN,
      apiKey: null,
    });
    const { content } = await client.messages.create({ model: 'small', max_tokens: 9, messages });
    expect(content).toMatchObject([{ text: 'Hello there' }]);
    expect(await command('env', '--openai', '--gateway', id)).toContain(
      `export OPENAI_BASE_URL=${env.OPENAI_BASE_URL}`,
    );
    const signed = await modelGateway(platform, clients, {}, { authorizerType: 'AWS_IAM' });
    const refused = await agentcoreInside(['env', '--openai', '--gateway', signed.id], {
      ...{ cwd: platform.dataDir, env: platform.env },
    });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('signed requests') });
  });
});

describe('official clients, behind a fallback', () => {
  const call = { id: 'call_1', name: 'weather', input: { town: 'Berlin' } };
  const schema = { type: 'object' as const, properties: { town: { type: 'string' } } };

  it('hear streamed calls of tools', async () => {
    const { chat } = await ruledGateway({
      targetName: 'one',
      fallback: { targetFallback: [{ targetName: 'two', model: 'large' }] },
    });
    first.misbehave = { status: 500, body: '{}' };
    second.script = [{ text: 'Let me look', calls: [call], stop: 'tool-use' }];
    const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: schema } }];
    const said = await chat.chat.completions.stream({ model: 'small', messages, tools }).finalChatCompletion();
    expect(said.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: 'Let me look', tool_calls: [{ function: { arguments: '{"town":"Berlin"}' } }] },
    });
    const client = new Anthropic({ baseURL: chat.baseURL.replace(/\/v1$/, ''), apiKey: 'none', maxRetries: 0 });
    const { content, stop_reason } = await client.messages
      .stream({ model: 'small', max_tokens: 9, messages, tools: [{ name: 'weather', input_schema: schema }] })
      .finalMessage();
    expect([stop_reason, content[1]]).toMatchObject(['tool_use', { type: 'tool_use', input: call.input }]);
    expect(second.asked[0]?.body.tools).toMatchObject([{ function: { name: 'weather' } }]);
  });
});

describe('a provider that sends', () => {
  const sends = (type: string, body: string) => (response: ServerResponse) =>
    void response.writeHead(200, { 'content-type': type }).end(body);

  it.each([
    ['JSON that breaks off', sends('application/json', '{"choices":[{"mess')],
    ['a page', sends('text/html', '<html>Welcome</html>')],
    ['nothing', sends('application/json', '')],
    ['half an event', sends('text/event-stream', 'data: {"choices":[{"del')],
  ])('%s has failed: its client is told so, and a fallback asks the next', async (_, misbehave) => {
    const { id, url } = await gateway();
    first.misbehave = misbehave;
    for (const stream of [false, true]) {
      const asked = chatOf(url).chat.completions.create({ model: 'small', messages, stream });
      await expect(asked).rejects.toMatchObject({ status: 503, message: expect.stringContaining('gave no answer') });
    }
    const actions = [
      {
        routeToTarget: {
          staticRoute: { targetName: 'one', fallback: { targetFallback: [{ targetName: 'two', model: 'large' }] } },
        },
      },
    ];
    await post(`${id}/rules`, { priority: 1, actions });
    const said = await chatOf(url).chat.completions.create({ model: 'small', messages });
    expect(said.choices[0]?.message.content).toBe('Hello there');
    expect([first.asked.length, second.asked.length]).toEqual([3, 1]);
  });
});
