import { Validator } from '@cfworker/json-schema';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileArguments } from './arguments.ts';
import type { JsonSchema } from './tool.ts';

const problems = (schema: JsonSchema, value: unknown): string[] =>
  compileArguments(schema)(JSON.parse(JSON.stringify(value))).map(({ path, message }) => `${path} ${message}`.trim());

describe('arguments', () => {
  it('that conform have no problems, and each that does not is named with its path', () => {
    const schema: JsonSchema = {
      type: 'object',
      properties: {
        name: { type: 'string', maxLength: 3 },
        list: { type: 'array', items: { type: 'integer', minimum: 1 } },
      },
      required: ['name'],
      additionalProperties: false,
    };
    expect(problems(schema, { name: 'abc', list: [1, 2] })).toEqual([]);
    expect(problems(schema, { list: [0, 'x'], 'a/b': 1 })).toEqual([
      '/name is missing',
      '/list/0 must be at least 1',
      '/list/1 must be integer, not string',
      '/a~1b is not known',
    ]);
  });

  it('are held to each keyword', () => {
    const table: [schema: JsonSchema, good: unknown, bad: unknown][] = [
      [{ const: { a: [1] } }, { a: [1] }, { a: [2] }],
      [{ enum: ['a', null, { x: 1 }] }, { x: 1 }, 'b'],
      [{ type: ['string', 'null'] }, null, 1],
      [{ type: 'integer' }, 2, 2.5],
      [{ minLength: 2, maxLength: 2 }, '👍👍', '👍'],
      [{ pattern: 'b+' }, 'abba', 'xyz'],
      [{ pattern: '^[a-z]+$' }, 'abc', 'ab1'],
      [{ exclusiveMinimum: 1, exclusiveMaximum: 3 }, 2, 3],
      [{ multipleOf: 0.1 }, 0.3, 0.35],
      [{ minItems: 1, maxItems: 2 }, [1], []],
      [
        { uniqueItems: true },
        [{ a: 1, b: 2 }, { a: 1 }],
        [
          { a: 1, b: 2 },
          { b: 2, a: 1 },
        ],
      ],
      [{ prefixItems: [{ type: 'string' }], items: { type: 'number' } }, ['a', 1], ['a', 'b']],
      [{ items: [{ type: 'string' }], additionalItems: false }, ['a'], ['a', 1]],
      [{ contains: { type: 'string' }, maxContains: 1 }, [1, 'a'], ['a', 'b']],
      [{ minProperties: 1, maxProperties: 1 }, { a: 1 }, {}],
      [{ patternProperties: { '^x-': { type: 'number' } }, additionalProperties: false }, { 'x-a': 1 }, { y: 1 }],
      [{ additionalProperties: { type: 'number' } }, { a: 1 }, { a: 'b' }],
      [{ propertyNames: { maxLength: 1 } }, { a: 1 }, { ab: 1 }],
      [{ dependentRequired: { a: ['b'] } }, { a: 1, b: 1 }, { a: 1 }],
      [{ dependentSchemas: { a: { required: ['b'] } } }, { b: 1 }, { a: 1 }],
      [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, 1, 3],
      [{ anyOf: [{ type: 'string' }, { minimum: 2 }] }, 'a', 1],
      [{ oneOf: [{ multipleOf: 2 }, { multipleOf: 3 }] }, 4, 6],
      [{ not: { type: 'string' } }, 1, 'a'],
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      [{ if: { type: 'string' }, then: { minLength: 1 }, else: { minimum: 1 } }, 1, ''],
      [{ $ref: '#/$defs/n', $defs: { n: { type: 'number' } } }, 1, 'a'],
      [{ properties: { $ref: { type: 'string' } } }, { $ref: 'a' }, { $ref: 1 }],
      [{ properties: { __proto__: { type: 'string' } }, required: ['toString'] }, { toString: 1 }, {}],
      [false, undefined, 1],
    ];
    for (const [schema, good, bad] of table) {
      if (good !== undefined) expect(problems(schema, good), JSON.stringify(schema)).toEqual([]);
      expect(problems(schema, bad), JSON.stringify(schema)).not.toEqual([]);
    }
  });

  it('say what is wrong with the only alternative of their type', () => {
    expect(problems({ oneOf: [{ type: 'string' }, { type: 'object', required: ['a'] }] }, {})).toEqual([
      '/a is missing',
    ]);
  });

  it('agree with another validator on schemas and values at random', () => {
    const leaf = fc.constantFrom<JsonSchema>(
      { type: 'string' },
      { type: 'integer', minimum: 2 },
      { type: 'null' },
      { enum: ['a', 1, null] },
      { maxLength: 1 },
      {},
      { pattern: '^a' },
      false,
    );
    const { schema } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
      schema: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
        fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
        fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }), not: tie('schema') }),
        fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(1) }),
        fc.record({
          properties: fc.dictionary(fc.constantFrom('a', 'b'), tie('schema')),
          required: fc.subarray(['a', 'b']),
          additionalProperties: tie('schema'),
        }),
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        fc.record({ if: tie('schema'), then: tie('schema'), else: tie('schema') }),
      ),
    }));
    const value = fc
      .jsonValue({ maxDepth: 3 })
      .map((one) => JSON.parse(JSON.stringify(one).replaceAll('"key"', '"a"')));
    let agreed = { good: 0, bad: 0 };
    fc.assert(
      fc.property(schema, fc.oneof(value, fc.dictionary(fc.constantFrom('a', 'b'), value)), (given, one) => {
        const good = compileArguments(given)(one).length === 0;
        expect(good).toBe(new Validator(given, '2020-12').validate(one).valid);
        agreed = { good: agreed.good + (good ? 1 : 0), bad: agreed.bad + (good ? 0 : 1) };
      }),
      { seed: 20, numRuns: 3000 },
    );
    expect(agreed.good).toBeGreaterThan(300);
    expect(agreed.bad).toBeGreaterThan(300);
  });

  it('are checked in bounded work: a schema that doubles at each step, one that leads to itself, and deep values', () => {
    const levels = Array.from({ length: 40 }, (_, index): [string, JsonSchema] => {
      const next = { $ref: `#/$defs/s${index + 1}` };
      return [`s${index}`, { allOf: [next, next] }];
    });
    const doubling: JsonSchema = {
      $ref: '#/$defs/s0',
      $defs: Object.fromEntries([...levels, ['s40', { type: 'string' }]]),
    };
    expect(problems(doubling, 'x')).toEqual(['takes too long to be checked against its schema']);
    const few: JsonSchema = {
      $ref: '#/$defs/s36',
      $defs: Object.fromEntries([...levels, ['s40', { type: 'string' }]]),
    };
    expect(problems(few, 'x')).toEqual([]);
    expect(problems({ $ref: '#' }, 1)).toEqual(['has a schema that is nested deeper than 256 levels']);
    const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
    expect(compileArguments({ uniqueItems: true })(deep)).toEqual([
      { path: '', message: 'is nested deeper than 256 levels' },
    ]);
  });

  it('meet patterns in linear time, and those that cannot be matched so are left to the backend', () => {
    const check = compileArguments({ type: 'string', pattern: '^(a+)+$' });
    expect(check('a'.repeat(50_000))).toEqual([]);
    expect(check(`${'a'.repeat(50_000)}!`)).toHaveLength(1);
    expect(problems({ pattern: '^(?!x)' }, 'x')).toEqual([]);
  });

  it('spend on a pattern what it takes: large ones against long texts end the check, wherever they stand', () => {
    const large = 'a[ab]{480}c';
    const long = 'ab'.repeat(500_000);
    const costly = [{ path: '', message: 'takes too long to be checked against its schema' }];
    expect(compileArguments({ pattern: large })(long)).toEqual(costly);
    expect(compileArguments({ patternProperties: { [large]: true } })({ [long]: 1 })).toEqual(costly);
    // The control: what schemas usually have is checked.
    expect(compileArguments({ items: { pattern: '^[a-z]{1,20}$' } })(Array(500).fill('abcdefgh'))).toEqual([]);
  });

  it('have at most 20 problems named', () => {
    expect(
      problems(
        { items: { type: 'string' } },
        Array.from({ length: 100 }, () => 1),
      ),
    ).toHaveLength(20);
  });
});
