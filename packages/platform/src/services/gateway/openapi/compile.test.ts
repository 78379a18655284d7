import { describe, expect, it } from 'vitest';
import { buildRequest, type HttpTool } from '../http-tools/index.ts';
import { compileArguments } from '../tools/index.ts';
import { type Compiled, type CompileOptions, compileOpenApi } from './index.ts';

type Json = { [key: string]: unknown };

const document = (paths: Json, more: Json = {}): string =>
  JSON.stringify(
    {
      openapi: '3.0.3',
      info: { title: 't', version: '1' },
      servers: [{ url: 'https://api.example/v1/' }],
      paths,
      ...more,
    },
    undefined,
    1,
  );
const compile = async (text: string, options: Partial<CompileOptions> = {}, baseUrl?: string): Promise<Compiled> =>
  await compileOpenApi({ text, ...(baseUrl === undefined ? {} : { baseUrl }) }, { target: 'target', ...options });
const post = (
  schema: unknown,
  mediaType = 'application/json',
  media: Json = {},
  body: Json = { required: true },
): Json => ({
  '/x': {
    post: { operationId: 'x', requestBody: { ...body, content: { [mediaType]: { schema, ...media } } }, responses: {} },
  },
});
const get = (parameters: unknown[], path = '/x'): Json => ({
  [path]: { get: { operationId: 'x', parameters, responses: {} } },
});

async function toolOf(text: string, options: Partial<CompileOptions> = {}, baseUrl?: string): Promise<HttpTool> {
  const { tools, problems } = await compile(text, options, baseUrl);
  const [tool] = tools;
  if (!tool) throw new Error(JSON.stringify(problems));
  return tool;
}
const good = (tool: HttpTool, args: unknown): boolean =>
  compileArguments(tool.inputSchema)(JSON.parse(JSON.stringify(args))).length === 0;

describe('an operation', () => {
  it('is a tool with its name, title, description, hints and schema', async () => {
    const tool = await toolOf(
      document({
        '/pets/{id}': {
          put: {
            operationId: 'putPet',
            summary: 'Replaces\u202e a pet',
            description: 'With <b>all</b>.',
            deprecated: true,
            parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' }, description: 'Which' }],
            responses: { 204: {} },
          },
        },
      }),
    );
    expect(tool).toMatchObject({
      name: 'putPet',
      title: 'Replaces a pet',
      description: 'Deprecated. Replaces a pet\n\nWith <b>all</b>.',
      hints: { readOnly: false, destructive: true, idempotent: true },
      inputSchema: {
        type: 'object',
        properties: { id: { type: 'integer', description: 'Which' } },
        required: ['id'],
        additionalProperties: false,
      },
      http: { method: 'PUT', server: 'https://api.example/v1', path: '/pets/{id}' },
    });
    expect(JSON.parse(JSON.stringify(tool))).toEqual(tool);
  });

  it('without an operationId is left out with its line, and the others are not', async () => {
    const { tools, leftOut, problems, operations } = await compile(
      document({ '/a': { get: { responses: {} } }, '/b': { get: { operationId: 'b', responses: {} } } }),
    );
    expect(tools.map(({ name }) => name)).toEqual(['b']);
    expect(operations).toBe(2);
    expect(leftOut).toEqual([{ operation: 'GET /a', why: expect.stringContaining('no operationId') }]);
    expect(problems).toEqual([
      { severity: 'error', message: expect.stringContaining('GET /a'), where: '#/paths/~1a/get', line: 14 },
    ]);
  });

  it('with an operationId that another has, too, keeps a name of its own', async () => {
    const { tools } = await compile(
      document({
        '/a': { get: { operationId: 'same', responses: {} } },
        '/b': { get: { operationId: 'same', responses: {} } },
      }),
    );
    expect(new Set(tools.map(({ name }) => name)).size).toBe(2);
    for (const { name } of tools) expect(name).toMatch(/^same_[0-9a-f]{6}$/);
  });

  const broken: [why: string, paths: Json][] = [
    ['has a variable {id}', { '/x/{id}': { get: { operationId: 'x', responses: {} } } }],
    ['does not begin with a slash', { x: { get: { operationId: 'x', responses: {} } } }],
    ['has a query', { '/x?y=1': { get: { operationId: 'x', responses: {} } } }],
    ['steps to another path', { '/x/../y': { get: { operationId: 'x', responses: {} } } }],
    ['leads to nothing', get([{ $ref: '#/components/parameters/none' }])],
    ['leads to nothing', post({ properties: { a: { $ref: '#/components/schemas/none' } } })],
    ['leads on and on', { ...get([{ $ref: '#/paths/~1x/get/parameters/0' }]) }],
    ['neither an object nor', post({ properties: { a: 'text' } })],
    ['has no name', get([{ in: 'query' }])],
    ['TRACE', { '/x': { trace: { operationId: 'x', responses: {} } } }],
    ['No server can be called', { '/x': { get: { operationId: 'x', servers: [{ url: 'ftp://x' }], responses: {} } } }],
    ['names a user', { '/x': { get: { operationId: 'x', servers: [{ url: 'https://a:b@x' }], responses: {} } } }],
    [
      'variable without a default',
      { '/x': { get: { operationId: 'x', servers: [{ url: 'https://{host}/' }], responses: {} } } },
    ],
    ['No header can have the name', get([{ name: 'a b', in: 'header', schema: {} }])],
  ];
  it.each(broken)('that is broken costs itself alone: %s', async (why, paths) => {
    const { tools, leftOut, operations, problems } = await compile(
      document({ ...paths, '/good': { get: { operationId: 'good', responses: {} } } }),
    );
    expect(tools.map(({ name }) => name)).toEqual(['good']);
    expect(operations).toBe(2);
    expect(leftOut).toEqual([{ operation: expect.any(String), why: expect.stringContaining(why) }]);
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([
      expect.objectContaining({ line: expect.any(Number) }),
    ]);
  });
});

