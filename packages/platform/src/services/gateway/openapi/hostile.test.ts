import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Compiled } from '../http-tools/compiled.ts';
import { compileInWorker, compileOpenApi } from './index.ts';

const compile = async (text: string, limits = {}): Promise<Compiled> =>
  await compileOpenApi({ text }, { target: 'target', limits });
const errors = ({ problems }: Compiled): string[] =>
  problems.filter(({ severity }) => severity === 'error').map(({ message }) => message);

/** A document with one operation whose body is `schema`, and another that is good. */
const withSchema = (schema: unknown, schemas: { [name: string]: unknown } = {}): string =>
  JSON.stringify({
    openapi: '3.1.0',
    servers: [{ url: 'https://x' }],
    paths: {
      '/x': { post: { operationId: 'x', requestBody: { content: { 'application/json': { schema } } } } },
      '/good': { get: { operationId: 'good' } },
    },
    components: { schemas },
  });
const nested = (depth: number, leaf: string): string => '{"items":'.repeat(depth) + leaf + '}'.repeat(depth);
const names = ({ tools }: Compiled): string[] => tools.map(({ name }) => name);

describe('hostile documents', () => {
  it('that are nested deep are refused; those nested less are read', async () => {
    expect(errors(await compile(withSchema('X').replace('"X"', nested(100_000, 'true'))))).toEqual([
      expect.stringContaining('nested deeper than'),
    ]);
    expect(names(await compile(withSchema('X').replace('"X"', nested(100, 'true'))))).toEqual(['x', 'good']);
    expect(errors(await compile(`a: ${'['.repeat(50_000)}`))).toHaveLength(1);
    expect(
      errors(await compile(`{a: ${'['.repeat(50_000)}${']'.repeat(50_000)}}`.replace('{a', 'a').slice(0, -1))),
    ).toHaveLength(1);
  });

  it('that are long are refused; those a little shorter are read', async () => {
    const text = withSchema({ description: 'x'.repeat(5_000) });
    expect(errors(await compile(text, { documentBytes: 5_000 }))).toEqual([
      expect.stringContaining('longer than 5000'),
    ]);
    expect(names(await compile(text, { documentBytes: 6_000 }))).toEqual(['x', 'good']);
  });

  it('whose aliases stand for billions of values are refused; those with a few are read', async () => {
    const bomb = (levels: number): string =>
      `a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n${Array.from({ length: levels }, (_, n) => `a${n + 1}: &a${n + 1} [${Array.from({ length: 10 }, () => `*a${n}`).join(', ')}]\n`).join('')}`;
    expect(errors(await compile(`${bomb(30)}openapi: 3.0.0\npaths: {}\n`))).toEqual([
      expect.stringContaining('aliases'),
    ]);
    expect(errors(await compile(`${bomb(3)}openapi: 3.0.0\npaths: {}\n`))).toEqual([]);
    expect(errors(await compile('a: &a [*a]\nopenapi: 3.0.0\npaths: {}\n'))).toEqual([
      expect.stringContaining('stands for itself'),
    ]);
  });

  it('whose references and combinations double at each step cost no more than they are long', async () => {
    const schemas: { [name: string]: unknown } = { s60: { type: 'string' } };
    for (let level = 0; level < 60; level += 1) {
      const next = { $ref: `#/components/schemas/s${level + 1}` };
      schemas[`s${level}`] = { allOf: [next, next], properties: { a: next, b: next } };
    }
    const compiled = await compile(withSchema({ $ref: '#/components/schemas/s0' }, schemas));
    expect(names(compiled)).toEqual(['x', 'good']);
    expect(Object.keys(compiled.tools[0]?.inputSchema.$defs ?? {})).toHaveLength(61);
  });

  it('whose references lead in a circle, or along a chain of thousands, are read', async () => {
    const circle = { a: { $ref: '#/components/schemas/b' }, b: { $ref: '#/components/schemas/a' } };
    expect(names(await compile(withSchema({ $ref: '#/components/schemas/a' }, circle)))).toEqual(
      expect.arrayContaining(['good']),
    );
    const chain = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, n) => [
        `s${n}`,
        { properties: { next: { $ref: `#/components/schemas/s${n + 1}` } } },
      ]),
    );
    const compiled = await compile(
      withSchema({ allOf: [{ $ref: '#/components/schemas/s0' }] }, { ...chain, s20000: {} }),
    );
    expect(names(compiled)).toEqual(['good']);
    expect(compiled.leftOut).toEqual([{ operation: 'POST /x', why: expect.stringContaining('larger than') }]);
  });

  it('with tens of thousands of operations have as many tools as they may, and the rest is named', async () => {
    const paths = Object.fromEntries(
      Array.from({ length: 300 }, (_, n) => [`/p${n}`, { get: { operationId: `o${n}` } }]),
    );
    const { tools, leftOut, operations } = await compile(
      JSON.stringify({ openapi: '3.0.0', servers: [{ url: 'https://x' }], paths }),
      { operations: 100 },
    );
    expect([tools.length, leftOut.length, operations]).toEqual([100, 200, 300]);
  });

  it('whose tools are together too large have as many as fit', async () => {
    const schemas = { big: { description: 'x'.repeat(3_000), type: 'object' } };
    const operation = (n: number): object => ({
      operationId: `o${n}`,
      requestBody: { content: { 'application/json': { schema: { allOf: [{ $ref: '#/components/schemas/big' }] } } } },
    });
    const paths = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`/p${n}`, { post: operation(n) }]));
    const { tools, leftOut } = await compile(
      JSON.stringify({ openapi: '3.0.0', servers: [{ url: 'https://x' }], paths, components: { schemas } }),
      { toolsBytes: 20_000 },
    );
    expect(tools).toHaveLength(6);
    expect(leftOut).toHaveLength(44);
  });

  it('are never thrown for: documents with anything anywhere', async () => {
    const part = fc.letrec<{ node: unknown }>((tie) => ({
      node: fc.oneof(
        { depthSize: 'medium' },
        fc.constantFrom<unknown>(
          null,
          true,
          1,
          '',
          'string',
          'object',
          '#/paths',
          '#/components/schemas/A',
          'other.json#/x',
          [],
          {},
          '3.0.0',
          'path',
          'query',
          '\u0000',
        ),
        fc.dictionary(
          fc.constantFrom(
            'get',
            'post',
            'parameters',
            'name',
            'in',
            'schema',
            'content',
            'application/json',
            'multipart/form-data',
            '$ref',
            'properties',
            'allOf',
            'oneOf',
            'items',
            'type',
            'required',
            'responses',
            '200',
            'servers',
            'url',
            'discriminator',
            'propertyName',
            'mapping',
            'enum',
            'pattern',
            'requestBody',
            'operationId',
            'encoding',
            'style',
            '/x/{a}',
            '__proto__',
            'security',
          ),
          tie('node'),
          { maxKeys: 6 },
        ),
        fc.array(tie('node'), { maxLength: 4 }),
      ),
    })).node;
    let tools = 0;
    await fc.assert(
      fc.asyncProperty(part, part, part, async (item, operation, schema) => {
        const base = JSON.parse(withSchema(schema, { A: schema }));
        Object.assign(base.paths, {
          '/y': item,
          '/z': { post: Object.assign({ operationId: 'z' }, operation), parameters: item },
        });
        const compiled = await compile(JSON.stringify(base));
        expect(compiled.tools.length + compiled.leftOut.length).toBe(compiled.operations);
        expect(names(compiled)).toContain('good');
        tools += compiled.tools.length - 1;
      }),
      { seed: 42, numRuns: 1500 },
    );
    expect(tools).toBeGreaterThan(500);
  });

  it('are never thrown for: texts at random, and documents with a piece cut out or doubled', async () => {
    const yaml =
      'openapi: 3.0.0\nservers: [{url: "https://x"}]\npaths:\n  /x:\n    get: {operationId: x, parameters: [{name: q, in: query, schema: {type: string}}]}\n';
    const text = fc.constantFrom(yaml, withSchema({ type: 'object', properties: { a: { type: 'string' } } }));
    const cut = fc
      .tuple(text, fc.nat(600), fc.nat(30), fc.boolean())
      .map(
        ([whole, at, length, twice]) =>
          whole.slice(0, at) +
          (twice ? whole.slice(Math.max(0, at - length), at) : '') +
          whole.slice(at + (twice ? 0 : length)),
      );
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string({ unit: 'binary', maxLength: 200 }), fc.json(), cut), async (one) => {
        const compiled = await compile(one);
        expect(compiled.tools.length + compiled.leftOut.length).toBe(compiled.operations);
      }),
      { seed: 43, numRuns: 1500 },
    );
  });
});

