// Every parser of this package against anything: it answers or names the fault, and never fails in another way.
import fc from 'fast-check';
import { type DefaultTreeAdapterTypes, parse } from 'parse5';
import { describe, expect, it } from 'vitest';
import { imageSize } from './lint/image-size.ts';
import { checkWidgetConfig } from './lint/widget-config.ts';
import { ProblemError } from './problem.ts';
import { parseSettings } from './project/settings.ts';
import { decodeSource } from './project/source-text.ts';
import { parseXml } from './project/xml.ts';
import { createAccessPolicy } from './proxy/access-policy.ts';
import { flatDocument } from './proxy/flat-document.ts';
import { parsePhoneEvent } from './proxy/phone-event.ts';
import { injectScript } from './server/inject.ts';
import { requestedName } from './server/public-file.ts';

/** The problem that `work` throws, or undefined; any other error fails the test. */
function problemFrom(work: () => unknown): ProblemError | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof ProblemError) return error;
    throw error;
  }
}

/** The texts of the script elements of a page, as a browser reads it. */
function scripts(html: string): string[] {
  const found: string[] = [];
  const visit = (node: DefaultTreeAdapterTypes.Node): void => {
    if (!('childNodes' in node)) return;
    const [text] = node.childNodes;
    if (node.nodeName === 'script' && text && 'value' in text) found.push(text.value);
    node.childNodes.forEach(visit);
  };
  visit(parse(html));
  return found;
}

describe('decodeSource', () => {
  it('gives back what was encoded, and drops a byte order mark', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        if (/^\ufeff/.test(text) || !text.isWellFormed()) return;
        expect(decodeSource(Buffer.from(text), 'a')).toBe(text);
        expect(decodeSource(Buffer.from(`\ufeff${text}`), 'a')).toBe(text);
      }),
    );
  });

  it('names the first byte that is wrong', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom(0x80, 0xbf, 0xc0, 0xf8, 0xff), fc.string(), (before, bad, after) => {
        const bytes = Buffer.concat([Buffer.from(before), Buffer.from([bad]), Buffer.from(after)]);
        if (/^\xff\xfe|^\xfe\xff/.test(bytes.toString('latin1'))) return;
        const found = problemFrom(() => decodeSource(bytes, 'a'));
        expect(found?.message).toContain(`at offset ${Buffer.byteLength(before)} `);
      }),
    );
  });

  it('never fails otherwise', () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void problemFrom(() => decodeSource(bytes, 'a'))));
  });
});

const xml = fc
  .array(
    fc.constantFrom(
      '<widget',
      ' xmlns="http://www.w3.org/ns/widgets"',
      '>',
      '</widget>',
      '<name>',
      '</name>',
      '<a b="c"/>',
      '&amp;',
      '&x;',
      '<!--',
      '-->',
      '<![CDATA[',
      ']]>',
      '<?xml version="1.0"?>',
      '<!DOCTYPE x [<!ENTITY e "e">]>',
      'text',
      '"',
      '<',
    ),
  )
  .map((parts) => parts.join(''));

describe('parseXml', () => {
  it('answers or says what is not well-formed', () => {
    fc.assert(
      fc.property(fc.oneof(xml, fc.string()), (text) => {
        const found = problemFrom(() => parseXml(text, 'config.xml'));
        if (found) expect(found.problem).toMatchObject({ code: 'config-malformed', line: expect.any(Number) });
        void problemFrom(() => checkWidgetConfig(text, 'config.xml', new Set()));
        createAccessPolicy(text)('http://example.org/');
      }),
    );
  });

  it('expands no entity and bears depth', () => {
    const bomb = `<!DOCTYPE w [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><w>&b;</w>`;
    expect(problemFrom(() => parseXml(bomb, 'c'))?.problem.code).toBe('config-malformed');
    expect(problemFrom(() => parseXml('<a>'.repeat(100_000), 'c'))?.message).toContain('nest too deep');
  });
});

it('parseSettings answers or names the setting', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.jsonValue(), fc.record({ plugins: fc.jsonValue(), port: fc.jsonValue(), budgets: fc.jsonValue() })),
      (value) => {
        const found = problemFrom(() => parseSettings(value));
        if (found) expect(found.problem.code).toBe('settings-invalid');
      },
    ),
  );
  for (const plugins of [['../x.js'], ['/etc/x.js'], ['a/../../x.js'], ['..\\x.js']]) {
    expect(problemFrom(() => parseSettings({ plugins }))?.message).toContain('leads outside');
  }
});

