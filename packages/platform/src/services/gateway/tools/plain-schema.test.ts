import { expect, it } from 'vitest';
import { plainSchema } from './plain-schema.ts';

/** Letters that nobody sees and models read: a tag of the letter A, and a space of no width. */
const HIDDEN = '\u{e0041}\u200b';

it('takes what nobody sees out of the texts of a schema, at every depth, and keeps names and values', () => {
  const text = { description: `a${HIDDEN}b`, title: `t${HIDDEN}`, $comment: HIDDEN };
  const plain = { description: 'ab', title: 't', $comment: '' };
  const value = `v${HIDDEN}`;
  const schema = {
    type: 'object',
    ...text,
    properties: {
      [value]: { ...text, enum: [value], const: value, default: { description: value } },
      description: text,
    },
    $defs: { one: { items: { ...text }, anyOf: [text, { not: text }], prefixItems: [text] } },
    patternProperties: { '^x': { additionalProperties: text } },
    additionalProperties: false,
    required: [value],
  };
  expect(plainSchema(schema, 100)).toEqual({
    type: 'object',
    ...plain,
    properties: {
      [value]: { ...plain, enum: [value], const: value, default: { description: value } },
      description: plain,
    },
    $defs: { one: { items: { ...plain }, anyOf: [plain, { not: plain }], prefixItems: [plain] } },
    patternProperties: { '^x': { additionalProperties: plain } },
    additionalProperties: false,
    required: [value],
  });
});