describe('parameters', () => {
  it('of the same name in different places and in the body are different arguments', async () => {
    const tool = await toolOf(
      document({
        '/x/{id}': {
          post: {
            operationId: 'x',
            parameters: ['header', 'query', 'path'].map((place) => ({
              name: 'id',
              in: place,
              required: true,
              schema: { type: 'string' },
            })),
            requestBody: {
              required: true,
              content: { 'application/json': { schema: { type: 'object', properties: { id: { type: 'string' } } } } },
            },
            responses: {},
          },
        },
      }),
    );
    expect(Object.keys(tool.inputSchema.properties ?? {})).toEqual(['id', 'id_query', 'id_header', 'id_body']);
    const { url, headers, body } = buildRequest(tool.http, { id: '1', id_query: '2', id_header: '3', id_body: '4' });
    expect([url.href, headers.id, Buffer.from(body ?? []).toString()]).toEqual([
      'https://api.example/v1/x/1?id=2',
      '3',
      '{"id":"4"}',
    ]);
  });

  it('have the style that the document says, else that of their place; those of the operation count before those of the path', async () => {
    const schema = { type: 'array', items: { type: 'string' } };
    const tool = await toolOf(
      document({
        '/x': {
          parameters: [
            { name: 'a', in: 'query', schema, style: 'pipeDelimited' },
            { name: 'b', in: 'query', schema },
          ],
          get: {
            operationId: 'x',
            parameters: [{ name: 'a', in: 'query', schema, style: 'form', explode: false }],
            responses: {},
          },
        },
      }),
    );
    expect(buildRequest(tool.http, { a: ['1', '2'], b: ['3', '4'] }).url.search).toBe('?a=1,2&b=3&b=4');
  });

  it('with names that model providers refuse get other names among the arguments', async () => {
    const tool = await toolOf(document(get([{ name: 'filter[status]', in: 'query', schema: { type: 'string' } }])));
    expect(buildRequest(tool.http, { filter_status: 'open' }).url.search).toBe('?filter%5Bstatus%5D=open');
  });

  it('that carry credentials or belong to the connection are no arguments', async () => {
    const names: [string, string][] = [
      ['X-Key', 'header'],
      ['authorization', 'header'],
      ['Host', 'header'],
      ['token', 'query'],
      ['sid', 'cookie'],
      ['given', 'query'],
      ['free', 'query'],
    ];
    const securitySchemes = {
      a: { type: 'apiKey', in: 'header', name: 'x-key' },
      b: { type: 'apiKey', in: 'query', name: 'token' },
      c: { type: 'apiKey', in: 'cookie', name: 'sid' },
      d: { type: 'oauth2' },
    };
    const paths = get(names.map(([name, place]) => ({ name, in: place, required: true, schema: { type: 'string' } })));
    const text = document(paths, { components: { securitySchemes } });
    const { tools, credentials } = await compile(text, { credentials: [{ in: 'query', name: 'given' }] });
    expect(Object.keys(tools[0]?.inputSchema.properties ?? {})).toEqual(['free']);
    expect(credentials).toEqual([
      { in: 'header', name: 'x-key' },
      { in: 'query', name: 'token' },
      { in: 'cookie', name: 'sid' },
      { in: 'header', name: 'authorization' },
    ]);
    const all = ['token', 'given', 'free', 'X-Key', 'sid'];
    expect(Object.keys((await toolOf(document(paths))).inputSchema.properties ?? {})).toEqual(all);
  });

  it('with a media type are written as that', async () => {
    const tool = await toolOf(
      document(get([{ name: 'q', in: 'query', content: { 'application/json': { schema: { type: 'object' } } } }])),
    );
    expect(buildRequest(tool.http, { q: { a: 1 } }).url.searchParams.get('q')).toBe('{"a":1}');
  });
});

