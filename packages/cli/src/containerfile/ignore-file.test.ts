import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ignoredBy } from './ignore-file.ts';
import { pathPattern } from './path-pattern.ts';

describe('an ignore file', () => {
  it.each([
    ['node_modules', ['node_modules', 'node_modules/a/b.js'], ['src/node_modules', 'node_modules2']],
    ['**/node_modules', ['node_modules/x', 'a/b/node_modules/x'], ['a/node_module']],
    ['/secret.txt\n./other', ['secret.txt', 'other'], ['a/secret.txt']],
    ['*.log\n# *.md\n', ['a.log'], ['a/b.log', 'a.md']],
    ['docs/**/*.md', ['docs/a.md', 'docs/x/y/a.md'], ['docs/a.txt', 'a.md']],
    ['*\n!src\n!README.md', ['a', 'a/b'], ['src', 'src/x', 'README.md']],
    ['a\n!a/keep\na/keep/not', ['a/x', 'a/keep/not'], ['a/keep', 'a/keep/yes']],
    ['temp?', ['temp1', 'temp1/x'], ['temp', 'temp12']],
    ['[a-c]x\n[^a-c]y', ['ax', 'cx', 'dy'], ['dx', 'ay']],
    ['a\\*b', ['a*b'], ['axb']],
    ['..\n.\n/\n!', [], ['a', 'b/c']],
  ])('%j', (text, ignored, kept) => {
    const { ignores } = ignoredBy(text);
    for (const path of ignored) expect([path, ignores(path)]).toEqual([path, true]);
    for (const path of kept) expect([path, ignores(path)]).toEqual([path, false]);
  });

  it('leaves out what deploying itself writes', () => {
    expect(ignoredBy('!.agentcore').ignores('.agentcore/state.json')).toBe(true);
  });

  it('a pattern made of a name fits that name; `*` and `**` fit every one; no pattern takes long', () => {
    const name = fc.string({ minLength: 1, maxLength: 12 }).filter((text) => text !== '**');
    const escaped = (text: string): string => [...text].map((letter) => `\\${letter}`).join('');
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), (names) => {
        expect(pathPattern(names.map(escaped))(names)).toBe(true);
        expect(pathPattern(names.map(() => '*'))(names)).toBe(true);
        expect(pathPattern(['**'])(names)).toBe(true);
        expect(pathPattern(['**', escaped(names.at(-1) ?? '')])(names)).toBe(true);
        expect(pathPattern(names.map(escaped))([...names, 'more'])).toBe(false);
      }),
    );
    fc.assert(
      fc.property(fc.string(), fc.string(), (text, path) => typeof ignoredBy(text).ignores(path) === 'boolean'),
    );
    // What a backtracking matcher would need years for.
    expect(pathPattern(['*a'.repeat(40)])(['a'.repeat(60)])).toBe(true);
    expect(pathPattern([`${'*a'.repeat(40)}b`])(['a'.repeat(60)])).toBe(false);
    expect(pathPattern([...Array<string>(40).fill('**'), 'x'])(Array<string>(60).fill('a'))).toBe(false);
  });
});
