import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { JsonObjectSchema } from '../tools/index.ts';
import type { HttpTool } from './http-tool.ts';
import { type ReadOptions, readAnswer, type ToolResult } from './read-answer.ts';

const tool = (outputSchema?: JsonObjectSchema, answer: HttpTool['http']['answer'] = {}): HttpTool => ({
  name: 'x',
  description: 'x',
  inputSchema: { type: 'object' },
  ...(outputSchema ? { outputSchema } : {}),
  hints: { readOnly: true, destructive: false, idempotent: true },
  http: { method: 'GET', server: 'https://x', path: '/', parameters: [], answer },
});

async function* body(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? Buffer.from(part) : part;
}

const read = async (
  content: string | Uint8Array,
  type: string | undefined,
  more: { tool?: HttpTool; status?: number; encoding?: string } & Partial<ReadOptions> = {},
): Promise<ToolResult> =>
  await readAnswer(
    more.tool ?? tool(),
    {
      status: more.status ?? 200,
      headers: { ...(type === undefined ? {} : { 'content-type': type }), 'content-encoding': more.encoding },
      body: content.length === 0 ? body() : body(content),
    },
    { maxBytes: 1000, mask: [], ...more },
  );
const text = (of: string): { type: 'text'; text: string }[] => [{ type: 'text', text: of }];

describe('an answer', () => {
  it('in JSON is structure and text; what is no object is wrapped', async () => {
    expect(await read('{"a": 12345678901234567890}', 'application/json; charset=utf-8')).toEqual({
      content: text('{"a": 12345678901234567890}'),
      structuredContent: { a: 12345678901234567000 },
    });
    expect(await read('[1]', 'application/problem+json')).toEqual({
      content: text('[1]'),
      structuredContent: { result: [1] },
    });
    expect(await read('{"a":1}', undefined)).toMatchObject({ structuredContent: { a: 1 } });
    expect(
      await read('{"a":1}', 'application/json', {
        tool: tool({ type: 'object', properties: { result: {} } }, { wrapped: true }),
      }),
    ).toMatchObject({ structuredContent: { result: { a: 1 } } });
  });

  it('in text has the charset that it says', async () => {
    expect(await read(Buffer.from([0xe4]), 'text/plain; charset=ISO-8859-1')).toEqual({ content: text('ä') });
    expect(await read('ä', 'text/html; charset=unheard-of')).toEqual({ content: text('ä') });
    expect(await read('not json', 'application/json')).toEqual({ content: text('not json') });
  });

  it('in bytes is an image, a sound or a resource', async () => {
    const bytes = Buffer.from([0, 255]);
    expect(await read(bytes, 'image/png')).toEqual({
      content: [{ type: 'image', data: 'AP8=', mimeType: 'image/png' }],
    });
    expect(await read(bytes, 'audio/mpeg')).toEqual({
      content: [{ type: 'audio', data: 'AP8=', mimeType: 'audio/mpeg' }],
    });
    expect(await read(bytes, 'application/pdf')).toEqual({
      content: [{ type: 'resource', resource: { uri: 'tool:x/answer', mimeType: 'application/pdf', blob: 'AP8=' } }],
    });
  });

  it('that is empty says so, with a structure where the tool promises one', async () => {
    expect(await read('', undefined, { status: 204 })).toEqual({
      content: text('The backend answered 204 without a body.'),
    });
    expect(await read('', undefined, { status: 204, tool: tool({ type: 'object' }) })).toMatchObject({
      structuredContent: {},
    });
  });

  it('that is an error is an error of the tool, with its status and an excerpt', async () => {
    expect(await read('{"message":"no"}', 'application/json', { status: 404 })).toEqual({
      content: text('The backend answered 404: {"message":"no"}'),
      isError: true,
    });
    const long = await read('x'.repeat(9_000), 'text/plain', { status: 500, maxBytes: 10_000 });
    expect(long.content[0]).toMatchObject({ text: expect.stringMatching(/^The backend answered 500: x{2000}…$/) });
    expect(await read('', undefined, { status: 302 })).toMatchObject({ isError: true });
  });

  it('that breaks the output schema, which clients would refuse, is an error that has the answer', async () => {
    const strict = tool({ type: 'object', properties: { a: { type: 'integer' } } });
    const broken = await read('{"a":"x"}', 'application/json', { tool: strict });
    expect(broken).toEqual({
      content: text(
        'The backend carried out the call, but its answer is not what its document says: /a must be integer, not string. It answered: {"a":"x"}',
      ),
      isError: true,
    });
    expect(await read('<html>', 'text/html', { tool: strict })).toMatchObject({ isError: true });
    expect(await read('x', 'image/png', { tool: strict })).toMatchObject({ isError: true });
    expect(await read('{"a":1,"b":2}', 'application/json', { tool: strict })).not.toHaveProperty('isError');
  });

  it('is read up to a limit, decompressed, and no further', async () => {
    let parts = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        parts += 1;
        yield Buffer.alloc(400);
      }
    }
    const cut = await readAnswer(
      tool(),
      { status: 200, headers: { 'content-type': 'text/plain' }, body: endless() },
      { maxBytes: 1000, mask: [] },
    );
    expect(cut).toEqual({
      content: text('The backend answered 200, and its answer is longer than 1000 bytes.'),
      isError: true,
    });
    expect(parts).toBe(3);
    const bomb = gzipSync(Buffer.alloc(10_000_000));
    expect(await read(bomb, 'text/plain', { encoding: 'gzip', maxBytes: 100_000 })).toMatchObject({ isError: true });
    expect(await read(gzipSync('hello'), 'text/plain', { encoding: 'gzip' })).toEqual({ content: text('hello') });
    expect(await read('no gzip', 'text/plain', { encoding: 'gzip' })).toMatchObject({ isError: true });
    expect(await read('x', 'text/plain', { encoding: 'compress' })).toMatchObject({ isError: true });
  });

  it('that is cut off is thrown on', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('a');
      throw new Error('reset');
    }
    await expect(
      readAnswer(tool(), { status: 200, headers: {}, body: broken() }, { maxBytes: 10, mask: [] }),
    ).rejects.toThrow('reset');
  });

  it('in JSON that is nested without end is text', async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    expect(await read(deep, 'application/json', { maxBytes: 200_000 })).toEqual({ content: text(deep) });
  });

  it('with a name that objects inherit keeps it', async () => {
    const { structuredContent } = await read('{"__proto__":{"a":"secret-1"}}', 'application/json', {
      mask: ['secret-1'],
    });
    expect(JSON.stringify(structuredContent)).toBe('{"__proto__":{"a":"[masked]"}}');
  });
});

