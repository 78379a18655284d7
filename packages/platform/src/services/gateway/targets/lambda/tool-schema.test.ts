import { describe, expect, it } from 'vitest';
import { schemaTools } from './tool-schema.ts';

const tool = (more: object = {}): object => ({
  ...{ name: 'add', description: 'Adds', inputSchema: { type: 'object' } },
  ...more,
});
const told = (schema: unknown): string => JSON.stringify(schemaTools(schema, 'math').problems);

describe('a tool schema', () => {
  it('is a list, or the text of one, and names are kept', () => {
    const inputSchema = {
      type: 'object',
      properties: { a: { type: 'array', items: { type: 'integer', description: 'one' } } },
      required: ['a'],
    };
    const listed = [tool({ inputSchema })];
    for (const schema of [listed, JSON.stringify(listed)])
      expect(schemaTools(schema, 'math')).toEqual({
        problems: [],
        tools: [
          {
            ...{ name: 'add', description: 'Adds', inputSchema },
            hints: { readOnly: false, destructive: true, idempotent: false },
          },
        ],
      });
  });

  it.each([
    ['a name with other letters', tool({ name: 'add numbers' }), 'other letters'],
    ['a name that is too long', tool({ name: 'a'.repeat(128) }), 'more than the 121 characters'],
    ['a member of MCP', tool({ annotations: { readOnlyHint: true } }), 'annotations'],
    ['no description', tool({ description: undefined }), 'no description'],
    ['no schema', tool({ inputSchema: undefined }), 'not a schema of an object'],
    [
      'another keyword',
      tool({ inputSchema: { type: 'object', properties: { a: { type: 'string', enum: ['x'] } } } }),
      'inputSchema.properties.a has enum',
    ],
    ['a reference', tool({ inputSchema: { type: 'object', properties: { $ref: { $ref: '#' } } } }), 'has $ref'],
    ['no type', tool({ outputSchema: {} }), 'outputSchema must have a type'],
    ['nothing', null, 'not an object'],
  ])('loses a tool with %s, and no other', (_what, bad, why) => {
    const { tools, problems } = schemaTools([bad, tool({ name: 'good' })], 'math');
    expect(tools.map(({ name }) => name)).toEqual(['good']);
    expect(problems).toEqual([{ severity: 'warning', message: expect.stringContaining(why) }]);
  });

  it('wraps an output that is no object', () => {
    const { tools } = schemaTools([tool({ outputSchema: { type: 'number' } })], 'math');
    expect(tools).toMatchObject([
      {
        wraps: true,
        outputSchema: { type: 'object', properties: { result: { type: 'number' } }, required: ['result'] },
      },
    ]);
  });

  it('without a tool, or that is none, is an error', () => {
    expect(told([])).toContain('no tool that can be used');
    for (const none of ['{', '{}', undefined, 'x'.repeat(9_000_000)])
      expect(told(none)).toContain('must be a JSON list');
  });

  it('that is nested without end is told so', () => {
    let schema: object = { type: 'string' };
    for (let depth = 0; depth < 10_000; depth++) schema = { type: 'array', items: schema };
    expect(told([tool({ inputSchema: { type: 'object', properties: { a: schema } } })])).toContain('nested too deep');
  });
});
