import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromOldJade } from './old-jade.ts';
import { createPugPlugin } from './pug.ts';

function html(text: string): string {
  const request = { path: 'app/a.jade', text, target: 'page' as const, read: () => '' };
  const result = createPugPlugin().compile(request);
  if (result instanceof Promise) throw new Error('Pug compiles at once.');
  return result.output.trim();
}

describe("Jade's older syntax", () => {
  it.each([
    ['!!! 5\nhtml', '<!DOCTYPE html><html></html>'],
    [
      '!!! strict\np',
      '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd"><p></p>',
    ],
    ['script\n  var a = 1;\n  if (a) b();', '<script>var a = 1;\nif (a) b();</script>'],
    [
      "script(type='text/javascript',\n  language='x')\n  f(1);\np after",
      '<script type="text/javascript" language="x">f(1);</script><p>after</p>',
    ],
    ["script(src='a.js')\np after", '<script src="a.js"></script><p>after</p>'],
    ['script.\n  already(1);', '<script>already(1);</script>'],
    ['script\n  | piped(1);', '<script>piped(1);</script>'],
    ['style\n  p { a: "#{b}" }', '<style>p { a: "" }</style>'],
    [
      '- var i = 2\np(id="entry#{i}", onclick=\'f("#b#{i + 1}")\') x',
      '<p id="entry2" onclick="f(&quot;#b3&quot;)">x</p>',
    ],
    ['- var i = 2\np(title="plain") a #{i} b', '<p title="plain">a 2 b</p>'],
    ['//comment\n  script\n    not(1)\np', '<!--commentscript\n  not(1)--><p></p>'],
  ])('%j', (text, expected) => {
    expect(html(text)).toBe(expected);
  });

  it('keeps every line where it is, and what has none of it as it is', () => {
    const line = fc.constantFrom(
      '!!! 5',
      'p',
      '  script',
      '    f("#{x}");',
      'a(b="c#{d}", e)',
      'a(b=[1',
      '  2])',
      '',
      '// x',
      '| "#{y}"',
      'p.',
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
        const out = fromOldJade(lines.join('\n')).split('\n');
        expect(out).toHaveLength(Math.max(lines.length, 1));
      }),
      { seed: 23, numRuns: 300 },
    );
    const plain = 'doctype html\nhtml\n  body\n    p(a="b" c=1) text #{d}\n    script.\n      g()\n';
    expect(fromOldJade(plain)).toBe(plain);
  });
});
