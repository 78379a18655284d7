import { expect, it } from 'vitest';
import { countedTokens } from './token-count.ts';

it.each([
  ['', 0],
  ['hello world', 2],
  // Of OpenAI's own example.
  ['antidisestablishmentarianism', 6],
  ['お誕生日おめでとう', 8],
])('%j is %i tokens', async (text, tokens) => {
  expect(await countedTokens(text)).toBe(tokens);
});

it('of a long text is close to what its parts are', async () => {
  const sentence = 'The quick brown fox jumps over the lazy dog. ';
  const hundred = await countedTokens(sentence.repeat(100));
  expect((await countedTokens(sentence.repeat(10_000))) / (hundred * 100)).toBeCloseTo(1, 1);
});

it('a word without end is counted, too', async () => {
  expect(await countedTokens('a'.repeat(10_000_000))).toBeGreaterThan(100_000);
});

it.each(['<|endoftext|>', '\ud800', '\u0000'])('%j is a text as any other', async (text) => {
  expect(await countedTokens(text)).toBeGreaterThan(0);
});
