import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { ServiceError } from '@agentplatform/contract';
import Anthropic from '@anthropic-ai/sdk';
import {
  BedrockRuntimeClient,
  type ContentBlock,
  ConverseCommand,
  ConverseStreamCommand,
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import OpenAI from 'openai';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { createOutbound, type Outbound } from '../../outbound/index.ts';
import { NO_SPAN } from '../../telemetry/index.ts';
import {
  answerClient,
  clientApiOf,
  clientCall,
  clientError,
  createModels,
  type Model,
  meteredModel,
  PROVIDERS,
} from '../index.ts';
import type { ModelUsage } from '../model.ts';
import { type ScriptedModel, startScriptedModel } from '../testing/scripted-model.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const SCHEMA = { type: 'object' as const, properties: { town: { type: 'string' } }, required: ['town'] };
const TOOL = { name: 'weather', description: 'The weather of a town' };
const CALL = { id: 'call_1', name: 'weather', input: { town: 'Berlin' } };
const THOUGHT = { text: 'Berlin is in Germany', signature: 'c2lnbmVk' };

/** What any client is told, in words of no format. */
interface Heard {
  text: string;
  thought?: string;
  calls: { name: string; input: unknown }[];
  stop: string | null | undefined;
  input: number | undefined;
  output: number | undefined;
}

/** What one client does by its official package: each asks the same. */
interface Client {
  whole(): Promise<Heard>;
  streamed(leaving?: AbortController): Promise<Heard>;
  /** A conversation with a picture, a call, its result, and what was thought. */
  conversation(): Promise<Heard>;
}

let server: Server;
let url: string;
let model: Model;
let used: { usage: ModelUsage; estimated: boolean }[] = [];

beforeAll(async () => {
  server = createServer(async (req, res) => {
    const leaving = new AbortController();
    res.on('close', () => leaving.abort(new Error('gone')));
    const [path = ''] = (req.url ?? '').split('?');
    const api = clientApiOf(path);
    if (!api) return void res.writeHead(404).end();
    const body = await buffer(req);
    const call = clientCall(api, { path, headers: req.headers, body }, JSON.parse(body.toString()));
    const ctx = {
      requestId: 'r1',
      signal: leaving.signal,
      span: NO_SPAN,
      log: pino({ level: 'silent' }),
      holdBody() {},
    };
    const metered = meteredModel(model, (usage, estimated) => void used.push({ usage, estimated }));
    const answer = await answerClient(call, metered, ctx, systemClock).catch((error: unknown) =>
      error instanceof ServiceError ? clientError(call.api, error, ctx.requestId) : undefined,
    );
    // Its client has left.
    if (!answer) return void res.destroy();
    res.writeHead(answer.status, answer.headers);
    if (typeof answer.body === 'string' || answer.body instanceof Uint8Array) return void res.end(answer.body);
    Readable.from(answer.body ?? [])
      .on('error', () => res.destroy())
      .pipe(res);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const chat: () => Client = () => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', maxRetries: 0 });
  const tools = [{ type: 'function' as const, function: { ...TOOL, parameters: SCHEMA } }];
  const heard = ({ choices: [choice], usage }: OpenAI.ChatCompletion): Heard => ({
    text: choice?.message.content ?? '',
    calls: (choice?.message.tool_calls ?? []).flatMap((call) =>
      call.type === 'function' ? [{ name: call.function.name, input: JSON.parse(call.function.arguments) }] : [],
    ),
    thought: Object(choice?.message).reasoning_content,
    ...{ stop: choice?.finish_reason, input: usage?.prompt_tokens, output: usage?.completion_tokens },
  });
  const body = { model: 'm', tools, messages: [{ role: 'user' as const, content: 'Weather?' }] };
  return {
    whole: async () => heard(await client.chat.completions.create(body)),
    async streamed(leaving) {
      const stream = client.chat.completions.stream(
        { ...body, stream_options: { include_usage: true } },
        leaving ? { signal: leaving.signal } : {},
      );
      let thought = '';
      stream.on('chunk', ({ choices: [choice] }) => {
        thought += Object(choice?.delta).reasoning_content ?? '';
        if (choice?.delta.content) leaving?.abort();
      });
      const answer = heard(await stream.finalChatCompletion());
      return thought === '' ? answer : { ...answer, thought };
    },
    conversation: async () =>
      heard(
        await client.chat.completions.create({
          model: 'm',
          tools,
          messages: [
            { role: 'system', content: 'Be kind.' },
            {
              role: 'user',
              content: [
                { type: 'text', text: 'Look' },
                { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
              ],
            },
            {
              role: 'assistant',
              content: null,
              ...{ reasoning_content: THOUGHT.text },
              tool_calls: [
                { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"town":"Berlin"}' } },
              ],
            },
            { role: 'tool', tool_call_id: 'call_1', content: 'blue sky' },
          ],
        }),
      ),
  };
};

const responses: () => Client = () => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', maxRetries: 0 });
  const tools = [{ type: 'function' as const, ...TOOL, parameters: SCHEMA, strict: false }];
  const heard = ({ output, usage, incomplete_details }: OpenAI.Responses.Response): Heard => {
    const calls = output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
    const thoughts = output.flatMap((item) => (item.type === 'reasoning' ? item.summary : []));
    const texts = output.flatMap((item) => (item.type === 'message' ? item.content : []));
    return {
      text: texts.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
      calls: calls.map(({ name, arguments: given }) => ({ name, input: JSON.parse(given) })),
      ...(thoughts.length === 0 ? {} : { thought: thoughts.map(({ text }) => text).join('') }),
      stop: incomplete_details?.reason ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
      ...{ input: usage?.input_tokens, output: usage?.output_tokens },
    };
  };
  return {
    whole: async () => heard(await client.responses.create({ model: 'm', tools, input: 'Weather?' })),
    async streamed(leaving) {
      const stream = client.responses.stream(
        { model: 'm', tools, input: 'Weather?' },
        leaving ? { signal: leaving.signal } : {},
      );
      for await (const event of stream) if (event.type === 'response.output_text.delta') leaving?.abort();
      return heard(await stream.finalResponse());
    },
    conversation: async () =>
      heard(
        await client.responses.create({
          model: 'm',
          tools,
          instructions: 'Be kind.',
          input: [
            {
              role: 'user',
              content: [
                { type: 'input_text', text: 'Look' },
                { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}`, detail: 'auto' },
              ],
            },
            {
              ...{ type: 'reasoning', id: 'rs_1', encrypted_content: THOUGHT.signature },
              summary: [{ type: 'summary_text', text: THOUGHT.text }],
            },
            { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"town":"Berlin"}' },
            { type: 'function_call_output', call_id: 'call_1', output: 'blue sky' },
          ],
        }),
      ),
  };
};

/** A conversation as Anthropic's messages have it, also in the body of InvokeModel. */
const CONVERSATION = {
  max_tokens: 50,
  system: 'Be kind.',
  messages: [
    {
      role: 'user' as const,
      content: [
        { type: 'text' as const, text: 'Look' },
        { type: 'image' as const, source: { type: 'base64' as const, media_type: 'image/png' as const, data: PIXEL } },
      ],
    },
    {
      role: 'assistant' as const,
      content: [
        { type: 'thinking' as const, thinking: THOUGHT.text, signature: THOUGHT.signature },
        { type: 'tool_use' as const, ...CALL },
      ],
    },
    {
      role: 'user' as const,
      content: [{ type: 'tool_result' as const, tool_use_id: 'call_1', content: 'blue sky' }],
    },
  ],
  tools: [{ ...TOOL, input_schema: SCHEMA }],
};
const ASKED = { ...CONVERSATION, messages: [{ role: 'user' as const, content: 'Weather?' }] };

function heardOf({ content, stop_reason, usage }: Pick<Anthropic.Message, 'content' | 'stop_reason' | 'usage'>): Heard {
  const thoughts = content.flatMap((block) => (block.type === 'thinking' ? [block.thinking] : []));
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [{ name: block.name, input: block.input }] : [])),
    ...(thoughts.length === 0 ? {} : { thought: thoughts.join('') }),
    stop: stop_reason,
    input: usage.input_tokens + (usage.cache_read_input_tokens ?? 0),
    output: usage.output_tokens,
  };
}

const messages: () => Client = () => {
  const client = new Anthropic({ baseURL: url, apiKey: 'k', maxRetries: 0 });
  return {
    whole: async () => heardOf(await client.messages.create({ model: 'm', ...ASKED })),
    async streamed(leaving) {
      const stream = client.messages.stream({ model: 'm', ...ASKED }, leaving ? { signal: leaving.signal } : {});
      stream.on('text', () => leaving?.abort());
      return heardOf(await stream.finalMessage());
    },
    conversation: async () => heardOf(await client.messages.create({ model: 'm', ...CONVERSATION })),
  };
};

function bedrockClient(): BedrockRuntimeClient {
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  // The server of this test speaks HTTP/1.1 alone.
  const requestHandler = new NodeHttpHandler();
  return new BedrockRuntimeClient({ endpoint: url, region: 'us-east-1', credentials, maxAttempts: 1, requestHandler });
}

const converse: () => Client = () => {
  const client = bedrockClient();
  const toolConfig = { tools: [{ toolSpec: { ...TOOL, inputSchema: { json: SCHEMA } } }] };
  const heard = (
    content: ContentBlock[],
    stop: string | undefined,
    usage: {
      inputTokens?: number | undefined;
      cacheReadInputTokens?: number | undefined;
      outputTokens?: number | undefined;
    } = {},
  ): Heard => {
    const thoughts = content.flatMap(({ reasoningContent }) => reasoningContent?.reasoningText?.text ?? []);
    return {
      text: content.map(({ text }) => text ?? '').join(''),
      calls: content.flatMap(({ toolUse }) => (toolUse ? [{ name: toolUse.name ?? '', input: toolUse.input }] : [])),
      ...(thoughts.length === 0 ? {} : { thought: thoughts.join('') }),
      ...{ stop, output: usage.outputTokens },
      input: (usage.inputTokens ?? 0) + (usage.cacheReadInputTokens ?? 0),
    };
  };
  const ask = { modelId: 'm', toolConfig, messages: [{ role: 'user' as const, content: [{ text: 'Weather?' }] }] };
  const sent = async (command: ConverseCommand): Promise<Heard> => {
    const { output, stopReason, usage } = await client.send(command);
    return heard(output?.message?.content ?? [], stopReason, usage);
  };
  return {
    whole: () => sent(new ConverseCommand(ask)),
    async streamed(leaving) {
      const { stream } = await client.send(new ConverseStreamCommand(ask), { abortSignal: leaving?.signal as never });
      const told: Heard = { text: '', calls: [], stop: undefined, input: undefined, output: undefined };
      let input = '';
      for await (const event of stream ?? []) {
        const { contentBlockStart, contentBlockDelta, contentBlockStop, messageStop, metadata } = event;
        const toolUse = contentBlockStart?.start?.toolUse;
        if (toolUse) told.calls.push({ name: toolUse.name ?? '', input: undefined });
        told.text += contentBlockDelta?.delta?.text ?? '';
        if (contentBlockDelta?.delta?.text) leaving?.abort();
        const thought = contentBlockDelta?.delta?.reasoningContent?.text;
        if (thought) told.thought = (told.thought ?? '') + thought;
        input += contentBlockDelta?.delta?.toolUse?.input ?? '';
        const last = told.calls.at(-1);
        if (contentBlockStop && last && input !== '') last.input = JSON.parse(input);
        if (messageStop) told.stop = messageStop.stopReason;
        if (metadata)
          Object.assign(told, {
            ...heard([], told.stop ?? undefined, metadata.usage),
            text: told.text,
            calls: told.calls,
          });
      }
      return told;
    },
    conversation: () =>
      sent(
        new ConverseCommand({
          modelId: 'm',
          toolConfig,
          system: [{ text: 'Be kind.' }],
          messages: [
            {
              role: 'user',
              content: [
                { text: 'Look' },
                { image: { format: 'png', source: { bytes: Buffer.from(PIXEL, 'base64') } } },
              ],
            },
            {
              role: 'assistant',
              content: [
                { reasoningContent: { reasoningText: THOUGHT } },
                { toolUse: { toolUseId: 'call_1', name: 'weather', input: CALL.input } },
              ],
            },
            { role: 'user', content: [{ toolResult: { toolUseId: 'call_1', content: [{ text: 'blue sky' }] } }] },
          ],
        }),
      ),
  };
};

const invoke: () => Client = () => {
  const client = bedrockClient();
  const bodyOf = (body: object): string => JSON.stringify({ anthropic_version: 'bedrock-2023-05-31', ...body });
  const sent = async (body: object): Promise<Heard> => {
    const answer = await client.send(new InvokeModelCommand({ modelId: 'm', body: bodyOf(body) }));
    return heardOf(JSON.parse(Buffer.from(answer.body).toString()));
  };
  return {
    whole: () => sent(ASKED),
    async streamed(leaving) {
      const command = new InvokeModelWithResponseStreamCommand({ modelId: 'm', body: bodyOf(ASKED) });
      const answer = await client.send(command, { abortSignal: leaving?.signal as never });
      // The messages SDK reads the same events from a stream of its own.
      const told = { content: [] as Anthropic.ContentBlock[], stop_reason: null as Anthropic.StopReason | null };
      let usage = { input_tokens: 0, output_tokens: 0 } as Anthropic.Usage;
      let input = '';
      for await (const { chunk } of answer.body ?? []) {
        const event: Anthropic.RawMessageStreamEvent = JSON.parse(Buffer.from(chunk?.bytes ?? []).toString());
        const last = told.content.at(-1);
        if (event.type === 'content_block_start') told.content.push(event.content_block);
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
          if (last?.type === 'text') last.text += event.delta.text;
          leaving?.abort();
        }
        if (event.type === 'content_block_delta' && event.delta.type === 'thinking_delta' && last?.type === 'thinking')
          last.thinking += event.delta.thinking;
        if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta')
          input += event.delta.partial_json;
        if (event.type === 'content_block_stop' && last?.type === 'tool_use') last.input = JSON.parse(input);
        if (event.type === 'message_delta') {
          told.stop_reason = event.delta.stop_reason;
          usage = { ...usage, ...event.usage } as Anthropic.Usage;
        }
      }
      return heardOf({ ...told, usage });
    },
    conversation: () => sent(CONVERSATION),
  };
};

const CLIENTS = {
  'chat completions': { make: chat, stop: 'tool_calls' },
  responses: { make: responses, stop: 'tool_calls' },
  messages: { make: messages, stop: 'tool_use' },
  converse: { make: converse, stop: 'tool_use' },
  invoke: { make: invoke, stop: 'tool_use' },
} as const;

describe.each(PROVIDERS)('behind a provider of %s', (provider) => {
  let outbound: Outbound;
  let scripted: ScriptedModel;

  beforeAll(async () => {
    outbound = createOutbound({ anywhere: true, clock: systemClock });
    scripted = await startScriptedModel(provider);
    const config = { name: 'm', provider, model: 'the-model', url: scripted.url, key: 'k', answersFor: [] };
    const made = createModels([config], undefined, { outbound, timeoutMs: 30_000 }).default;
    if (!made) throw new Error('it was made just now');
    model = made;
  });
  afterAll(async () => {
    await outbound.close();
    await scripted.close();
  });
  beforeEach(() => {
    scripted.asked.length = 0;
    scripted.misbehave = undefined;
    scripted.cutAfter = undefined;
    used = [];
  });

  describe.each(Object.entries(CLIENTS))('a client of %s', (_name, { make, stop }) => {
    const whole = { text: 'Let me look.', calls: [{ name: CALL.name, input: CALL.input }], input: 11, output: 7 };

    it('hears text, thoughts, a call and what it took, whole and streamed', async () => {
      scripted.script = [{ thought: THOUGHT, text: 'Let me look.', calls: [CALL], stop: 'tool-use' }];
      const client = make();
      const expected = { ...whole, stop, thought: THOUGHT.text };
      expect(await client.whole()).toEqual(expected);
      expect(await client.streamed()).toEqual(expected);
      expect(used.map(({ usage, estimated }) => ({ ...usage, estimated }))).toEqual(
        Array(2).fill({ input: 11, output: 7, cacheRead: 3, cacheWrite: 0, estimated: false }),
      );
      const said = JSON.stringify(scripted.asked[0]?.body);
      for (const one of ['Weather?', 'The weather of a town', '"town"']) expect(said).toContain(one);
    });

    it('is heard with a picture, a call, its result and what was thought', async () => {
      scripted.script = [{ text: 'Sunny.' }];
      expect((await make().conversation()).text).toBe('Sunny.');
      const said = JSON.stringify(scripted.asked[0]?.body);
      for (const one of ['Be kind.', 'Look', PIXEL, 'Berlin', 'blue sky']) expect(said).toContain(one);
    });

    it.each([429, 400, 401, 503])('is told of %s by its own error', async (status) => {
      const message = 'odd tools[0]';
      const body = JSON.stringify({ error: { message, type: 'e', code: 400, status: 'E' }, message, type: 'error' });
      scripted.misbehave = { status, body };
      const client = make();
      for (const call of [client.whole, client.streamed]) {
        const error = await call().catch((thrown: unknown) => thrown);
        const { status: direct, $metadata } = Object(error);
        expect(direct ?? $metadata?.httpStatusCode).toBe({ 429: 429, 400: 400, 401: 424, 503: 503 }[status]);
        if (status === 400) expect(String(error)).toContain(message);
      }
      expect(scripted.asked).toHaveLength(2);
      expect(used).toEqual([]);
    });

    it('is told of garbage, of a wrong type, and of half an event', async () => {
      const client = make();
      const said = (type: string, body: string) => {
        scripted.misbehave = (response) => void response.writeHead(200, { 'content-type': type }).end(body);
      };
      for (const [type, body] of [
        ['application/json', '[[[['],
        ['text/html', '<html>Sign in</html>'],
        ['text/event-stream', 'data: {"choices":[{"del'],
      ] as const) {
        said(type, body);
        await expect(client.whole(), body).rejects.toThrow();
        await expect(client.streamed(), body).rejects.toThrow();
      }
    });

    it('is told in the midst of a stream that it was cut, and what had come is estimated', async () => {
      scripted.script = [{ text: 'Hello there, this is a long answer' }];
      scripted.cutAfter = { openai: 3, 'openai-responses': 5, anthropic: 5, bedrock: 3, gemini: 2, mistral: 3 }[
        provider
      ];
      await expect(make().streamed()).rejects.toThrow();
      await expect.poll(() => used).toMatchObject([{ estimated: true, usage: { output: expect.any(Number) } }]);
      expect(used[0]?.usage.output).toBeGreaterThan(0);
      expect(used[0]?.usage.input).toBeGreaterThan(0);
    });

    it('leaves, and the provider hears it', async () => {
      scripted.script = [{ text: 'Hello there' }];
      const reached = Promise.withResolvers<void>();
      scripted.misbehave = (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write('\n');
        reached.resolve();
      };
      const leaving = new AbortController();
      const client = make();
      const outcome = client.streamed(leaving).catch(() => 'gone');
      await reached.promise;
      expect(scripted.open()).toBe(1);
      leaving.abort();
      expect(await outcome).toBe('gone');
      await expect.poll(() => scripted.open()).toBe(0);
    });
  });
});

describe('embeddings', () => {
  it('are had of an OpenAI-compatible provider, as floats and in the base64 that the package asks for by itself', async () => {
    const outbound = createOutbound({ anywhere: true, clock: systemClock });
    const scripted = await startScriptedModel('openai');
    const config = { name: 'm', provider: 'openai' as const, model: 'the-model', url: scripted.url, answersFor: [] };
    const made = createModels([config], undefined, { outbound, timeoutMs: 30_000 }).default;
    if (!made) throw new Error('it was made just now');
    model = made;
    used = [];
    const data = [0.5, -2].map((first, index) => ({ object: 'embedding', index, embedding: [first, 1] }));
    const usage = { prompt_tokens: 5, total_tokens: 5 };
    scripted.misbehave = { status: 200, body: JSON.stringify({ object: 'list', data, model: 'm', usage }) };
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', maxRetries: 0 });
    for (const format of [{}, { encoding_format: 'float' as const }]) {
      const said = await client.embeddings.create({ model: 'm', input: ['tea', 'coffee'], ...format });
      expect(said.data.map(({ embedding }) => embedding)).toEqual([
        [0.5, 1],
        [-2, 1],
      ]);
      expect(said.usage).toEqual(usage);
    }
    expect(scripted.asked[0]).toMatchObject({ path: '/v1/embeddings', body: { input: ['tea', 'coffee'] } });
    expect(used[0]).toMatchObject({ estimated: false, usage: { input: 5 } });
    await expect(client.embeddings.create({ model: 'm', input: [] })).rejects.toMatchObject({ status: 400 });
    await outbound.close();
    await scripted.close();
  });

  it('are refused of Anthropic, which has none', async () => {
    const outbound = createOutbound({ anywhere: true, clock: systemClock });
    const config = {
      name: 'm',
      provider: 'anthropic' as const,
      model: 'c',
      url: 'http://127.0.0.1:9/v1',
      answersFor: [],
    };
    const made = createModels([config], undefined, { outbound, timeoutMs: 30_000 }).default;
    await expect(made?.embed({ texts: ['tea'] })).rejects.toMatchObject({ kind: 'refused' });
    await outbound.close();
  });
});
