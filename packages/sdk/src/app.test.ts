import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { AgentPlatformApp, type AppOptions, type Entrypoint, getContext, type Payload } from './index.ts';

const running: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((app) => app.close()));
});

async function start(entrypoint: Entrypoint<Payload>, options: AppOptions<Payload> = {}) {
  const onError = vi.fn();
  const app = new AgentPlatformApp(entrypoint, { onError, ...options });
  const server = await app.run({ port: 0, host: '127.0.0.1', shutdownGraceMs: 200 });
  running.push(server);
  const invoke = (
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<Response> => fetch(`${server.url}/invocations`, { method: 'POST', body, headers, signal: signal ?? null });
  return { app, server, invoke, onError };
}

function deferred<T = void>() {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

describe('results', () => {
  it('sends objects, strings and nothing as JSON', async () => {
    const { invoke } = await start((payload) => payload.give);
    const answers = [];
    for (const give of [{ a: [1] }, 'text "quoted"\n', 7, null]) {
      const response = await invoke(JSON.stringify({ give }));
      expect(response.headers.get('content-type')).toBe('application/json');
      answers.push(await response.json());
    }
    expect(answers).toEqual([{ a: [1] }, 'text "quoted"\n', 7, null]);
    expect(await (await invoke('{}')).text()).toBe('null');
  });

  it.each([
    ['text/plain', 'text/plain; charset=utf-8', 'hé'],
    ['text/plain;q=0.9, application/json', 'application/json', '"hé"'],
    ['*/*', 'application/json', '"hé"'],
  ])('answers a string for Accept %s as %s', async (accept, type, body) => {
    const { invoke } = await start(() => 'hé');
    const response = await invoke('{}', { accept });
    expect([response.headers.get('content-type'), await response.text()]).toEqual([type, body]);
  });

  it('sends bytes untouched', async () => {
    const { invoke } = await start(() => new Uint8Array([0, 255, 10]));
    const response = await invoke('{}');
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([0, 255, 10]);
  });

  it('gives back any JSON object that it is given', async () => {
    const { invoke } = await start((payload) => payload);
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (value) => {
        const sent = JSON.stringify(value);
        expect(await (await invoke(sent)).text()).toBe(sent);
      }),
      { numRuns: 60 },
    );
  });
});