it('imageSize answers or knows no size, whatever the bytes', () => {
  const starts = ['\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'GIF89a', '\xff\xd8\xff\xe0\0\x10', '\xff\xd8\xff\xc0\0\x11\x08'];
  fc.assert(
    fc.property(fc.constantFrom('', ...starts), fc.uint8Array({ maxLength: 64 }), (start, rest) => {
      const size = imageSize(Buffer.concat([Buffer.from(start, 'latin1'), rest]));
      if (size) expect(size.width > 0 && size.height > 0).toBe(true);
    }),
  );
});

it('requestedName never leads to a parent, a drive or a hidden file', () => {
  const part = fc.constantFrom(
    '..',
    '.',
    '%2e%2e',
    '%2f',
    '%5c',
    '\\',
    '/',
    'a',
    'C:',
    '%00',
    '.git',
    '%',
    'index.html',
    '//',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(part).map((p) => `/${p.join('')}`),
      ),
      (pathname) => {
        const name = requestedName(pathname);
        if (name === undefined) return;
        expect(name.split('/').some((segment) => segment.startsWith('.') || segment === '')).toBe(false);
        expect(name).not.toMatch(/[\\:\0]/);
      },
    ),
  );
  expect(requestedName('/')).toBe('index.html');
  expect(requestedName('/light/css/a%20b.css')).toBe('light/css/a b.css');
});

it('parsePhoneEvent answers or knows no event, and keeps within its bounds', () => {
  const field = fc.tuple(
    fc.oneof(fc.constantFrom('on', 'y', 'local', 'f1', 'g2', 'f__proto__', 'gx'), fc.string()),
    fc.oneof(fc.string(), fc.constantFrom('1:click', '0:key-up', '7', '__proto__')),
  );
  fc.assert(
    fc.property(fc.array(field, { maxLength: 30 }), (fields) => {
      const event = parsePhoneEvent(new URLSearchParams(fields));
      if (!event) return;
      expect(Number.isInteger(event.target)).toBe(true);
      for (const [name, values] of Object.entries(event.fields)) {
        expect(name).toMatch(/^[fg]\d{1,9}$/);
        if (name.startsWith('g')) for (const value of values) expect(value).toMatch(/^\d{1,9}$/);
      }
    }),
  );
  const locals = Array.from({ length: 500 }, (_, i): [string, string] => ['local', `a${i}`]);
  const many = new URLSearchParams([['on', '1:click'], ...locals]);
  expect(parsePhoneEvent(many)?.locals.length).toBe(200);
});

it('an access policy reaches what is named and nothing near it', () => {
  const policy = (inner: string) =>
    createAccessPolicy(`<widget xmlns="http://www.w3.org/ns/widgets">${inner}</widget>`);
  const one = policy('<access origin="https://news.example" subdomains="true"/>');
  expect(['https://news.example/a', 'https://en.news.example/', 'wss://news.example/'].map(one)).toEqual([
    true,
    true,
    true,
  ]);
  expect(
    [
      'http://news.example/',
      'https://news.example:8443/',
      'https://badnews.example/',
      'https://news.example.evil/',
      'file:///etc/passwd',
      'x',
    ].map(one),
  ).not.toContain(true);
  const all = policy('<access origin="*"/>');
  expect(['https://example.org/', 'https://example.org./'].map(all)).toEqual([true, true]);
  const inside = [
    'http://127.0.0.1/',
    'http://localhost/',
    'http://169.254.169.254/',
    'http://[::1]/',
    'http://0x7f000001/',
    'http://2130706433/',
    'http://db/',
    'http://localhost.:8080/',
    'http://db./',
    'http://127.0.0.1./',
    'http://a.internal./',
    'http://x.localhost/',
    'http://a.internal/',
    'file:///etc/passwd',
  ];
  expect(inside.filter(all)).toEqual([]);
});

it('a flat document holds what a style says and nothing that breaks out of it', () => {
  const read = (name: string) =>
    name === 'a/a.css'
      ? Buffer.from('p{background:url(../b.png)}</style><script>x()</script>')
      : name === 'b.png'
        ? Buffer.from('PNG')
        : undefined;
  const html = flatDocument(
    {
      parts: [
        '<html><head>',
        { style: 'a/a.css', media: '"><script>' },
        '</head><body>',
        { image: '../../etc/passwd' },
        '</body></html>',
      ],
      scroll: 7,
      alerts: ['"><script>y()</script>'],
    },
    read,
    'lib()',
    '/v/x/event',
  );
  expect(html).toContain('url("data:image/png;base64,UE5H")');
  expect(scripts(html)).toEqual(['lib()']);
  expect(html).not.toContain('passwd');
  expect(html).toContain('<body data-handset-alert="&quot;>&lt;script>y()&lt;/script>" data-handset-scroll="7">');
});

it('injectScript puts the script before the last end of the body', () => {
  expect(injectScript('<body>a</body></html>', '/x.js')).toBe('<body>a<script src="/x.js"></script></body></html>');
  expect(injectScript('<pre></body></pre></BODY >', '/x.js')).toBe(
    '<pre></body></pre><script src="/x.js"></script></BODY >',
  );
  expect(injectScript('a</html>', '/x.js')).toBe('a<script src="/x.js"></script></html>');
  expect(injectScript('a', '/x.js')).toBe('a<script src="/x.js"></script>');
});