describe('bodies', () => {
  it('that are plain objects become arguments, without what only the server writes', async () => {
    const tool = await toolOf(
      document(
        post({
          type: 'object',
          required: ['id', 'name'],
          properties: {
            id: { type: 'string', readOnly: true },
            name: { type: 'string' },
            secret: { type: 'string', writeOnly: true },
          },
        }),
      ),
    );
    expect(tool.inputSchema).toMatchObject({ required: ['name'] });
    expect(Object.keys(tool.inputSchema.properties ?? {})).toEqual(['name', 'secret']);
  });

  it('that are optional ask for their required fields only where there is one', async () => {
    const tool = await toolOf(
      document(
        post(
          { type: 'object', required: ['a'], properties: { a: { type: 'string' }, b: { type: 'string' } } },
          'application/json',
          {},
          {},
        ),
      ),
    );
    expect([good(tool, {}), good(tool, { a: '1' }), good(tool, { b: '1' }), good(tool, { a: '1', b: '1' })]).toEqual([
      true,
      true,
      false,
      true,
    ]);
    expect(buildRequest(tool.http, {}).body).toBeUndefined();
  });

  it.each([
    ['a list', { type: 'array', items: { type: 'string' } }],
    [
      'alternatives',
      {
        oneOf: [
          { type: 'object', properties: { a: {} } },
          { type: 'object', properties: { b: {} } },
        ],
      },
    ],
    ['an object with other properties', { type: 'object', properties: { a: {} }, additionalProperties: true }],
  ])('that are %s are one argument', async (_, schema) => {
    const tool = await toolOf(document(post(schema)));
    expect(Object.keys(tool.inputSchema.properties ?? {})).toEqual(['body']);
    expect(tool.inputSchema.required).toEqual(['body']);
  });

  it('are forms, multipart, text and bytes', async () => {
    const sent = async (
      mediaType: string,
      schema: unknown,
      args: Parameters<typeof buildRequest>[1],
      media: Json = {},
    ): Promise<string> => {
      const tool = await toolOf(document(post(schema, mediaType, media)));
      expect(good(tool, args)).toBe(true);
      const { body, headers } = buildRequest(tool.http, args);
      return `${headers['content-type']?.split('; boundary')[0]} ${Buffer.from(body ?? []).toString()}`;
    };
    const object = {
      type: 'object',
      properties: { a: { type: 'object' }, b: { type: 'array', items: { type: 'string' } } },
    };
    const encoding = { a: { style: 'deepObject', explode: true } };
    expect(
      decodeURIComponent(
        await sent('application/x-www-form-urlencoded', object, { a: { x: 1 }, b: ['1', '2'] }, { encoding }),
      ),
    ).toBe('application/x-www-form-urlencoded a[x]=1&b=1&b=2');
    const file = {
      type: 'object',
      properties: {
        file: { type: 'string', format: 'binary' },
        files: { type: 'array', items: { type: 'string', format: 'binary' } },
      },
    };
    expect(
      await sent(
        'multipart/form-data',
        file,
        { file: 'aGVsbG8=', files: ['d29ybGQ='] },
        { encoding: { file: { contentType: 'image/png, image/gif' } } },
      ),
    ).toMatch(/^multipart\/form-data .*content-type: image\/png\r\n\r\nhello\r\n.*world/s);
    expect(await sent('text/plain', { type: 'string' }, { body: 'ü' })).toBe('text/plain; charset=utf-8 ü');
    expect(await sent('application/octet-stream', { type: 'string', format: 'binary' }, { body: 'aGVsbG8=' })).toBe(
      'application/octet-stream hello',
    );
    expect(await sent('*/*', { type: 'array' }, { body: [1] })).toBe('application/json [1]');
    expect(await sent('application/merge-patch+json', object, { b: [] })).toBe('application/merge-patch+json {"b":[]}');
  });

  it('of several media types are sent as the one that keeps the most', async () => {
    const content = {
      'application/octet-stream': { schema: { type: 'string' } },
      'multipart/form-data': { schema: { type: 'object' } },
      'application/json': { schema: { type: 'object', properties: { a: {} } } },
    };
    const tool = await toolOf(
      document({ '/x': { post: { operationId: 'x', requestBody: { content }, responses: {} } } }),
    );
    expect(tool.http.body).toMatchObject({ kind: 'json', mediaType: 'application/json' });
  });
});

