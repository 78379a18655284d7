import { readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { noDefinitions } from '../src/lint/definitions.ts';
import { checkScript, define } from '../src/lint/es5.ts';
import type { Problem } from '../src/problem.ts';
import { drawPng } from '../tools/png.ts';
import { handset } from './support/cli.ts';
import { newsCopy, scaffoldCopy, smallProject } from './support/project.ts';

async function lint(
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<{ status: number | null; problems: readonly Problem[] }> {
  const { status, stdout } = await handset(smallProject(files), ['lint', '--json']);
  const { problems } = JSON.parse(stdout) as { problems: Problem[] };
  return { status, problems: problems.filter((p) => p.code !== 'widget-advice') };
}

const head = 'doctype html\nhtml\n  head\n  body\n';
const page = (...lines: string[]): string => head + lines.map((line) => `    ${line}`).join('\n');
const config = (inner: string, attributes = ''): string =>
  `<widget xmlns="http://www.w3.org/ns/widgets" id="http://example.org/a" version="1.0" ${attributes}>\n<name>a</name>\n${inner}\n</widget>`;
const png = (width: number, height: number): Buffer =>
  drawPng(width, height, (x, y) => [(x * 97) % 256, (y * 61) % 256, (x * y) % 256, 255]);

describe('handset lint', () => {
  it('has nothing to say about the example, the smallest project and the scripts of the scaffold', async () => {
    expect((await handset(newsCopy(), ['lint'])).stdout).toBe('nothing to complain about\n');
    const { stdout } = await handset(scaffoldCopy(), ['lint', '--json']);
    expect((JSON.parse(stdout) as { problems: Problem[] }).problems.filter((p) => p.code.includes('es5'))).toEqual([]);
    expect((await lint({})).problems).toEqual([]);
  });

  it('allows what is carried, or brought, or the own of a script', async () => {
    const { problems } = await lint({
      'app/index.pug': page("script(src='javascripts/vendor.js')"),
      'app/a.js': `
mwl.switchClass('#a', 'b', 'c'); mwl.addSwipeLeftListener('#a', "mwl.hide('#a')"); mwl.loadURL('#b'); mwl.brought();
(function (prompt) { prompt('a'); })(function () {});
// handset-allow confirm
if (confirm('a')) document.addEventListener('click', function () {});`,
      'vendor/more.js': 'mwl.brought = function () {};',
    });
    expect(problems.filter(({ code }) => code === 'lint-unsupported')).toEqual([]);
  });

  it('lets a background be smaller on the side that it repeats on', async () => {
    const named = async (width: number, height: number) =>
      (await lint({ 'app/assets/button-bg_40x40.png': png(width, height) })).problems.map(({ code }) => code);
    expect([await named(5, 40), await named(40, 5), await named(5, 39), await named(50, 40)]).toEqual([
      [],
      [],
      ['lint-image-name'],
      ['lint-image-name'],
    ]);
  });

  const cases: readonly (readonly [
    what: string,
    files: Record<string, string | Uint8Array>,
    found: Partial<Problem>,
  ])[] = [
    [
      'an arrow function',
      { 'app/a.js': 'var a;\nvar f = () => 1;' },
      { code: 'lint-es5-syntax', file: 'app/a.js', line: 2 },
    ],
    ['let', { 'app/a.js': 'let a = 1;' }, { code: 'lint-es5-syntax', line: 1 }],
    [
      'a template literal in a theme',
      { 'app/assets/light/js/a.js': 'var a = `x`;' },
      { code: 'lint-es5-syntax', file: 'app/assets/light/js/a.js' },
    ],
    [
      'raw JavaScript in CoffeeScript',
      { 'app/a.coffee': 'a = 1\n`let b = 2`\n' },
      { code: 'lint-es5-syntax', file: 'app/a.coffee', line: 2 },
    ],
    [
      'a global of later JavaScript',
      { 'app/a.coffee': 'one = 1\nlater = new Promise (done) -> done()\n' },
      { code: 'lint-es5-global', file: 'app/a.coffee', line: 2, severity: 'warning' },
    ],
    [
      'a method of later JavaScript',
      { 'app/a.js': 'Object.assign({}, {});' },
      { code: 'lint-es5-global', message: 'Object.assign is not part of ES5.' },
    ],
    [
      'an own property asked for the later way',
      { 'app/a.js': "Object.hasOwn({}, 'a');" },
      { code: 'lint-es5-global', message: 'Object.hasOwn is not part of ES5.' },
    ],
    [
      'raw later JavaScript in a template',
      { 'app/templates/a.pug': 'p\n- let x = 1', 'vendor/pug_runtime.js': '' },
      { code: 'lint-es5-syntax', file: 'app/templates/a.pug', line: 2 },
    ],
    [
      'a script in the page',
      { 'app/index.pug': page('script.', '  var f = () => 1;') },
      { code: 'lint-es5-syntax', file: 'app/index.pug', line: 6 },
    ],
    [
      'a handler in the page',
      { 'app/index.pug': page('p', "p(onclick='[1].includes(2)')") },
      { code: 'lint-es5-method', file: 'app/index.pug', line: 6 },
    ],
    ['"use strict" over files', { 'app/a.js': '"use strict";\nvar a;' }, { code: 'lint-use-strict', line: 1 }],
    [
      'a second document',
      { 'app/assets/about.html': '<p>about' },
      { code: 'lint-document', file: 'app/assets/about.html' },
    ],
    ['a link to a second document', { 'app/index.pug': page("a(href='about.html') about") }, { code: 'lint-document' }],
    [
      'a question that is always answered no',
      { 'app/a.coffee': "a = 1\nconfirm 'sure?'\n" },
      { code: 'lint-unsupported', file: 'app/a.coffee', line: 2, message: expect.stringContaining('always no') },
    ],
    [
      'a worker',
      { 'app/a.js': "this.w = new window.Worker('w.js');" },
      { code: 'lint-unsupported', message: 'Worker does not run behind the proxy.' },
    ],
    [
      'a touch event',
      { 'app/a.js': "document.addEventListener('touchstart', function () {});" },
      { code: 'lint-unsupported', message: expect.stringContaining('touchstart is not carried') },
    ],
    [
      'a function that mwl does not have',
      { 'app/index.pug': page("p(onclick='mwl.explode(1)')", "script(src='javascripts/vendor.js')") },
      { code: 'lint-unsupported', message: 'The library of shortcuts has no mwl.explode().' },
    ],
    [
      'a video',
      { 'app/index.pug': page('video') },
      { code: 'lint-unsupported', message: 'The page holds <video>, which phones are not sent.' },
    ],
    [
      'a file field',
      { 'app/index.pug': page("input(type='file')") },
      { code: 'lint-unsupported', message: expect.stringContaining('type="file"') },
    ],
    ['a frame', { 'app/index.pug': page("iframe(src='a.html')") }, { code: 'lint-frame' }],
    [
      'app.js before vendor.js',
      { 'app/index.pug': page("script(src='javascripts/app.js')", "script(src='javascripts/vendor.js')") },
      { code: 'lint-order' },
    ],
    ['an absolute path', { 'app/index.pug': page("script(src='/javascripts/vendor.js')") }, { code: 'lint-path' }],
    [
      'a script from elsewhere',
      { 'app/index.pug': page("script(src='https://example.org/a.js')") },
      { code: 'lint-path' },
    ],
    [
      'a missing image',
      { 'app/index.pug': page("img(src='gone.png')") },
      { code: 'lint-reference', message: expect.stringContaining('public/gone.png') },
    ],
    [
      'a missing image in a style',
      { 'app/assets/light/css/light.css': 'p { background: url("../images/gone.png") }' },
      { code: 'lint-reference', file: 'app/assets/light/css/light.css' },
    ],
    ...(
      [
        ['an import of a missing style sheet', '@import "missing.css";', 'lint-reference', '@import names missing.css'],
        ['an import from elsewhere', "@import 'http://example.org/a.css';", 'lint-path', '@import names http://ex'],
        ['an import by url()', '@IMPORT URL( gone.css );', 'lint-reference', 'url() names gone.css'],
      ] as const
    ).map(
      ([what, css, code, message]) =>
        [
          what,
          { 'app/assets/light/css/light.css': css },
          { code, file: 'app/assets/light/css/light.css', message: expect.stringContaining(message) },
        ] as const,
    ),
    ...(
      [
        ['a style element', 'style body { background: url(/abs.png) }', 'lint-path', 'url() names /abs.png'],
        ['a style attribute', 'p(style="background: url(nope.png)")', 'lint-reference', 'url() names nope.png'],
        ['a srcset', 'img(src="icon.png" srcset="icon.png 1x, nope.png 2x")', 'lint-reference', '<img> names nope.png'],
        ['a srcset of one', 'img(srcset="nope.png")', 'lint-reference', '<img> names nope.png'],
        ['a poster', 'video(poster="nope.png")', 'lint-reference', '<video> names nope.png'],
        ['an image button', 'input(type="image" src="/abs.png")', 'lint-path', '<input> names /abs.png'],
        ['a base', 'base(href="http://example.org/")', 'lint-path', '<base> makes every path relative to http://ex'],
      ] as const
    ).map(
      ([what, line, code, message]) =>
        [
          `${what} that names what is not there`,
          { 'app/index.pug': page(line) },
          { code, message: expect.stringContaining(message) },
        ] as const,
    ),
    [
      'an image that is too large',
      { 'app/assets/a.png': png(401, 10) },
      { code: 'lint-image-size', file: 'app/assets/a.png' },
    ],
    [
      'an icon that is not square',
      { 'app/assets/icon.png': png(64, 32) },
      { code: 'lint-image-size', file: 'app/assets/icon.png' },
    ],
    ['an image that is not what its name says', { 'app/assets/a_40x40.png': png(40, 39) }, { code: 'lint-image-name' }],
    ['a broken image', { 'app/assets/a.png': 'no image' }, { code: 'lint-image-broken' }],
    [
      'a heavy image',
      { 'app/assets/a.png': Buffer.concat([png(4, 4), Buffer.alloc(30_000)]) },
      { code: 'lint-weight', file: 'app/assets/a.png' },
    ],
    [
      'a heavy page',
      { 'app/assets/a.css': 'p{}'.repeat(50_000) },
      { code: 'lint-weight', message: expect.stringContaining('budget "page" is 100.0 KB') },
    ],
    [
      'a budget of its own',
      { 'handset.config.json': '{"budgets":{"script":10}}', 'app/a.js': 'var something = "long enough";' },
      { code: 'lint-weight', message: expect.stringContaining('"script" is 10 B') },
    ],
    [
      'a widget of another namespace',
      { 'app/assets/config.xml': '<widget><name>a</name></widget>' },
      { code: 'widget-invalid', line: 1 },
    ],
    [
      'no name',
      { 'app/assets/config.xml': '<widget xmlns="http://www.w3.org/ns/widgets"><name> </name></widget>' },
      { code: 'widget-invalid', message: 'The widget has no name.' },
    ],
    [
      'a missing icon',
      { 'app/assets/config.xml': config('<icon src="gone.png"/>') },
      { code: 'widget-invalid', line: 3, message: expect.stringContaining('gone.png') },
    ],
    [
      'a missing start page',
      { 'app/assets/config.xml': config('<content src="gone.html"/>') },
      { code: 'widget-invalid', line: 3 },
    ],
    [
      'a start page of a strange type',
      { 'app/assets/config.xml': config('<content src="index.html" type="text/plain"/>') },
      { code: 'widget-invalid' },
    ],
    [
      'two start pages',
      { 'app/assets/config.xml': config('<content src="index.html"/><content src="index.html"/>') },
      { code: 'widget-invalid', message: expect.stringContaining('stands twice') },
    ],
    [
      'two names of one language',
      { 'app/assets/config.xml': config('<name>b</name>') },
      { code: 'widget-invalid', message: expect.stringContaining('stands twice') },
    ],
    [
      'a preference without a name',
      { 'app/assets/config.xml': config('<preference value="x"/>') },
      { code: 'widget-invalid' },
    ],
    [
      'a preference twice',
      { 'app/assets/config.xml': config('<preference name="a"/><preference name="a"/>') },
      { code: 'widget-invalid' },
    ],
    [
      'a preference that is maybe read-only',
      { 'app/assets/config.xml': config('<preference name="a" readonly="maybe"/>') },
      { code: 'widget-invalid' },
    ],
    [
      'a feature that is no IRI',
      { 'app/assets/config.xml': config('<feature name="camera"/>') },
      { code: 'widget-invalid' },
    ],
    [
      'a param without a value',
      { 'app/assets/config.xml': config('<feature name="http://example.org/f"><param name="a"/></feature>') },
      { code: 'widget-invalid' },
    ],
    [
      'an empty version',
      { 'app/assets/config.xml': config('').replace('version="1.0"', 'version=" "') },
      { code: 'widget-invalid' },
    ],
    [
      'an id that is no IRI',
      { 'app/assets/config.xml': config('').replace('http://example.org/a', 'my app') },
      { code: 'widget-invalid' },
    ],
    ['a width that is no number', { 'app/assets/config.xml': config('', 'width="100%"') }, { code: 'widget-invalid' }],
    [
      'an unknown view mode',
      { 'app/assets/config.xml': config('', 'viewmodes="sideways"') },
      { code: 'widget-invalid' },
    ],
    [
      'an access that is no origin',
      { 'app/assets/config.xml': config('<access origin="example.org"/>') },
      { code: 'widget-invalid' },
    ],
  ];

  it.each(cases)('finds %s', async (_what, files, found) => {
    const { status, problems } = await lint(files);
    expect(problems).toEqual(expect.arrayContaining([expect.objectContaining(found)]));
    expect(status).toBe(problems.some((p) => p.severity === 'error') ? 1 : 0);
  });

  it('says what to add where something is missing', async () => {
    const { stdout } = await handset(smallProject(), ['lint', '--json']);
    const { problems } = JSON.parse(stdout) as { problems: Problem[] };
    expect(problems.map(({ code, remedy }) => `${code}: ${remedy}`)).toEqual([
      'widget-advice: Add id="http://…" to <widget>.',
      'widget-advice: Add version="1.0" to <widget>.',
      'widget-advice: Add <icon src="icon.png"/>.',
    ]);
  });

  it('does not cry wolf', async () => {
    const { problems } = await lint({
      'app/a.js':
        'var Map = function () {};\nnew Map();\nif (typeof Promise === "function") new Promise(function () {});\nvar o = { fetch: 1 };\no.fetch;',
      'app/b.coffee':
        'class A\n  constructor: (@a = 1) ->\n  say: => "#{@a}"\nfor x in [1..3] when x isnt 2 then new A x\n[p, q] = [1, 2]\n',
      'app/assets/config.xml': config(
        '<name xml:lang="es">b</name><preference name="a" readonly="true"/><feature name="http://example.org/f" required="false"/><access origin="https://news.example" subdomains="true"/>',
      ),
      'app/assets/light/js/a.js': '"use strict";\nvar theme = 1;',
      'app/index.pug': page(
        "a(href='#x') x",
        "a(href='http://example.org/') out",
        "img(src='icon.png?1' srcset='icon.png, icon.png 2x,data:image/png;base64,AA 3x')",
        "p(style='background: url(icon.png)')",
      ),
      'app/assets/a.css':
        '@import "light/css/light.css"; @import url("light/css/light.css"); p { background: url(#a), url( "icon.png" ) } /* url(no) */',
    });
    expect(problems).toEqual([]);
  });

  describe('methods that came after ES5', () => {
    /** Names that lint finds in one script, in its order. */
    const found = async (script: string, others: Record<string, string> = {}) => {
      const { problems } = await lint({ 'app/a.js': script, ...others });
      return problems
        .filter((p) => p.file === 'app/a.js')
        .map((p) => /(\S+?)(\(\))? (is not|in ES5)/.exec(p.message)?.[1]);
    };

    it('names the file, the line, the method and what to write instead', async () => {
      const { problems } = await lint({
        'app/a.js': 'var one;\n[1].includes(one);',
        'app/b.coffee': "one = 1\n\ntwo = 'a'.padStart 3\n",
        'app/templates/c.pug': 'ul\n  each key in Object.values(things)\n    li= key.padEnd(3)',
        'vendor/pug_runtime.js': 'var pug = {};',
      });
      expect(problems.map(({ file, line, message }) => [file, line, message])).toEqual([
        ['app/a.js', 2, 'Arrays have no includes() in ES5.'],
        ['app/b.coffee', 3, 'Strings have no padStart() in ES5.'],
        ['app/templates/c.pug', 2, 'Object.values is not part of ES5.'],
        ['app/templates/c.pug', 3, 'Strings have no padEnd() in ES5, and no script of this application defines one.'],
      ]);
      expect(problems[0]).toMatchObject({
        code: 'lint-es5-method',
        severity: 'warning',
        remedy: 'Write x.indexOf(y) !== -1. Or put a library that brings it into vendor/.',
      });
      expect(problems[3]?.remedy).toMatch(/a comment says so: handset-allow padEnd\.$/);
    });

    const plain = [
      ["[1].includes(x); [1]['find'](f); 'abc'.startsWith(y)", ['includes', 'find', 'startsWith']],
      ['var list = []; list.findIndex(f); var all = list.map(f); all.flat()', ['findIndex', 'flat']],
      ['var t = "a" + b; t.repeat(2); String(x).padEnd(3); (x + "").at(0)', ['repeat', 'padEnd', 'at']],
      [
        'text.split(",").flatMap(f); Object.keys(o).includes(k); typeof x.endsWith("b")',
        ['flatMap', 'includes', 'endsWith'],
      ],
      [
        '(items || []).find(f); (a ? b : "").trimStart(); x.trim().replaceAll("a", "b")',
        ['find', 'trimStart', 'replaceAll'],
      ],
      ['Array.prototype.find.call(list, f); [].fill.call(l, 0); var e = [].entries;', ['find', 'fill', 'entries']],
      ['$("#a").text().trim().padStart(3); new Array(3).fill(0)', ['padStart', 'fill']],
      ['things.includes(1); a.b.c.flatMap(f); get().padStart(2)', ['includes', 'flatMap', 'padStart']],
      [
        'Object.assign({}, o); window.Object.entries(o); Array.from(l)',
        ['Object.assign', 'Object.entries', 'Array.from'],
      ],
      ['window.fetch("/"); self.Promise.all([]); new Map(); new window.Set()', ['fetch', 'Promise', 'Map', 'Set']],
      [
        'Number.isInteger(1); Math.trunc(2); String.raw; Symbol("a"); Object.values(o)',
        ['Number.isInteger', 'Math.trunc', 'String.raw', 'Symbol', 'Object.values'],
      ],
      ['new RegExp("a", "gu")', ['RegExp']],
    ] as const;
    it.each(plain)('%s', async (script, names) => {
      expect(await found(script)).toEqual(names);
    });

    const own = [
      [
        'a collection, an element and a view of a library',
        '$(".a").find("li"); $(".a").children().find(sel); this.$el.find(s); this.$("b").find(s); $list.find(s); _.find(l, f); _(l).includes(1); _.chain(l).flat(); jQuery.find(f)',
      ],
      ['a selector or a query, which no array takes', 'view.find("li"); posts.find({ id: 1 }); store.find();'],
      ['an object of its own', 'var menu = { find: function () {} }; menu.find(f); this.includes(1); ({}).at(1)'],
      [
        'a name that some object of its own has',
        'Store.prototype.find = function () {}; function look(store) { return store.find(f); }',
      ],
      ['objects of the browser', 'canvas.fill(); node.normalize(); event.repeat; form.values(); response.keys()'],
      [
        'a guard',
        'if (window.Promise) new Promise(f); if (Array.prototype.find) list.find(f); "fetch" in window && fetch("/"); Object.assign && Object.assign(a, b); var k = typeof Symbol === "function" && Symbol("a")',
      ],
      [
        'what it brings itself',
        'Array.prototype.includes = function () {}; [1].includes(1); Object.defineProperty(String.prototype, "padStart", { value: f }); "a".padStart(2); Object.assign = f; Object.assign(a, b); window.Promise = f; new Promise(f)',
      ],
      [
        'ES5',
        '[1].indexOf(1); [1].map(f).filter(f).reduce(f); " a ".trim().substr(1); Object.keys(o); Date.now(); JSON.parse(s); f.bind(o); Array.isArray(l); o.constructor(); o.toString(); o.hasOwnProperty("a")',
      ],
      [
        'a comment',
        '// handset-allow includes, Promise\n[1].includes(new Promise(f));\nvar l = "a".padStart(2); // handset-allow padStart',
      ],
    ] as const;
    it.each(own)('lets pass %s', async (_what, script) => {
      expect(await found(script)).toEqual([]);
    });

    it('lets pass what another script of the application defines, and what a library in vendor/ brings', async () => {
      const script = 'posts.find(f); posts.at(0); new Store(); new Map(); fetch("/"); [1].includes(2); "a".at(0)';
      expect(await found(script)).toEqual(['find', 'at', 'Map', 'fetch', 'includes', 'at']);
      // What another object calls so is no method of arrays.
      const others = {
        'app/b.coffee': 'class Posts\n  find: (f) -> f\n@Map = class Map\n',
        'vendor/lib.js':
          '(function (g) { g.fetch = function () {}; Array.prototype.includes = function () {}; var m = { at: 1 }; class A { b = 1 } })(this);',
      };
      expect(await found(script, others)).toEqual(['at']);
      const allow = { 'handset.config.json': '{ "allow": ["find", "at", "Map", "fetch", "includes"] }' };
      expect(await found(script, allow)).toEqual([]);
    });

    it('never fails on a script that it can read', () => {
      const words = fc.constantFrom(
        ...'a.find(f) [1] "x" ( ) . , ; + = || ? : at() new Map $ this function(){} var x = {}'.split(' '),
      );
      fc.assert(
        fc.property(fc.array(words, { maxLength: 12 }), (list) => {
          const text = list.join(' ');
          const place = () => ({ file: 'a.js', line: 1 });
          const script = { kind: 'file' as const, code: text, place, sourceLine: () => text };
          const definitions = noDefinitions();
          define(script, definitions);
          for (const { code, line } of checkScript(script, definitions, new Set())) {
            expect(code).toMatch(/^lint-es5/);
            expect(line).toBe(1);
          }
        }),
      );
    });
  });

  it('knows every code of the catalogue by name in the guide', () => {
    const root = path.resolve(import.meta.dirname, '../../..');
    const guide = readFileSync(path.join(root, 'docs/guides/handset.md'), 'utf8');
    return import('../src/problem-catalogue.ts').then(({ PROBLEM_CATALOGUE }) => {
      expect(Object.keys(PROBLEM_CATALOGUE).filter((code) => !guide.includes(`\`${code}\``))).toEqual([]);
    });
  });
});