describe('streams', () => {
  const sources: [string, () => unknown][] = [
    [
      'async generator',
      async function* () {
        yield 'a\nb';
        yield { n: 1 };
      },
    ],
    [
      'generator',
      function* () {
        yield 'a\nb';
        yield { n: 1 };
      },
    ],
    ['ReadableStream', () => ReadableStream.from(['a\nb', { n: 1 }])],
    ['Readable', () => Readable.from(['a\nb', { n: 1 }])],
  ];
  it.each(sources)('sends each chunk of a %s as one event', async (_name, source) => {
    const { invoke } = await start(source);
    const response = await invoke('{}', { accept: 'application/json' });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    expect(await response.text()).toBe('data: "a\\nb"\n\ndata: {"n":1}\n\n');
  });

  it('decodes bytes as UTF-8 across chunk borders', async () => {
    const bytes = new TextEncoder().encode('né');
    const { invoke } = await start(() => ReadableStream.from([bytes.slice(0, 2), bytes.slice(2)]));
    expect(await (await invoke('{}')).text()).toBe('data: "n"\n\ndata: "é"\n\n');
  });

  it('delivers a chunk before the next one is made', async () => {
    const seen = deferred();
    const { invoke } = await start(async function* () {
      yield 'first';
      await seen.promise;
      yield 'second';
    });
    const reader = (await invoke('{}')).body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toBe('data: "first"\n\n');
    seen.resolve();
    expect((await reader?.read())?.value).toBe('data: "second"\n\n');
    expect((await reader?.read())?.done).toBe(true);
  });

  it('ends a stream that throws with an error event and reports it', async () => {
    const { invoke, onError } = await start(async function* () {
      yield 1;
      throw new Error('model is out');
    });
    expect(await (await invoke('{}')).text()).toBe('data: 1\n\nevent: error\ndata: {"error":"model is out"}\n\n');
    expect(onError).toHaveBeenCalledOnce();
  });

  it('says in the stream that a chunk cannot be written as JSON, and closes the source', async () => {
    const closed = deferred<string>();
    const { invoke } = await start(async function* () {
      try {
        yield 10n;
      } finally {
        closed.resolve('closed');
      }
    });
    expect(await (await invoke('{}')).text()).toContain(
      'event: error\ndata: {"error":"Do not know how to serialize a BigInt',
    );
    expect(await closed.promise).toBe('closed');
  });

  it('sends half a character, in a chunk or an error, as the escape of it', async () => {
    const { invoke } = await start(async function* () {
      yield 'é \ud83d';
      throw new Error('lost \ud83d');
    });
    expect(await (await invoke('{}')).text()).toBe(
      'data: "é \\ud83d"\n\nevent: error\ndata: {"error":"lost \\ud83d"}\n\n',
    );
  });

  it('answers 500 to a stream that somebody else reads already', async () => {
    const { invoke, onError } = await start(() => {
      const stream = ReadableStream.from(['a']);
      stream.getReader();
      return stream;
    });
    const response = await invoke('{}');
    expect([response.status, await response.json()]).toEqual([500, { error: expect.stringContaining('locked') }]);
    expect(onError).toHaveBeenCalledOnce();
  });

  it('stops asking for chunks while nobody reads them', async () => {
    let made = 0;
    const { server } = await start(async function* () {
      for (; made < 10_000; made++) yield 'x'.repeat(16_384);
    });
    const socket = connect(server.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write('POST /invocations HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}');
    // The source yields without waiting, so it would be through in one turn if nothing held it.
    await vi.waitFor(() => expect(made).toBeGreaterThan(10));
    let before = -1;
    await vi.waitFor(
      () => {
        const now = made;
        const still = now === before;
        before = now;
        expect(still).toBe(true);
      },
      { interval: 100 },
    );
    expect(made).toBeLessThan(5_000);
    socket.destroy();
  });
});

describe('the context', () => {
  it('carries the platform headers, and hides tokens from headers', async () => {
    const { invoke } = await start((_payload, context) => ({
      ...context,
      signal: undefined,
      same: getContext() === context,
    }));
    const response = await invoke('{}', {
      'X-Amzn-Bedrock-AgentCore-Runtime-Session-Id': 's'.repeat(33),
      'X-Amzn-Bedrock-AgentCore-Runtime-Request-Id': 'r-1',
      'X-Amzn-Bedrock-AgentCore-Runtime-User-Id': 'ada',
      'X-Amz-Bedrock-AgentCore-Identity-WAT': 'wat',
      WorkloadAccessToken: 'older',
      OAuth2CallbackUrl: 'https://app/cb',
      'X-Amzn-Bedrock-AgentCore-Runtime-Custom-Tenant': 'blue',
      Authorization: 'Bearer t',
    });
    const context = (await response.json()) as Record<string, Record<string, string>>;
    expect(context).toMatchObject({
      sessionId: 's'.repeat(33),
      requestId: 'r-1',
      userId: 'ada',
      workloadAccessToken: 'wat',
      oauth2CallbackUrl: 'https://app/cb',
      same: true,
      headers: { authorization: 'Bearer t', 'x-amzn-bedrock-agentcore-runtime-custom-tenant': 'blue' },
    });
    expect(Object.keys(context.headers ?? {})).not.toContain('workloadaccesstoken');
    expect(Object.keys(context.headers ?? {})).not.toContain('host');
  });

  it('is found inside a generator and not outside of an invocation', async () => {
    const { invoke } = await start(async function* () {
      await Promise.resolve();
      yield getContext()?.sessionId ?? 'none';
    });
    const id = 'q'.repeat(40);
    expect(await (await invoke('{}', { 'x-amzn-bedrock-agentcore-runtime-session-id': id })).text()).toContain(id);
    expect(await (await invoke('{}')).text()).toContain('none');
    expect(getContext()).toBeUndefined();
  });

  it('aborts when the caller goes away, closes the generator and reports no failure', async () => {
    const aborted = deferred<unknown>();
    const closed = deferred<string>();
    const { invoke, onError } = await start(async function* (_payload, context) {
      context.signal.addEventListener('abort', () => aborted.resolve(context.signal.reason));
      try {
        for (;;) {
          yield 'tick';
          await sleep(5);
        }
      } finally {
        closed.resolve('closed');
      }
    });
    const caller = new AbortController();
    const reader = (await invoke('{}', {}, caller.signal)).body?.getReader();
    await reader?.read();
    caller.abort();
    await expect(reader?.read()).rejects.toThrow();
    expect(await aborted.promise).toEqual(new Error('The caller went away.'));
    expect(await closed.promise).toBe('closed');
    expect(onError).not.toHaveBeenCalled();
  });

  it('aborts a handler that has not answered yet', async () => {
    const entered = deferred();
    const aborted = deferred<string>();
    const { invoke } = await start(async (_payload, { signal }) => {
      entered.resolve();
      await once(signal, 'abort');
      aborted.resolve('aborted');
    });
    const caller = new AbortController();
    const call = invoke('{}', {}, caller.signal).catch(() => 'gone');
    await entered.promise;
    caller.abort();
    expect(await call).toBe('gone');
    expect(await aborted.promise).toBe('aborted');
  });
});

describe('bad requests', () => {
  it.each([
    ['{"prompt":', 400, 'not valid JSON'],
    ['', 400, 'empty'],
    ['[1]', 400, 'must be a JSON object'],
    ['null', 400, 'must be a JSON object'],
    ['"hi"', 400, 'must be a JSON object'],
    [new Uint8Array([0x7b, 0xff, 0x7d]), 400, 'not valid UTF-8'],
  ])('refuses %j', async (body, status, sentence) => {
    const { invoke, onError } = await start(() => 'never');
    const response = await invoke(body, { 'content-type': 'application/json' });
    expect(response.status).toBe(status);
    expect((await response.json()) as unknown).toEqual({ error: expect.stringContaining(sentence) });
    expect(onError).not.toHaveBeenCalled();
  });

  it('accepts JSON of any content type, and text as text where parse takes it', async () => {
    const { invoke } = await start((payload) => payload, { parse: (value) => ({ got: value }) });
    expect(await (await invoke('{"a":1}', { 'content-type': 'application/octet-stream' })).json()).toEqual({
      got: { a: 1 },
    });
    expect(await (await invoke('plain', { 'content-type': 'text/plain' })).json()).toEqual({ got: 'plain' });
  });

  it('answers what parse throws with 400', async () => {
    const { invoke } = await start(() => 'never', {
      parse: () => {
        throw new TypeError('prompt is missing');
      },
    });
    const response = await invoke('{}');
    expect([response.status, await response.json()]).toEqual([400, { error: 'prompt is missing' }]);
  });

  it('refuses a payload over the limit, declared or not, and goes on serving', async () => {
    const { invoke, server } = await start((payload) => Object.keys(payload).length, { maxPayloadBytes: 64 });
    expect((await invoke(`{"a":"${'x'.repeat(56)}"}`)).status).toBe(200);
    const declared = await invoke(`{"a":"${'x'.repeat(57)}"}`);
    expect([declared.status, await declared.json()]).toEqual([413, { error: expect.stringContaining('64 bytes') }]);
    const status = await new Promise((resolve, reject) => {
      const call = httpRequest(`${server.url}/invocations`, { method: 'POST' }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      call.on('error', reject);
      for (let i = 0; i < 20; i++) call.write('x'.repeat(100));
      call.end();
    });
    expect(status).toBe(413);
    expect((await invoke('{}')).status).toBe(200);
  });

  it.each([
    ['GET', '/invocations', 405, 'POST'],
    ['POST', '/ping', 405, 'GET, HEAD'],
    ['GET', '/other', 404, null],
  ])('answers %s %s with %i', async (method, path, status, allowed) => {
    const { server } = await start(() => 'never');
    const response = await fetch(server.url + path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([status, allowed]);
    expect(await response.json()).toEqual({ error: expect.any(String) });
  });
});

describe('failures of the handler', () => {
  it('answers 500 with the message and reports the error', async () => {
    const { invoke, onError } = await start(() => {
      throw new Error('no such model');
    });
    const response = await invoke('{}');
    expect([response.status, await response.json()]).toEqual([500, { error: 'no such model' }]);
    expect(onError.mock.calls[0]?.[1]).toEqual(new Error('no such model'));
  });

  it.each([
    ['nothing that has a text', Object.create(null), 'The agent threw something that has no text.'],
    ['a number for a message', Object.assign(new Error(), { message: 7n }), '7'],
    ['half a character', new Error('no \ud83d'), 'no \ud83d'],
  ])('answers 500 and goes on serving after an error with %s', async (_name, error, text) => {
    const broken = async function* () {
      yield 1;
      throw error;
    };
    const { invoke } = await start((payload) => {
      if (payload.stream) return broken();
      throw error;
    });
    const response = await invoke('{}');
    expect([response.status, await response.json()]).toEqual([500, { error: text }]);
    expect(await (await invoke('{"stream":true}')).text()).toBe(
      `data: 1\n\nevent: error\ndata: ${JSON.stringify({ error: text })}\n\n`,
    );
  });

  it('answers 500 to a result that JSON cannot hold', async () => {
    const { invoke } = await start(() => ({ big: 1n }));
    expect((await invoke('{}')).status).toBe(500);
  });

  it('keeps one failing call from its neighbours', async () => {
    const release = deferred();
    const { invoke } = await start(async (payload) => {
      if (payload.fail) throw new Error('mine');
      await release.promise;
      return 'fine';
    });
    const slow = invoke('{}');
    expect((await invoke('{"fail":true}')).status).toBe(500);
    release.resolve();
    expect(await (await slow).json()).toBe('fine');
  });
});

describe('entrypoints', () => {
  it('can be set later, and must be set', async () => {
    await expect(new AgentPlatformApp().run({ port: 0 })).rejects.toThrow('No entrypoint');
    const app = new AgentPlatformApp();
    const handler = app.entrypoint(() => 'later');
    expect(handler()).toBe('later');
    const server = await app.run({ port: 0, host: '127.0.0.1' });
    running.push(server);
    expect(await (await fetch(`${server.url}/invocations`, { method: 'POST', body: '{}' })).json()).toBe('later');
  });

  it('names a port that is taken', async () => {
    const { server } = await start(() => 1);
    await expect(new AgentPlatformApp(() => 1).run({ port: server.port, host: '127.0.0.1' })).rejects.toThrow(
      `Port ${server.port} is in use`,
    );
  });
});
