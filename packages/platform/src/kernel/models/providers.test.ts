import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { createOutbound, type Outbound } from '../outbound/index.ts';
import { createModels, type Model, type ModelEvent, type ModelRequest, PROVIDERS } from './index.ts';
import { type ScriptedModel, startScriptedModel } from './testing/scripted-model.ts';

const KEY = 'sk-of-the-operator';
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const WEATHER = {
  name: 'weather',
  description: 'The weather of a town',
  schema: { type: 'object' as const, properties: { town: { type: 'string' as const } }, required: ['town'] },
};
const ask = (text: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  messages: [{ role: 'user', content: [{ type: 'text', text }] }],
  maxTokens: 100,
  ...more,
});

async function all(events: AsyncIterable<ModelEvent>): Promise<ModelEvent[]> {
  const came: ModelEvent[] = [];
  for await (const event of events) came.push(event);
  return came;
}

/** The deltas of each part of a stream, one after the other. */
function partsOf(events: readonly ModelEvent[]): { head: object; text: string; signature?: string }[] {
  const parts: { head: object; text: string; signature?: string }[] = [];
  let open: number | undefined;
  for (const event of events) {
    if (event.type === 'start') {
      expect(open).toBeUndefined();
      expect(event.part).toBe(parts.length);
      open = event.part;
      parts.push({ head: event.head, text: '' });
    } else if (event.type !== 'end') {
      expect(event.part).toBe(open);
      const part = parts[event.part];
      if (part && event.type === 'delta') part.text += event.delta;
      if (part && event.type === 'signature') part.signature = event.signature;
      if (event.type === 'stop') open = undefined;
    }
  }
  expect(open).toBeUndefined();
  return parts;
}

