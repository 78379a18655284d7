import { expect, it } from 'vitest';
import { fits } from './uri-template.ts';

it.each([
  ['file:///{path}', 'file:///a/b.txt', true],
  ['file:///{path}', 'http://a', false],
  ['db://{table}/rows/{id}', 'db://users/rows/7', true],
  ['db://{table}/rows/{id}', 'db://users/columns/7', false],
  ['a:{x}b', 'a:b', true],
  ['a:{x}ab', 'a:b', false],
  ['a:b', 'a:b', true],
  ['a:b', 'a:bc', false],
])('%s and %s: %s', (template, uri, expected) => {
  expect(fits(template, uri)).toBe(expected);
});

it('takes no time for what would drive a regular expression mad', () => {
  const template = `a:${'{x}a'.repeat(400)}!`;
  expect(fits(template, `a:${'a'.repeat(2_000)}`)).toBe(false);
});
