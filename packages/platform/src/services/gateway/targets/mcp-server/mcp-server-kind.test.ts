import { inputRequired } from '@modelcontextprotocol/server';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../../kernel/clock.ts';
import { BackendError } from '../../outbound/backend-error.ts';
import { BackendSigning } from '../../outbound/backend-signing.ts';
import { ToolError } from '../../tool-error.ts';
import { type Backend, startBackend, startModernBackend, startSessionBackend } from './testing/backends.ts';
import { bearer, gateway, type KindLab, mcpTarget, openKindLab } from './testing/kind-lab.ts';
import { modernServer, type Stock, sessionServer } from './testing/stock.ts';

let lab: KindLab;
const backends: Backend[] = [];

beforeEach(() => {
  lab = openKindLab();
});

afterEach(async () => {
  await lab.close();
  await Promise.all(backends.splice(0).map((one) => one.close()));
});

const open = async <One extends Backend>(starting: Promise<One>): Promise<One> => {
  const backend = await starting;
  backends.push(backend);
  return backend;
};

const object = { type: 'object' };

const eras = {
  'of 2026-07-28': (stock: Stock) => open(startModernBackend(() => modernServer(stock))),
  'with sessions': (stock: Stock) => open(startSessionBackend(() => sessionServer(stock))),
} as const;

describe.each(Object.entries(eras))('a server %s', (_name, start) => {
  it('is asked for all that it offers, page by page; names and hints are its own', async () => {
    const { url } = await start({
      tools: [
        {
          name: 'Read.me-1',
          title: 'Read',
          description: 'Reads.',
          inputSchema: object,
          annotations: { readOnlyHint: true },
        },
        { name: 'drop', inputSchema: object, outputSchema: object },
        { name: 'put', inputSchema: object, annotations: { destructiveHint: false, idempotentHint: true } },
      ],
      prompts: [{ name: 'review code', description: 'Reviews.', arguments: [{ name: 'file', required: true }] }],
      resources: [{ uri: 'file:///a.txt', name: 'a', mimeType: 'text/plain' }],
      templates: [{ uriTemplate: 'file:///{path}', name: 'any file' }],
    });
    expect(await lab.makeTools(mcpTarget(url))).toEqual({
      tools: [
        {
          ...{ name: 'Read.me-1', title: 'Read', description: 'Reads.', inputSchema: object },
          hints: { readOnly: true, destructive: false, idempotent: true },
        },
        {
          ...{ name: 'drop', description: '', inputSchema: object, outputSchema: object },
          hints: { readOnly: false, destructive: true, idempotent: false },
        },
        {
          ...{ name: 'put', description: '', inputSchema: object },
          hints: { readOnly: false, destructive: false, idempotent: true },
        },
      ],
      prompts: [{ name: 'review code', description: 'Reviews.', arguments: [{ name: 'file', required: true }] }],
      resources: [{ uri: 'file:///a.txt', name: 'a', mimeType: 'text/plain' }],
      templates: [{ uriTemplate: 'file:///{path}', name: 'any file' }],
      problems: [],
    });
  });

  it('gives results of every kind as they are', async () => {
    const result = {
      content: [
        { type: 'text', text: 'words' },
        { type: 'image', data: 'aGk=', mimeType: 'image/png' },
        { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
        { type: 'resource_link', uri: 'file:///a', name: 'a' },
        { type: 'resource', resource: { uri: 'file:///b', text: 'b' } },
      ],
      structuredContent: { rows: [{ id: 1 }] },
    };
    const { url } = await start({ run: ({ name, arguments: args }) => (name === 'all' && args.n === 7 ? result : {}) });
    expect(await lab.call(mcpTarget(url), 'all', { n: 7 })).toMatchObject(result);
  });

  it('answers prompts and resources', async () => {
    const { url } = await start({});
    const target = mcpTarget(url);
    const prompt = await lab.kind.getPrompt(lab.request(target), { name: 'p', arguments: { a: 'b' } });
    expect(prompt).toMatchObject({ messages: [{ content: { text: 'prompt p' } }] });
    const resource = await lab.kind.readResource(lab.request(target), 'file:///x');
    expect(resource).toMatchObject({ contents: [{ uri: 'file:///x', text: 'text of file:///x' }] });
  });

  it('tells the caller of progress who asked for it', async () => {
    const told: number[] = [];
    const { url } = await start({
      async run({ progress }) {
        await progress(1);
        await progress(2);
        return { content: [] };
      },
    });
    await lab.call(mcpTarget(url), 'slow', {}, { progress: ({ progress }) => void told.push(progress) });
    expect(told).toEqual([1, 2]);
    // Nobody is told who did not.
    await lab.call(mcpTarget(url), 'slow');
    expect(told).toEqual([1, 2]);
  });

  it('is told when the caller cancels', async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const { url } = await start({
      run: ({ signal }) =>
        new Promise((resolve) => {
          begun.resolve(signal);
          signal.addEventListener('abort', () => resolve({ content: [] }), { once: true });
        }),
    });
    const cancel = new AbortController();
    const call = lab.call(mcpTarget(url), 'wait', {}, { signal: cancel.signal });
    const atBackend = await begun.promise;
    expect(atBackend.aborted).toBe(false);
    cancel.abort(new Error('no longer'));
    await expect(call).rejects.toThrow('no longer');
    await vi.waitFor(() => expect(atBackend.aborted).toBe(true), 10_000);
  });

  it('is shaken hands with once; a warm call is one request', async () => {
    const backend = await start({});
    const target = mcpTarget(backend.url);
    await lab.call(target, 'a');
    const before = backend.requests.length;
    expect(before).toBeGreaterThan(1);
    await lab.call(target, 'a');
    await lab.call(target, 'a');
    expect(backend.requests.length).toBe(before + 2);
  });

  it('gets the credential and the headers that the target passes on, and no others', async () => {
    const backend = await start({});
    lab.show(bearer('a-token-4711'));
    const target = mcpTarget(backend.url, { headers: ['X-Tenant', 'Authorization'] });
    await lab.call(
      target,
      'a',
      {},
      { headers: { 'x-tenant': 'blue', 'x-other': 'no', authorization: 'Bearer inbound' } },
    );
    for (const { headers } of backend.requests) {
      expect(headers).toMatchObject({ authorization: 'Bearer a-token-4711', 'x-tenant': 'blue' });
      expect(headers).not.toHaveProperty('x-other');
    }
  });
});