describe.each(PROVIDERS)('a model of %s', (provider) => {
  let outbound: Outbound;
  let server: ScriptedModel;
  let model: Model;

  beforeAll(async () => {
    outbound = createOutbound({ anywhere: true, clock: systemClock });
  });
  afterAll(() => outbound.close());
  beforeEach(async () => {
    server = await startScriptedModel(provider);
    const config = { name: 'local', provider, model: 'the-model', url: server.url, key: KEY, answersFor: [] };
    const found = createModels([{ ...config, temperature: 0.25 }], undefined, { outbound, timeoutMs: 30_000 }).default;
    if (!found) throw new Error('it was made just now');
    model = found;
  });
  afterEach(() => server.close());

  const USAGE = { input: 11, output: 7, cacheRead: 3, cacheWrite: 0 };

  it('answers with text and says what it took; the key, the id and the settings reach the provider', async () => {
    server.script = [{ text: 'Hello there' }];
    const answer = await model.generate(ask('Hi', { system: 'Be kind.', topP: 0.5 }));
    expect(answer).toEqual({
      content: [{ type: 'text', text: 'Hello there' }],
      stopReason: 'end',
      usage: USAGE,
      modelId: 'the-model',
    });
    const [{ path, headers, body } = { path: '', headers: {}, body: {} }] = server.asked;
    expect(JSON.stringify(headers)).toContain(KEY);
    expect(path + body.model).toContain('the-model');
    const said = JSON.stringify(body);
    for (const one of ['Hi', 'Be kind.', '0.25', '0.5', '100']) expect(said).toContain(one);
  });

  it('is told where to stop, and asked nothing where its provider takes no such words', async () => {
    server.script = [{ text: 'Hello there' }];
    const asked = model.generate(ask('Hi', { stopSequences: ['END'] }));
    if (provider !== 'openai-responses') await asked;
    else
      await expect(asked).rejects.toMatchObject({ kind: 'refused', said: expect.stringContaining('stop sequences') });
    expect(server.asked.map(({ body }) => JSON.stringify(body).includes('END'))).toEqual(
      provider === 'openai-responses' ? [] : [true],
    );
  });

  it('streams text as it comes, and then says what it took', async () => {
    server.script = [{ text: 'Hello there' }];
    const events = await all(model.stream(ask('Hi')));
    expect(partsOf(events)).toEqual([{ head: { type: 'text' }, text: 'Hello there' }]);
    expect(events.filter(({ type }) => type === 'delta')).toHaveLength(2);
    expect(events.at(-1)).toEqual({ type: 'end', stopReason: 'end', usage: USAGE });
  });

  it('is asked under another id where the request names one', async () => {
    server.script = [{ text: 'yes' }];
    expect(await model.generate(ask('Hi', { modelId: 'other-model' }))).toMatchObject({ modelId: 'other-model' });
    expect(server.asked[0]?.path + server.asked[0]?.body.model).toContain('other-model');
  });

  it('says that it came to its limit', async () => {
    server.script = [{ text: 'Hel', stop: 'max-tokens' }];
    expect((await model.generate(ask('Hi'))).stopReason).toBe('max-tokens');
    expect((await all(model.stream(ask('Hi')))).at(-1)).toMatchObject({ stopReason: 'max-tokens' });
  });

  const CALLS = [
    { id: 'call_1', name: 'weather', input: { town: 'Berlin' } },
    { id: 'call_2', name: 'weather', input: { town: 'Paris' } },
  ];

  it('calls tools, whole and streamed, one after the other', async () => {
    server.script = [{ text: 'Let me look.', calls: CALLS, stop: 'tool-use' }];
    const request = ask('Weather?', { tools: [WEATHER], toolChoice: 'any' });
    const whole = await model.generate(request);
    expect(whole.stopReason).toBe('tool-use');
    expect(whole.content).toMatchObject([
      { type: 'text', text: 'Let me look.' },
      ...CALLS.map(({ name, input }) => ({ type: 'tool-call', name, input })),
    ]);
    const said = JSON.stringify(server.asked[0]?.body);
    for (const one of ['The weather of a town', '"town"', 'required']) expect(said).toContain(one);

    const events = await all(model.stream(request));
    expect(events.at(-1)).toMatchObject({ type: 'end', stopReason: 'tool-use' });
    const [text, ...calls] = partsOf(events);
    expect(text?.text).toBe('Let me look.');
    expect(calls.map((call) => ({ ...call.head, input: JSON.parse(call.text) }))).toMatchObject(
      CALLS.map(({ name, input }) => ({ type: 'tool-call', name, input })),
    );
  });

  it('gets back what its tools gave, a failure and a picture included', async () => {
    server.script = [{ text: 'Sunny.' }];
    await model.generate({
      ...ask('', { tools: [WEATHER] }),
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
        { role: 'assistant', content: CALLS.map((call) => ({ type: 'tool-call', ...call })) },
        {
          role: 'user',
          content: [
            {
              type: 'tool-result',
              id: 'call_1',
              content: [
                { type: 'json', value: { sky: 'blue' } },
                { type: 'file', mediaType: 'image/png', data: PIXEL },
              ],
            },
            { type: 'tool-result', id: 'call_2', content: [{ type: 'text', text: 'no such town' }], failed: true },
          ],
        },
      ],
    });
    const said = JSON.stringify(server.asked[0]?.body);
    for (const one of ['Berlin', 'Paris', 'sky', 'no such town', PIXEL.toString('base64')]) expect(said).toContain(one);
  });

  it('sees images and documents', async () => {
    server.script = [{ text: 'A dot.' }];
    const pdf = Buffer.from('%PDF-1.4 nothing');
    await model.generate({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'file', mediaType: 'image/png', data: PIXEL },
            { type: 'file', mediaType: 'application/pdf', data: pdf, name: 'paper' },
          ],
        },
      ],
    });
    const said = JSON.stringify(server.asked[0]?.body);
    for (const bytes of [PIXEL, pdf]) expect(said).toContain(bytes.toString('base64'));
  });

  it('thinks, and is given back what it thought', async () => {
    const thought = { text: 'Berlin is in Germany', signature: 'c2lnbmVk' };
    server.script = [{ thought, text: 'Sunny.' }];
    const { content } = await model.generate(ask('Weather?'));
    // OpenAI-compatible services sign nothing, and Mistral neither.
    const signs = provider !== 'openai' && provider !== 'mistral';
    const signature = !signs ? {} : { signature: thought.signature };
    expect(content[0]).toEqual({ type: 'reasoning', text: thought.text, ...signature });
    const [first, second] = partsOf(await all(model.stream(ask('Weather?'))));
    expect(first).toEqual({ head: { type: 'reasoning' }, text: thought.text, ...signature });
    expect(second?.text).toBe('Sunny.');

    server.asked.length = 0;
    await model.generate({
      messages: [
        ...ask('Weather?').messages,
        { role: 'assistant', content },
        { role: 'user', content: [{ type: 'text', text: 'Sure?' }] },
      ],
    });
    expect(JSON.stringify(server.asked[0]?.body)).toContain(thought.text);
    if (signs) expect(JSON.stringify(server.asked[0]?.body)).toContain(thought.signature);
  });

  const both = [
    ['whole', (request: ModelRequest, signal?: AbortSignal) => model.generate(request, signal)],
    ['streamed', (request: ModelRequest, signal?: AbortSignal) => all(model.stream(request, signal))],
  ] as const;

  describe.each(both)('%s', (_how, call) => {
    const error = (message: string, type = 'error') =>
      JSON.stringify({ error: { message, type, code: 400, status: type }, message, type: 'error' });

    it.each([
      [429, 'slow down', { kind: 'throttled', refused: false }],
      [400, 'tools.0.name is not valid', { kind: 'refused', refused: true }],
      [400, 'the prompt is too long: 9 tokens > 8 maximum', { kind: 'too-long', refused: true }],
      [401, `the key ${KEY} is wrong`, { kind: 'unusable', refused: false }],
      [503, 'overloaded', { kind: 'unavailable', refused: false }],
    ])('says of %s what it is', async (status, message, expected) => {
      server.misbehave = { status, body: error(message) };
      const thrown = await call(ask('Hi')).catch((reason: unknown) => reason);
      expect(thrown).toMatchObject({ name: 'ModelError', ...expected });
      expect(String(thrown)).not.toContain(message);
      expect(String(Object(thrown).cause)).toContain(message.replace(KEY, '[redacted]'));
      if (status === 400) expect(thrown).toMatchObject({ said: expect.stringContaining(message) });
      expect(server.asked).toHaveLength(1);
    });

    it('fails of garbage and of nothing', async () => {
      for (const body of ['<html>Sign in</html>', '', '{}', '[[[[']) {
        server.misbehave = { status: 200, body };
        await expect(call(ask('Hi')), body).rejects.toMatchObject({ name: 'ModelError', refused: false });
      }
    });

    it('is not read beyond its bound', async () => {
      server.misbehave = (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const more = (): void => {
          while (!response.destroyed && response.write('x'.repeat(65_536)));
        };
        response.on('drain', more);
        more();
      };
      await expect(call(ask('Hi'))).rejects.toMatchObject({ name: 'ModelError' });
      await expect.poll(() => server.open()).toBe(0);
    });

    it('is ended by the signal, with its reason, and so is the connection', async () => {
      server.misbehave = (response) => void response.writeHead(200, { 'content-type': 'application/json' }).write(' ');
      const ending = new AbortController();
      const outcome = call(ask('Hi'), ending.signal).catch((reason: unknown) => reason);
      await expect.poll(() => server.open()).toBe(1);
      const reason = new Error('enough');
      ending.abort(reason);
      expect(await outcome).toBe(reason);
      await expect.poll(() => server.open()).toBe(0);
    });
  });

  it('fails of a stream that is cut, wherever', async () => {
    server.script = [{ text: 'Hello there' }];
    const pieces = { openai: 4, 'openai-responses': 5, anthropic: 6, bedrock: 4, gemini: 2, mistral: 3 }[provider];
    for (server.cutAfter = 0; server.cutAfter <= pieces; server.cutAfter++) {
      await expect(all(model.stream(ask('Hi'))), `after ${server.cutAfter}`).rejects.toMatchObject({
        name: 'ModelError',
        kind: 'unavailable',
      });
    }
  });

  it('ends the call when nobody listens any more', async () => {
    server.script = [{ text: 'Hello there' }];
    for await (const event of model.stream(ask('Hi'))) if (event.type === 'delta') break;
    await expect.poll(() => server.open()).toBe(0);
  });
});
