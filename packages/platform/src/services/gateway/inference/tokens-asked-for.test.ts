import { expect, it } from 'vitest';
import { tokensAskedFor } from './tokens-asked-for.ts';

const text = 'x y'.repeat(350);

it.each<[string, object, number]>([
  ['chat completions', { messages: [{ role: 'user', content: text }], max_completion_tokens: 50 }, 302 + 50],
  ['messages', { messages: [{ role: 'user', content: [{ text }] }], max_tokens: 50 }, 302 + 50],
  ['responses', { input: text, max_output_tokens: 50 }, 300 + 50],
  ['Converse', { messages: [{ role: 'user', content: [{ text }] }], inferenceConfig: { maxTokens: 50 } }, 302 + 50],
  ['embeddings', { input: [text, text] }, 600],
])('of %s: what it says, and the answer that it asks for', (_, body, expected) => {
  expect(tokensAskedFor(body)).toBe(expected);
});

it('a picture counts for what vendors charge for one, not for its letters', () => {
  const data = 'iVBORw0KGgo'.repeat(100_000);
  expect(tokensAskedFor({ content: [{ data }] })).toBe(1_500);
  expect(tokensAskedFor({ content: [{ url: `data:image/png;base64,${data}` }] })).toBe(1_500);
});

it.each([undefined, null, 'x', 7, [], { max_tokens: -5 }, { max_tokens: '9' }, { max_tokens: 1e300 }])(
  '%j is no more than its letters',
  (body) => {
    expect(tokensAskedFor(body)).toBeLessThanOrEqual(1);
  },
);
