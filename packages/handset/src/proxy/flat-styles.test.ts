import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { flatSheet, flatStyles } from './flat-styles.ts';

const sheet = (files: Readonly<Record<string, string>>): string =>
  flatSheet('day/day.css', '', (name) => (files[name] === undefined ? undefined : Buffer.from(files[name])));

describe('styles for the phone', () => {
  it('hold what is imported, with what it is for', () => {
    const css = sheet({
      'day/day.css': `@charset "utf-8";\n/* first */ @import "base.css";\n@import url(print/print.css) print;\n@import url( '../wide.css' ) (min-width: 300px) and (color);p { color: red }`,
      'day/base.css': 'h1 { margin: 0 }',
      'day/print/print.css': '@import "../ink.css"; h2 { margin: 0 }',
      'day/ink.css': 'h3 { margin: 0 }',
      'wide.css': 'h4 { margin: 0 }',
    });
    expect(css).toBe(
      'h1 { margin: 0 }@media print{h3 { margin: 0 }h2 { margin: 0 }}@media (min-width: 300px) and (color){h4 { margin: 0 }}p { color: red }',
    );
  });

  it('end where sheets import each other or what is not there', () => {
    const files = {
      'day/day.css': '@import "a.css"; @import "http://far.example/b.css"; @import "none.css"; p { margin: 1px }',
      'day/a.css': '@import "day.css"; q { margin: 2px }',
    };
    expect(sheet(files)).toBe('q { margin: 2px }p { margin: 1px }');
    const deep = Object.fromEntries(
      Array.from({ length: 50 }, (_, i) => [`day/${i}.css`, `@import "${i + 1}.css"; p { order: ${i} }`]),
    );
    expect(sheet({ 'day/day.css': '@import "0.css";', ...deep })).toMatch(/^p { order: 6 }p { order: 5 }/);
  });

  it('hold images by any name, and leave what means the document', () => {
    const files = {
      'day/day.css': '#q { background: url("a b(1).png") no-repeat, url(a\\ b\\(1\\).png); fill: url(#lg) }',
    };
    const png = 'data:image/png;base64,SU1H';
    expect(sheet({ ...files, 'day/a b(1).png': 'IMG' })).toBe(
      `#q { background: url("${png}") no-repeat, url("${png}"); fill: url(#lg) }`,
    );
    expect(sheet(files)).toContain('url("data:image/gif');
    const stays = `fill:url('#lg');background:url('data:image/svg+xml,<svg xmlns="x"/>')`;
    expect(flatStyles(stays, '', () => undefined)).toBe(stays);
  });

  it('keep text as it is', () => {
    const css = `.q::before { content: "a  b /* no comment */ url(c) \\" @import 'd';" }`;
    expect(sheet({ 'day/day.css': `${css} /* comment "with */\n\n  p   { order: 1 }` })).toBe(`${css} p { order: 1 }`);
  });

  it('are made of anything, in little time', () => {
    const piece = fc.constantFrom(
      '@import ',
      'url(',
      '"',
      "'",
      '\\',
      '/*',
      '*/',
      ';',
      ')',
      ' ',
      '{',
      '}',
      'a',
      '#',
      '\n',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const made = flatStyles(pieces.join(''), '', () => undefined);
        expect(flatStyles(made, '', () => undefined).length).toBeLessThanOrEqual(made.length + 5);
      }),
    );
  });
});