describe('in a thread', () => {
  const small = withSchema({ type: 'object', properties: { a: { type: 'string' } } });

  it('a document gives what it gives without one, also of several files', async () => {
    const text = JSON.stringify({
      openapi: '3.0.0',
      servers: [{ url: 'https://x' }],
      paths: { '/x': { $ref: 'https://files/x.json' }, '/y': { $ref: 'https://files/none.json' } },
    });
    const resolve = async (url: string): Promise<string> =>
      url.endsWith('x.json') ? '{"get":{"operationId":"x"}}' : Promise.reject(new Error('not there'));
    for (const [one, options] of [
      [small, { target: 't' }],
      [text, { target: 't', resolve }],
    ] as const)
      expect(await compileInWorker({ kind: 'openapi', input: { text: one }, options })).toEqual(
        await compileOpenApi({ text: one }, options),
      );
  });

  it('that takes too long ends with its thread, and is a problem', async () => {
    const never = (): Promise<string> => new Promise(() => {});
    const text = JSON.stringify({
      openapi: '3.0.0',
      servers: [{ url: 'https://x' }],
      paths: { '/x': { $ref: 'https://files/x.json' } },
    });
    const compiled = await compileInWorker(
      { kind: 'openapi', input: { text }, options: { target: 't', resolve: never } },
      { timeoutMs: 1_500 },
    );
    expect(errors(compiled)).toEqual(['The document takes longer than 1.5 s to be read.']);
  });

  it('that takes too much memory ends with its thread, and is a problem', async () => {
    const values = `{"openapi":"3.0.0","x":[${Array.from({ length: 700_000 }, (_, n) => `{"a":${n}}`).join(',')}],"paths":{}}`;
    expect(
      errors(
        await compileInWorker({ kind: 'openapi', input: { text: values }, options: { target: 't' } }, { heapMb: 32 }),
      ),
    ).toEqual(['The document takes more than 32 MiB of memory to be read.']);
    expect(
      errors(await compileInWorker({ kind: 'openapi', input: { text: values }, options: { target: 't' } })),
    ).toEqual([]);
  });

  it('ends when nobody waits any more', async () => {
    const controller = new AbortController();
    const compiled = compileInWorker(
      { kind: 'openapi', input: { text: small }, options: { target: 't' } },
      {},
      controller.signal,
    );
    controller.abort(new Error('gone'));
    await expect(compiled).rejects.toThrow('gone');
  });
});
