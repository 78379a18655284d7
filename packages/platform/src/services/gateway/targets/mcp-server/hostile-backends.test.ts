import type { RequestListener, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../../../kernel/fake-clock.ts';
import { BackendError } from '../../outbound/backend-error.ts';
import { type Backend, startBackend, startModernBackend, startSessionBackend } from './testing/backends.ts';
import { bearer, type KindLab, mcpTarget, openKindLab } from './testing/kind-lab.ts';
import { modernServer, sessionServer } from './testing/stock.ts';

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

interface Message {
  id?: number;
  method: string;
  params?: Record<string, unknown>;
}

/** A server of the time before that is decent until a request of this method comes. */
function turning(method: string, turn: (res: ServerResponse, message: Message) => void): Promise<Backend> {
  const listener: RequestListener = async (req, res) => {
    const parts: Buffer[] = [];
    for await (const part of req) parts.push(part);
    if (req.method !== 'POST') return void res.writeHead(405).end();
    const message = JSON.parse(Buffer.concat(parts).toString()) as Message;
    if (message.method === method) return turn(res, message);
    if (message.id === undefined) return void res.writeHead(202).end();
    if (message.method === 'initialize') {
      const info = {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'h', version: '1' },
      };
      return json(res, { jsonrpc: '2.0', id: message.id, result: info });
    }
    json(res, { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'no such method' } });
  };
  return open(startBackend(listener));
}

