import { expect, it } from 'vitest';
import { idAtProvider, matches, shownId } from './model-names.ts';

const STRIP = { providerPrefix: { strip: true } };

it.each([
  ['gpt-5', 'gpt-*', undefined, 'gpt-5'],
  ['gpt-5', 'gpt-?', undefined, 'gpt-5'],
  ['gpt-55', 'gpt-?', undefined, undefined],
  ['claude-opus', 'anthropic.claude-*', undefined, undefined],
  ['claude-opus', 'anthropic.claude-*', STRIP, 'anthropic.claude-opus'],
  ['anthropic.claude-opus', 'anthropic.claude-*', STRIP, 'anthropic.claude-opus'],
  ['opus', 'vendor:opus', { providerPrefix: { strip: true, separator: ':' } }, 'vendor:opus'],
  ['opus', '*.opus', STRIP, undefined],
])('%s, where the target has %s, is %o', (asked, pattern, mapping, expected) => {
  expect(idAtProvider(asked, pattern, mapping)).toBe(expected);
});

it('is shown without the prefix that clients may leave out, and a pattern is not shown', () => {
  expect(['anthropic.claude', 'claude', 'a.*'].map((one) => shownId(one, STRIP))).toEqual([
    'claude',
    'claude',
    undefined,
  ]);
  expect(shownId('anthropic.claude', undefined)).toBe('anthropic.claude');
});

it('compares in bounded time', () => {
  expect(matches('a'.repeat(2_000), `${'a*'.repeat(1_000)}b`)).toBe(false);
});