it('arguments that do not fit the schema do not leave', async () => {
  const backend = await open(startModernBackend(() => modernServer({})));
  const inputSchema = { type: 'object' as const, required: ['n'], properties: { n: { type: 'integer' } } };
  const hints = { readOnly: true, destructive: false, idempotent: true };
  const call = (args: Record<string, unknown>) =>
    lab.kind.call({
      ...lab.request(mcpTarget(backend.url)),
      ...{ tool: { name: 'a', description: '', inputSchema, hints }, arguments: args },
    });
  await expect(call({ n: 'seven' })).rejects.toThrow(/do not fit the tool's schema, so nothing was sent/);
  expect(backend.requests).toEqual([]);
  await call({ n: 7 });
  expect(backend.requests.length).toBeGreaterThan(0);
});

describe('a server with sessions', () => {
  const echo: Stock = { run: () => ({ content: [] }) };

  it('has one for each credential, and for each set of headers that are passed on', async () => {
    const { url, sessions } = await open(startSessionBackend(() => sessionServer(echo)));
    const target = mcpTarget(url, { headers: ['x-tenant'] });
    const call = (tenant: string) => lab.call(target, 'a', {}, { headers: { 'x-tenant': tenant } });
    lab.show(bearer('token-of-ada'));
    await call('blue');
    await call('blue');
    expect(sessions.size).toBe(1);
    await call('red');
    expect(sessions.size).toBe(2);
    lab.show(bearer('token-of-bob'));
    await call('blue');
    expect(sessions.size).toBe(3);
    await call('blue');
    expect(sessions.size).toBe(3);
  });

  it('has one for each, too, where callers come at the same moment', async () => {
    const backend = await open(startSessionBackend(() => sessionServer(echo)));
    const target = mcpTarget(backend.url, { headers: ['x-tenant'] });
    const tenants = ['blue', 'red', 'blue', 'green'];
    await Promise.all(tenants.map((tenant) => lab.call(target, 'a', {}, { headers: { 'x-tenant': tenant } })));
    const users = new Map<unknown, Set<unknown>>();
    for (const { headers } of backend.requests) {
      const session = headers['mcp-session-id'];
      if (session !== undefined) users.set(session, (users.get(session) ?? new Set()).add(headers['x-tenant']));
    }
    expect([...users.values()].map(({ size }) => size)).toEqual([1, 1, 1]);
  });

  it('that has lost them is shaken hands with again, and the call is made', async () => {
    const backend = await open(startSessionBackend(() => sessionServer(echo)));
    const target = mcpTarget(backend.url);
    await lab.call(target, 'a');
    backend.sessions.clear();
    expect(await lab.call(target, 'a')).toEqual({ content: [] });
    expect(backend.sessions.size).toBe(1);
  });
});

describe('a server that asks for input', () => {
  const asks: Stock = {
    run: ({ input }) =>
      input?.inputResponses
        ? { content: [{ type: 'text', text: JSON.stringify([input.inputResponses, input.requestState()]) }] }
        : inputRequired({
            inputRequests: {
              name: inputRequired.elicit({
                message: 'Your name?',
                requestedSchema: { type: 'object', properties: {} },
              }),
            },
            requestState: 'state-1',
          }),
  };
  const capabilities = { elicitation: { form: {} } };

  it('has it passed on to a client that can be asked, and gets what that one says', async () => {
    const { url } = await open(startModernBackend(() => modernServer(asks)));
    const target = mcpTarget(url);
    const none = { responses: undefined, state: undefined };
    expect(await lab.call(target, 'ask', {}, { input: { capabilities, ...none } })).toMatchObject({
      ...{ resultType: 'input_required', requestState: 'state-1' },
      inputRequests: { name: { method: 'elicitation/create', params: { message: 'Your name?' } } },
    });
    const said = { name: { action: 'accept', content: { name: 'Ada' } } };
    const answer = await lab.call(target, 'ask', {}, { input: { capabilities, responses: said, state: 'state-1' } });
    expect(answer).toMatchObject({ content: [{ text: JSON.stringify([said, 'state-1']) }] });
  });

  it('is not passed on to a client that cannot be asked, which is told so', async () => {
    const { url } = await open(startModernBackend(() => modernServer(asks)));
    const call = lab.call(mcpTarget(url), 'ask');
    await expect(call).rejects.toThrow(/capabilit|asks for input/i);
  });

  it('of the time before is told that nobody can be asked', async () => {
    const { url } = await open(
      startSessionBackend(() => {
        const server = sessionServer({
          run: () => server.elicitInput({ message: 'Your name?', requestedSchema: { type: 'object', properties: {} } }),
        });
        return server;
      }),
    );
    const none = { responses: undefined, state: undefined };
    const call = lab.call(mcpTarget(url), 'ask', {}, { input: { capabilities, ...none } });
    await expect(call).rejects.toThrow(/elicitation/);
  });
});

describe('a static schema', () => {
  const tool = { name: 'a', description: 'A.', inputSchema: object };

  it.each([{ tools: [tool] }, [tool]])('makes the tools, and nobody is asked: %j', async (schema) => {
    const target = mcpTarget('http://127.0.0.1:9/mcp', { mcpToolSchema: { inlinePayload: JSON.stringify(schema) } });
    expect((await lab.makeTools(target)).tools).toMatchObject([{ name: 'a', description: 'A.' }]);
  });

  it.each(['{', '{"tools": 1}', '[]', '[{"name": "no letters"}]'])(
    'that is none makes none, and says so: %s',
    async (text) => {
      const made = await lab.makeTools(mcpTarget('http://127.0.0.1:9/mcp', { mcpToolSchema: { inlinePayload: text } }));
      expect(made.tools).toEqual([]);
      expect(made.problems).toContainEqual({ severity: 'error', message: expect.stringContaining('mcpToolSchema') });
    },
  );
});

describe('what is wrong', () => {
  it('is said of a server that is not there, and whose fault it is', async () => {
    const gone = await startBackend((_req, res) => res.end());
    await gone.close();
    await expect(lab.makeTools(mcpTarget(gone.url))).rejects.toThrow(/cannot be used.*127\.0\.0\.1/);
  });

  it.each([401, 403])('is said of a credential that is refused with %i', async (status) => {
    const { url } = await open(startBackend((_req, res) => res.writeHead(status).end('who?')));
    const making = lab.makeTools(mcpTarget(url));
    await expect(making).rejects.toThrow(ToolError);
    await expect(making).rejects.toThrow(/refuses the target's credential with the status/);
  });

  it('is said of a server that fails', async () => {
    const { url } = await open(startBackend((_req, res) => res.writeHead(500).end('disk full')));
    const making = lab.makeTools(mcpTarget(url));
    await expect(making).rejects.toThrow(BackendError);
    await expect(making).rejects.toThrow(/status 500.*disk full/);
  });
});

describe('a target that is called as its caller', () => {
  const none = () => {
    throw new Error('nobody is called here');
  };
  const signing = new BackendSigning({
    ...{ roles: { issueRoleCredentials: none, issueForwarded: none }, clock: systemClock, region: 'us-east-1' },
    ...{ ownAddresses: () => ['https://p.example/platform'], roleCredentials: undefined },
  });
  const check = async (endpoint: string, service = 'bedrock-agentcore'): Promise<void> => {
    const { kind, close } = openKindLab({ signing });
    const credentialProvider = { iamCredentialProvider: { service } };
    const definition = {
      ...mcpTarget(endpoint).live,
      credentialProviderConfigurations: [
        { credentialProviderType: 'CALLER_IAM_CREDENTIALS' as const, credentialProvider },
      ],
    };
    await kind.check(definition, gateway).finally(close);
  };
  const runtime = 'https://p.example/platform/runtimes/arn/invocations';

  it('may be a runtime of the platform', async () => {
    await check(runtime);
    await check(`${runtime}?qualifier=one`);
  });

  it.each([
    ['https://p.example/platform/bucket/runtimes/arn/invocations'],
    ['https://p.example/runtimes/arn/invocations'],
    ['https://p.example/platform/runtimes/arn/invocations/more'],
    [`${runtime}?uploads`],
    [`${runtime}?qualifier=one&uploads`],
    [runtime, 's3'],
  ])('is nothing else: %s %s', async (endpoint, service?: string) => {
    await expect(check(endpoint, service)).rejects.toThrow(/only where it is a runtime of this platform/);
  });
});