function json(res: ServerResponse, value: unknown): void {
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

describe('an answer without an end', () => {
  it.each(['application/json', 'text/event-stream'])(
    'of 10 GB of %s is cut at its bound, and the server is left',
    async (type) => {
      const chunk = Buffer.alloc(64 * 1024, type === 'application/json' ? '[' : 'data: x\n\n');
      let sent = 0;
      const left = Promise.withResolvers<void>();
      const { url } = await turning('tools/call', (res) => {
        res.writeHead(200, { 'content-type': type });
        res.once('close', () => left.resolve());
        const pump = (): void => {
          while (!res.destroyed && sent < 10e9) {
            sent += chunk.length;
            if (!res.write(chunk)) return void res.once('drain', pump);
          }
        };
        pump();
      });
      const bound =
        type === 'application/json' ? /more than \d+ bytes|the answer is larger|too large/i : /more than 40000 lines/;
      await expect(lab.call(mcpTarget(url), 'a')).rejects.toMatchObject({
        code: 'TOO_LARGE',
        message: expect.stringMatching(bound),
      });
      await left.promise;
      expect(sent).toBeLessThan(100e6);
    },
  );

  it('in time ends at the time limit, and the server is told and left', async () => {
    const clock = new FakeClock();
    const slow = openKindLab({ clock });
    const begun = Promise.withResolvers<ServerResponse>();
    const { url } = await turning('tools/call', (res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write(': here\n\n');
      begun.resolve(res);
    });
    const call = slow.call(mcpTarget(url), 'a');
    const refused = expect(call).rejects.toThrow('The server did not answer within 300 s.');
    const res = await begun.promise;
    await clock.advance(300_000);
    await refused;
    expect(res.destroyed).toBe(false);
    await clock.advance(5_000);
    await vi.waitFor(() => expect(res.destroyed).toBe(true), 10_000);
    await slow.close();
  });

  it('behind the result is not waited for, and the server is left', async () => {
    const begun = Promise.withResolvers<ServerResponse>();
    const { url } = await turning('tools/call', (res, { id }) => {
      const result = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } });
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${result}\n\n`);
      begun.resolve(res);
    });
    expect(await lab.call(mcpTarget(url), 'a')).toEqual({ content: [] });
    const res = await begun.promise;
    await vi.waitFor(() => expect(res.destroyed).toBe(true), 10_000);
  });

  it('of the handshake ends at its own', async () => {
    const clock = new FakeClock();
    const slow = openKindLab({ clock });
    const begun = Promise.withResolvers<void>();
    const { url } = await open(startBackend(() => begun.resolve()));
    const call = slow.call(mcpTarget(url), 'a');
    const refused = expect(call).rejects.toThrow('The server did not answer the handshake within 20 s.');
    await begun.promise;
    await clock.advance(20_000);
    await refused;
    await slow.close();
  });
});

describe('an answer that is none', () => {
  const html = (res: ServerResponse): void => void res.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
  const garbage: [string, (res: ServerResponse, message: Message) => void][] = [
    ['a page', html],
    ['half a JSON', (res) => void res.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":')],
    ['an answer to another request', (res) => json(res, { jsonrpc: '2.0', id: 4711, result: { content: [] } })],
    ['a list of nothing', (res) => json(res, [])],
    ['events that end', (res) => void res.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {}\n\n')],
    [
      'a torn stream',
      (res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"json');
        setImmediate(() => res.destroy());
      },
    ],
    ['a result of another shape', (res, { id }) => json(res, { jsonrpc: '2.0', id, result: { content: 'words' } })],
    ['202', (res) => void res.writeHead(202).end()],
    ['a status that there is not', (res) => void res.writeHead(999).end()],
  ];

  it.each(garbage)('is said to be none at once: %s', async (_name, turn) => {
    const { url } = await turning('tools/call', turn);
    const failed = await lab.call(mcpTarget(url), 'a').catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(Error);
    expect((failed as Error).message).toMatch(
      /does not answer as MCP has it|without a result|cannot be used|which HTTP does not know/,
    );
  });

  it('does not become an endless round of resumed streams', async () => {
    let streams = 0;
    const events = (res: ServerResponse): void => {
      streams++;
      res.writeHead(200, { 'content-type': 'text/event-stream' }).end(`id: ${streams}\nretry: 0\ndata:\n\n`);
    };
    const { url } = await open(
      startBackend(async (req, res) => {
        if (req.method === 'GET') return events(res);
        const parts: Buffer[] = [];
        for await (const part of req) parts.push(part);
        const message = JSON.parse(Buffer.concat(parts).toString()) as Message;
        if (message.method === 'tools/call') return events(res);
        if (message.method !== 'initialize') return void res.writeHead(message.id === undefined ? 202 : 400).end();
        const info = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'h', version: '1' } };
        json(res, { jsonrpc: '2.0', id: message.id, result: info });
      }),
    );
    await expect(lab.call(mcpTarget(url), 'a')).rejects.toThrow(/more than 40 requests/);
    expect(streams).toBeLessThanOrEqual(40);
  });
});

it('a server that asks for input of who said that there is none gets no answer, and the caller a reason', async () => {
  const { url } = await open(
    startBackend(async (req, res) => {
      const parts: Buffer[] = [];
      for await (const part of req) parts.push(part);
      const { id, method } = JSON.parse(Buffer.concat(parts).toString()) as Message;
      const discover = {
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {} },
        ttlMs: 0,
        cacheScope: 'private',
      };
      const result =
        method === 'server/discover'
          ? { resultType: 'complete', ...discover }
          : { resultType: 'input_required', requestState: 'more' };
      json(res, { jsonrpc: '2.0', id, result });
    }),
  );
  await expect(lab.call(mcpTarget(url), 'a')).rejects.toThrow(/asks for input before it answers/);
});

describe('lists', () => {
  const listing = (answer: (cursor: unknown) => object): Promise<Backend> =>
    turning('tools/list', (res, { id, params }) => json(res, { jsonrpc: '2.0', id, result: answer(params?.cursor) }));

  it('of 100,000 tools give the first 5,000, and say so', async () => {
    const tools = Array.from({ length: 100_000 }, (_, i) => ({ name: `t${i}`, inputSchema: object }));
    const { url } = await listing(() => ({ tools }));
    const made = await lab.makeTools(mcpTarget(url));
    expect(made.tools).toHaveLength(5_000);
    expect(made.problems).toContainEqual({
      severity: 'error',
      message: expect.stringContaining('more than 5000 entries'),
    });
  });

  it('without an end are read as far as their bound of pages', async () => {
    let pages = 0;
    const { url } = await listing(() => ({
      tools: [{ name: `t${++pages}`, inputSchema: object }],
      nextCursor: `${pages}`,
    }));
    const made = await lab.makeTools(mcpTarget(url));
    expect(made.tools).toHaveLength(200);
    expect(made.problems).toContainEqual({
      severity: 'error',
      message: expect.stringContaining('more than 200 pages'),
    });
  });

  it('that lead back are read once', async () => {
    const { url } = await listing(() => ({ tools: [{ name: 'a', inputSchema: object }], nextCursor: 'again' }));
    const made = await lab.makeTools(mcpTarget(url));
    expect(made.tools).toHaveLength(1);
    expect(made.problems).toContainEqual({ severity: 'error', message: expect.stringContaining('lead back') });
  });

  it('of more bytes than their bound are refused', async () => {
    const description = 'x'.repeat(200_000);
    const { url } = await listing((cursor) => ({
      tools: Array.from({ length: 20 }, (_, i) => ({ name: `t${cursor ?? 0}-${i}`, description, inputSchema: object })),
      nextCursor: `${Number(cursor ?? 0) + 1}`,
    }));
    await expect(lab.makeTools(mcpTarget(url))).rejects.toMatchObject({ code: 'TOO_LARGE' });
  });

  it('that a client waits for have a bound of fewer bytes', async () => {
    const description = 'x'.repeat(30_000);
    const tools = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ name: `t${i}`, description, inputSchema: object }));
    const ask = async (count: number) => {
      const { url } = await listing(() => ({ tools: tools(count) }));
      return lab.kind.ask(lab.request(mcpTarget(url, { listingMode: 'DYNAMIC' })));
    };
    expect((await ask(130)).tools).toHaveLength(130);
    await expect(ask(150)).rejects.toMatchObject({ code: 'TOO_LARGE' });
  });

  const deep = JSON.parse(`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`);
  it.each([
    ['a Cyrillic letter', { name: 'pаy' }, 'p\\u0430y'],
    ['a right-to-left mark', { name: 'gpj\u202eexe' }, '\\u202e'],
    ['a line break', { name: 'a\nb' }, 'a\\nb'],
    ['a path', { name: '../etc' }, '../etc'],
    ['nothing', { name: '' }, '""'],
    ['too long', { name: 'x'.repeat(129) }, 'xxx'],
    ['no text', { name: 7 }, 'number 1'],
    ['U+0000 in its description', { name: 'zero', description: 'a\0b' }, 'zero'],
    ['half a surrogate pair', { name: 'half', description: '\ud800' }, 'half'],
    ['a schema that is too deep', { name: 'deep', inputSchema: { type: 'object', properties: deep } }, 'deep'],
    ['a schema of no object', { name: 'text', inputSchema: { type: 'string' } }, 'text'],
    ['a megabyte', { name: 'big', description: 'x'.repeat(1e6) }, 'big'],
  ])('leave out what has a trick, and name it: %s', async (_name, tool, named) => {
    const { url } = await listing(() => ({
      tools: [
        { inputSchema: object, ...tool },
        { name: 'good', inputSchema: object },
      ],
    }));
    const made = await lab.makeTools(mcpTarget(url));
    expect(made.tools.map(({ name }) => name)).toEqual(['good']);
    expect(made.problems).toHaveLength(1);
    expect(made.problems[0]?.message).toContain(named);
    expect(made.problems[0]?.message).toMatch(/^[\x20-\x7e…]*$/);
  });

  it('keep the first of two tools of one name', async () => {
    const { url } = await listing(() => ({
      tools: ['one', 'two'].map((description) => ({ name: 'same', description, inputSchema: object })),
    }));
    const made = await lab.makeTools(mcpTarget(url));
    expect(made.tools).toMatchObject([{ name: 'same', description: 'one' }]);
    expect(made.problems).toMatchObject([{ message: expect.stringContaining('has the name of another') }]);
  });
});

describe('a redirect', () => {
  const redirecting = (location: string, status = 307): Promise<Backend> =>
    open(startBackend((_req, res) => res.writeHead(status, { location }).end()));

  it('to another server is not followed, so a private address is not called', async () => {
    const inner = await open(startModernBackend(() => modernServer({})));
    const { url } = await redirecting(inner.url);
    await expect(lab.call(mcpTarget(url), 'a')).rejects.toThrow(/redirect/i);
    expect(inner.requests).toEqual([]);
  });

  it('is not followed with a credential, not even to the same server', async () => {
    const moved = await open(
      startBackend((req, res) => (req.url === '/mcp' ? res.writeHead(308, { location: '/there' }).end() : res.end())),
    );
    lab.show(bearer('a-token-4711'));
    await expect(lab.call(mcpTarget(moved.url), 'a')).rejects.toThrow(/redirects to \/there\. A credential/);
    expect(moved.requests.map(({ url }) => url)).toEqual(['/mcp']);
    // Without one it is.
    lab.show({ headers: {}, query: [], secrets: [] });
    await lab.call(mcpTarget(moved.url), 'a').catch(() => undefined);
    expect(moved.requests.map(({ url }) => url)).toContain('/there');
  });
});

it('a private address is not called', async () => {
  const guarded = openKindLab({ allowPrivate: [] });
  const backend = await open(startModernBackend(() => modernServer({})));
  await expect(guarded.call(mcpTarget(backend.url), 'a')).rejects.toMatchObject({ code: 'ADDRESS_REFUSED' });
  expect(backend.requests).toEqual([]);
  await guarded.close();
});

describe('a credential that is echoed', () => {
  const secret = 'sk-a-secret-0815';
  beforeEach(() => lab.show(bearer(secret)));

  it('is masked in results and in progress, in every member', async () => {
    const { url } = await open(
      startSessionBackend(() =>
        sessionServer({
          run: () => ({
            content: [{ type: 'text', text: `you sent Bearer ${secret}` }],
            structuredContent: { [secret]: [Buffer.from(secret).toString('base64')] },
            _meta: { seen: encodeURIComponent(secret) },
          }),
        }),
      ),
    );
    const result = await lab.call(mcpTarget(url), 'a');
    expect(JSON.stringify(result)).toContain('you sent Bearer [masked]');
    expect(JSON.stringify(result)).not.toContain(secret);
    expect(JSON.stringify(result)).not.toContain(Buffer.from(secret).toString('base64').replace(/=+$/, ''));
  });

  it.each<[string, (res: ServerResponse, message: Message) => void]>([
    [
      'the error of a call',
      (res, { id }) => json(res, { jsonrpc: '2.0', id, error: { code: -32000, message: secret } }),
    ],
    ['the page of an error', (res) => void res.writeHead(500).end(`no ${secret}`)],
    ['a refusal', (res) => void res.writeHead(401).end(`bad ${secret}`)],
    ['a redirect', (res) => void res.writeHead(302, { location: `/login?t=${secret}` }).end()],
    ['what is no result', (res, { id }) => json(res, { jsonrpc: '2.0', id, result: { content: [{ type: secret }] } })],
    ['the type of the answer', (res) => void res.writeHead(200, { 'content-type': `text/${secret}` }).end()],
  ])('is masked in %s', async (_name, turn) => {
    const { url } = await turning('tools/call', turn);
    const failed = await lab.call(mcpTarget(url), 'a').catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(Error);
    const { message, cause, stack } = failed as Error;
    expect(`${message} ${String(cause)} ${stack}`).not.toContain(secret);
  });
});

describe('one bad server', () => {
  it('that is away is left alone after five failures, and another target is not', async () => {
    const away = await startBackend((_req, res) => res.end());
    await away.close();
    const good = await open(startModernBackend(() => modernServer({})));
    const target = mcpTarget(away.url);
    const call = (): Promise<unknown> => lab.call(target, 'a').catch((error: Error) => error.message);
    for (let i = 0; i < 5; i++) expect(await call()).toMatch(/cannot be used/);
    expect(await call()).toMatch(/failed 5 times in a row and is left alone/);
    expect(await lab.call(mcpTarget(good.url), 'a')).toMatchObject({ content: [] });
  });

  it('that is slow holds 64 calls and no more', async () => {
    const waiting: ServerResponse[] = [];
    const backend = await turning('tools/call', (res) => void waiting.push(res));
    const target = mcpTarget(backend.url);
    const leave = new AbortController();
    const calls = Array.from({ length: 64 }, () =>
      lab.call(target, 'a', {}, { signal: leave.signal }).catch(() => 'left'),
    );
    await vi.waitFor(() => expect(waiting).toHaveLength(64), 20_000);
    await expect(lab.call(target, 'a')).rejects.toThrow(/has 64 calls under way/);
    const good = await open(startModernBackend(() => modernServer({})));
    expect(await lab.call(mcpTarget(good.url), 'a')).toMatchObject({ content: [] });
    leave.abort();
    expect(await Promise.all(calls)).toEqual(Array(64).fill('left'));
  });

  it('is told from a refusal: an error of MCP is no failure of the server', async () => {
    const backend = await turning('tools/call', (res, { id }) =>
      json(res, { jsonrpc: '2.0', id, error: { code: -32602, message: 'no such tool' } }),
    );
    const target = mcpTarget(backend.url);
    for (let i = 0; i < 8; i++) {
      const failed = await lab.call(target, 'a').catch((error: unknown) => error);
      expect(failed).toMatchObject({ code: -32602, message: 'no such tool' });
      expect(failed).not.toBeInstanceOf(BackendError);
    }
  });
});