describe('schemas', () => {
  it('of 3.0 become JSON Schema 2020-12', async () => {
    const tool = await toolOf(
      document(
        post({
          type: 'object',
          properties: {
            a: { type: 'string', nullable: true, enum: ['x'] },
            b: { type: 'number', minimum: 1, exclusiveMinimum: true },
            c: { nullable: true, allOf: [{ $ref: '#/components/schemas/C' }] },
            d: { $ref: '#/components/schemas/C', description: 'passed over' },
            e: { type: 'string', format: 'byte' },
          },
        }),
        { components: { schemas: { C: { type: 'object', properties: { n: { type: 'integer' } } } } } },
      ),
    );
    expect(tool.inputSchema.properties).toEqual({
      a: { type: ['string', 'null'], enum: ['x', null] },
      b: { type: 'number', exclusiveMinimum: 1 },
      c: { anyOf: [{ allOf: [{ $ref: '#/$defs/C' }] }, { type: 'null' }] },
      d: { $ref: '#/$defs/C' },
      e: { type: 'string', format: 'byte', contentEncoding: 'base64' },
    });
    expect([{ a: null }, { a: 'x' }, { c: null }, { c: { n: 1 } }].map((args) => good(tool, args))).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect([{ a: 'y' }, { b: 1 }, { c: { n: 'x' } }].map((args) => good(tool, args))).toEqual([false, false, false]);
  });

  it('of 3.1 keep what stands beside a reference, null types, and conditions', async () => {
    const text = document(
      post({
        type: 'object',
        properties: {
          a: { $ref: '#/components/schemas/C', description: 'kept', maxLength: 2 },
          b: { type: ['string', 'null'] },
          c: { prefixItems: [{ const: 1 }] },
          d: true,
        },
      }),
      { openapi: '3.1.0', components: { schemas: { C: { type: 'string' } } } },
    );
    const tool = await toolOf(text);
    expect(tool.inputSchema.properties).toEqual({
      a: { $ref: '#/$defs/C', description: 'kept', maxLength: 2 },
      b: { type: ['string', 'null'] },
      c: { prefixItems: [{ const: 1 }] },
      d: true,
    });
    expect([good(tool, { a: 'abc' }), good(tool, { a: 'ab', b: null, c: [1], d: {} })]).toEqual([false, true]);
  });

  it('keep cycles as definitions, and only those that are reached', async () => {
    const schemas = {
      Node: {
        type: 'object',
        properties: { next: { $ref: '#/components/schemas/Node' }, other: { $ref: '#/components/schemas/Other' } },
      },
      Other: { type: 'object', properties: { back: { $ref: '#/components/schemas/Node' } } },
      Unused: { type: 'string' },
    };
    const tool = await toolOf(
      document(post({ type: 'object', properties: { node: { $ref: '#/components/schemas/Node' } } }), {
        components: { schemas },
      }),
    );
    expect(Object.keys(tool.inputSchema.$defs ?? {})).toEqual(['Node', 'Other']);
    expect([good(tool, { node: { next: { other: { back: {} } } } }), good(tool, { node: { next: 1 } })]).toEqual([
      true,
      false,
    ]);
  });

  it('with a discriminator let each alternative say its own value', async () => {
    const schemas = {
      Cat: { type: 'object', properties: { kind: { type: 'string' }, claws: { type: 'integer' } } },
      Dog: { type: 'object', properties: { kind: { type: 'string' } } },
    };
    const oneOf = [{ $ref: '#/components/schemas/Cat' }, { $ref: '#/components/schemas/Dog' }];
    const tool = await toolOf(
      document(
        post({
          oneOf,
          discriminator: { propertyName: 'kind', mapping: { cat: '#/components/schemas/Cat', kitten: 'Cat' } },
        }),
        { components: { schemas } },
      ),
    );
    expect(['cat', 'kitten', 'Dog', 'Cat', 'dog'].map((kind) => good(tool, { body: { kind } }))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
    const without = await toolOf(document(post({ oneOf }), { components: { schemas } }));
    expect(good(without, { body: { kind: 'cat' } })).toBe(false);
  });

  it('that forbid other properties beside their alternatives mean those that no alternative has', async () => {
    const oneOf = [{ type: 'object', properties: { a: { type: 'string' } } }];
    const tool = await toolOf(document(post({ oneOf, additionalProperties: false })));
    expect(tool.inputSchema.properties).toMatchObject({ body: { unevaluatedProperties: false } });
    expect(good(tool, { body: { a: 'x' } })).toBe(true);
  });

  it('know a property that is called $ref, or __proto__, from a reference', async () => {
    const tool = await toolOf(
      `{"openapi":"3.0.0","servers":[{"url":"https://x"}],"paths":{"/x":{"post":{"operationId":"x","requestBody":{"content":{"application/json":{"schema":{"type":"object","additionalProperties":{"type":"string"},"properties":{"$ref":{"type":"string"},"__proto__":{"type":"integer"}}}}}}}}}}`,
    );
    expect(good(tool, { body: { $ref: '#/nothing' } })).toBe(true);
    expect(
      compileArguments(tool.inputSchema)(JSON.parse('{"body":{"$ref":1,"__proto__":"x"}}')).map(({ path }) => path),
    ).toEqual(['/body/$ref', '/body/__proto__']);
  });

  it('with a pattern that looks around are told, and left to the backend', async () => {
    const { tools, problems } = await compile(
      document(get([{ name: 'a', in: 'query', schema: { type: 'string', pattern: '^(?!x)' } }])),
    );
    expect(problems).toMatchObject([
      { severity: 'warning', message: expect.stringContaining('linear time'), line: expect.any(Number) },
    ]);
    expect(tools[0] && good(tools[0], { a: 'x' })).toBe(true);
  });
});

describe('answers', () => {
  const answered = async (schema: unknown, more: Json = {}): Promise<HttpTool> =>
    await toolOf(
      document(
        {
          '/x': {
            get: {
              operationId: 'x',
              responses: {
                404: {},
                201: { content: { 'application/json': { schema: false } } },
                200: { content: { 'text/html': {}, 'application/json': { schema } } },
              },
            },
          },
        },
        more,
      ),
    );

  it('have an output schema that says types and asks for nothing', async () => {
    const tool = await answered({
      type: 'object',
      required: ['a'],
      additionalProperties: false,
      properties: { a: { type: 'string', enum: ['x'], maxLength: 1 }, secret: { type: 'string', writeOnly: true } },
    });
    expect(tool.outputSchema).toEqual({
      type: 'object',
      properties: { a: { type: ['string', 'null'], examples: ['x'] } },
    });
    expect(tool.http.answer.accept).toBe('application/json, text/html, */*;q=0.1');
  });

  it('that are no objects are wrapped', async () => {
    const tool = await answered(
      { type: 'array', items: { $ref: '#/components/schemas/A' } },
      { components: { schemas: { A: { type: 'string' } } } },
    );
    expect(tool.outputSchema).toEqual({
      type: 'object',
      properties: { result: { type: ['array', 'null'], items: { $ref: '#/$defs/A' } } },
      $defs: { A: { type: ['string', 'null'] } },
    });
    expect(tool.http.answer.wrapped).toBe(true);
  });

  it('that refer to an object are it', async () => {
    const tool = await answered(
      { $ref: '#/components/schemas/A' },
      { components: { schemas: { A: { type: 'object', properties: { next: { $ref: '#/components/schemas/A' } } } } } },
    );
    expect(tool.outputSchema).toMatchObject({ type: 'object', properties: { next: { $ref: '#/$defs/A' } } });
  });

  it('that are broken or too large cost the output schema and not the operation', async () => {
    expect((await answered({ $ref: '#/nothing' })).outputSchema).toBeUndefined();
    const { tools, problems } = await compile(
      document({
        '/x': {
          get: {
            operationId: 'x',
            responses: {
              200: {
                content: {
                  'application/json': {
                    schema: { type: 'object', properties: { a: { description: 'x'.repeat(2_000) } } },
                  },
                },
              },
            },
          },
        },
      }),
      { limits: { outputSchemaBytes: 1_000 } },
    );
    expect(tools[0]).not.toHaveProperty('outputSchema');
    expect(problems).toMatchObject([{ message: expect.stringContaining('1 tools have no output schema') }]);
  });
});

describe('servers', () => {
  const at = async (servers: unknown, baseUrl?: string): Promise<string> =>
    (await toolOf(document(get([]), { servers }), {}, baseUrl)).http.server;

  it('are relative to where the document came from, and have variables by default', async () => {
    expect(await at([{ url: '/v2' }], 'https://host/docs/openapi.json')).toBe('https://host/v2');
    expect(await at([{ url: 'v2/' }], 'https://host/docs/openapi.json')).toBe('https://host/docs/v2');
    expect(await at(undefined, 'https://host/docs/openapi.json')).toBe('https://host');
    expect(
      await at([
        {
          url: 'https://{region}.x/{basePath}',
          variables: { region: { default: 'eu' }, basePath: { default: '/prod' } },
        },
      ]),
    ).toBe('https://eu.x/prod');
    expect(await at([{ url: 'wss://x' }, { url: 'https://y' }])).toBe('https://y');
    expect(await at([{ url: '//z' }])).toBe('https://z');
  });

  it('that are relative to nobody knows where are a problem', async () => {
    expect((await compile(document(get([]), { servers: [{ url: '/v2' }] }))).leftOut).toEqual([
      { operation: 'GET /x', why: expect.stringContaining('not known') },
    ]);
  });
});

describe('documents', () => {
  it('of several files are read as one, each file once', async () => {
    const files: { [url: string]: string } = {
      'https://host/docs/paths/pets.yaml':
        'get:\n  operationId: pets\n  parameters:\n    - $ref: ../common.json#/p\n  responses: {}\n',
      'https://host/docs/common.json':
        '{"p":{"name":"q","in":"query","schema":{"$ref":"#/s"}},"s":{"type":"object","properties":{"again":{"$ref":"#/s"}}}}',
    };
    const asked: string[] = [];
    const resolve = async (url: string): Promise<string> => {
      asked.push(url);
      return files[url] ?? Promise.reject(new Error('not there'));
    };
    const text = document({
      '/pets': { $ref: 'paths/pets.yaml' },
      '/none': { get: { operationId: 'none', parameters: [{ $ref: 'none.json' }], responses: {} } },
    });
    const { tools, leftOut, problems } = await compile(text, { resolve }, 'https://host/docs/openapi.json');
    expect(tools.map(({ name }) => name)).toEqual(['pets']);
    expect(tools[0]?.inputSchema.$defs).toEqual({
      s: { type: 'object', properties: { again: { $ref: '#/$defs/s' } } },
    });
    expect(leftOut).toEqual([{ operation: 'GET /none', why: expect.stringContaining('not there') }]);
    expect(problems).toHaveLength(1);
    expect(asked.sort()).toEqual([
      'https://host/docs/common.json',
      'https://host/docs/none.json',
      'https://host/docs/paths/pets.yaml',
    ]);
  });

  it('ask for no other file where none is followed, nor for what only looks like a reference', async () => {
    const text = document({
      '/x': {
        post: {
          operationId: 'x',
          requestBody: {
            content: {
              'application/json': {
                schema: {
                  type: 'object',
                  properties: {
                    a: {
                      type: 'object',
                      default: { $ref: 'http://169.254.169.254/' },
                      example: { $ref: 'http://169.254.169.254/' },
                    },
                  },
                },
              },
            },
          },
          responses: {},
        },
      },
      '/y': { get: { operationId: 'y', parameters: [{ $ref: 'http://169.254.169.254/#/p' }], responses: {} } },
    });
    const asked: string[] = [];
    const { tools } = await compile(text, {
      resolve: async (url) => {
        asked.push(url);
        throw new Error('refused');
      },
    });
    expect(tools.map(({ name }) => name)).toEqual(['x']);
    expect(asked).toEqual(['http://169.254.169.254/']);
    expect((await compile(text)).leftOut).toEqual([
      { operation: 'GET /y', why: expect.stringContaining('not followed here') },
    ]);
  });

  it('may be YAML, with anchors, merge keys and numbers as keys', async () => {
    const text = `openapi: 3.1.0
servers: [{ url: https://x }]
paths:
  /x:
    get: &op
      operationId: x
      responses:
        200: { content: { application/json: { schema: { type: object } } } }
    put:
      <<: *op
      operationId: y
  /z:
    get: { responses: {} }
`;
    const { tools, problems } = await compile(text);
    expect(tools.map(({ name, outputSchema }) => [name, outputSchema?.type])).toEqual([
      ['x', 'object'],
      ['y', 'object'],
    ]);
    expect(problems).toEqual([
      { severity: 'error', message: expect.stringContaining('GET /z'), where: '#/paths/~1z/get', line: 13 },
    ]);
  });

  it.each([
    ['{"openapi": "3.0.0",\n  "paths": {,}}', 'JSON cannot be read', 2],
    ['openapi: 3.0.0\npaths: [\n', 'YAML cannot be read', expect.any(Number)],
    ['{"swagger":"2.0"}', 'not "2.0"', undefined],
    ['[]', 'not an OpenAPI document', undefined],
    ['', 'not an OpenAPI document', undefined],
    ['just a text', 'not an OpenAPI document', undefined],
  ])('that are none say why: %j', async (text, message, line) => {
    const { tools, problems, operations } = await compile(text);
    expect({ tools, operations }).toEqual({ tools: [], operations: 0 });
    expect(problems).toEqual([
      { severity: 'error', message: expect.stringContaining(message), ...(line === undefined ? {} : { line }) },
    ]);
  });

  it('with a key that stands twice are read, and it is told with its line', async () => {
    const json =
      '{"openapi":"3.0.0",\n"paths":{},\n"paths":{"/x":{"get":{"operationId":"x","servers":[{"url":"https://x"}]}}}}';
    for (const text of [
      json,
      'openapi: 3.0.0\npaths: {}\npaths: {/x: {get: {operationId: x, servers: [{url: https://x}]}}}\n',
    ])
      expect(await compile(text)).toMatchObject({
        operations: 1,
        problems: [{ severity: 'warning', message: expect.stringContaining('"paths" stands twice'), line: 3 }],
      });
  });
});

describe('a selection of a REST API', () => {
  const operation = (id?: string): Json => ({ ...(id === undefined ? {} : { operationId: id }), responses: {} });
  const proxy = { parameters: [{ name: 'proxy', in: 'path', schema: { type: 'string' } }], get: operation('proxy') };
  const text = document({
    '/pets': { get: operation('list'), post: operation('add') },
    '/pets/{proxy+}': proxy,
    '/pets/food': { get: operation() },
    '/users': { get: operation('users') },
  });

  it('takes what its filters say, and calls it what its overrides say', async () => {
    const selection = {
      toolFilters: [
        { filterPath: '/pets/*', methods: ['GET'] },
        { filterPath: '/pets', methods: ['get'] },
      ],
      toolOverrides: [{ path: '/pets/food', method: 'GET', name: 'food', description: 'What they eat' }],
    };
    const { tools, leftOut, operations } = await compile(text, { selection });
    expect(tools.map(({ name, description }) => [name, description])).toEqual([
      ['list', 'GET /pets'],
      ['food', 'What they eat'],
    ]);
    expect(tools.length + leftOut.length).toBe(operations);
    expect(leftOut.map(({ operation: name }) => name)).toEqual(['POST /pets', 'GET /pets/{proxy+}', 'GET /users']);
  });

  it('that means nothing is a problem', async () => {
    const selection = {
      toolFilters: [{ filterPath: '/none', methods: ['GET'] }],
      toolOverrides: [{ path: '/pets', method: 'GET', name: 'x' }],
    };
    const { problems } = await compile(text, { selection });
    expect(problems).toEqual([
      expect.objectContaining({ severity: 'error', message: expect.stringContaining('filter GET /none') }),
      expect.objectContaining({ severity: 'error', message: expect.stringContaining('override of GET /pets') }),
    ]);
  });

  it('leaves out what asks for a signature and a key at once', async () => {
    const securitySchemes = {
      iam: { type: 'apiKey', in: 'header', name: 'Authorization', 'x-amazon-apigateway-authtype': 'awsSigv4' },
      key: { type: 'apiKey', in: 'header', name: 'x-api-key' },
    };
    const secured = document(
      {
        '/a': { get: { ...operation('a'), security: [{ iam: [], key: [] }] } },
        '/b': { get: { ...operation('b'), security: [{ iam: [] }] } },
      },
      { components: { securitySchemes } },
    );
    const { tools, leftOut } = await compile(secured, {
      selection: { toolFilters: [{ filterPath: '/*', methods: ['GET'] }] },
    });
    expect(tools.map(({ name }) => name)).toEqual(['b']);
    expect(leftOut).toEqual([{ operation: 'GET /a', why: expect.stringContaining('at once') }]);
  });
});