describe('secrets', () => {
  const secret = 'p@ss/"wörd"&<x>+1 2';
  const basic = Buffer.from(`user:${secret}`).toString('base64');
  const forms: [form: string, echoed: string][] = [
    ['itself', secret],
    ['JSON', JSON.stringify(secret)],
    ['JSON with escaped slashes', JSON.stringify(secret).replaceAll('/', '\\/')],
    [
      'JSON for pages',
      JSON.stringify(secret).replace(
        /[<>&\u0080-\uffff]/g,
        (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
      ),
    ],
    ['percent-encoded', encodeURIComponent(secret)],
    ['percent-encoded in small letters', encodeURIComponent(secret).replace(/%../g, (octet) => octet.toLowerCase())],
    ['a form', new URLSearchParams({ a: secret }).toString()],
    ['base64', Buffer.from(secret).toString('base64')],
    ['base64 for URLs', Buffer.from(secret).toString('base64url')],
    ['base64 behind one other', Buffer.from(`x${secret}`).toString('base64')],
    ['base64 behind two others', Buffer.from(`xy${secret}z`).toString('base64')],
    ['a basic credential', basic],
    ['hex', Buffer.from(secret).toString('hex')],
    ['HTML', secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')],
  ];

  /** Around a piece of base64 its neighbours' letters stay. */
  const HIDDEN = /before .{0,8}\[masked\].{0,8} after/;
  const blobOf = ({ content: [first] }: ToolResult): string =>
    first?.type === 'resource' ? Buffer.from(first.resource.blob, 'base64').toString() : '';

  it.each(forms)('are masked as %s, in texts, errors, JSON and bytes', async (_, echoed) => {
    const sentence = `before ${echoed} after`;
    for (const status of [200, 401]) {
      const prefix = status === 200 ? '' : 'The backend answered 401: ';
      expect((await read(sentence, 'text/plain', { status })).content).toEqual(text(`${prefix}${sentence}`));
      expect(JSON.stringify(await read(sentence, 'text/plain', { status, mask: [secret] }))).toMatch(HIDDEN);
    }
    const json = JSON.stringify({ [sentence]: [sentence] });
    expect((await read(json, 'application/json')).structuredContent).toEqual({ [sentence]: [sentence] });
    const { structuredContent = {}, content } = await read(json, 'application/json', { mask: [secret] });
    for (const one of [...Object.entries(structuredContent).flat(2), JSON.stringify(content)])
      expect(String(one)).toMatch(HIDDEN);
    const pdf = await read(sentence, 'application/pdf', { mask: [secret] });
    expect(blobOf(await read(sentence, 'application/pdf'))).toBe(sentence);
    expect(blobOf(pdf)).toMatch(/^before [^*]*[*]{8,}[^*]* after$/);
  });

  it('are masked where JSON hides them behind escapes of its own', async () => {
    const hidden = '{"a":"\\u0073ecret-1","b":12345678}';
    expect(await read(hidden, 'application/json', { mask: ['secret-1', '12345678'] })).toEqual({
      content: text('{"a":"[masked]","b":"[masked]"}'),
      structuredContent: { a: '[masked]', b: '[masked]' },
    });
    expect(await read(hidden, 'application/json')).toMatchObject({ structuredContent: { a: 'secret-1' } });
  });

  it('that are no secrets, being of a letter or two, take nothing out', async () => {
    expect(await read('a b c', 'text/plain', { mask: ['', 'a', 'b c'] })).toEqual({ content: text('a b c') });
  });
});
