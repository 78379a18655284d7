import { mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAssembler } from '../src/build/assembler.ts';
import { DEVICES } from '../src/preview/devices.ts';
import { openPreview } from '../src/preview/preview.ts';
import { openProject } from '../src/project/project.ts';
import { startProxy } from '../src/proxy/proxy-server.ts';
import { startDevServer } from '../src/server/dev-server.ts';
import { useChromium } from './support/chromium.ts';
import { handset } from './support/cli.ts';
import { PACKAGE, smallProject, text, write } from './support/project.ts';

const { browser } = useChromium();
const LIVESCRIPT = createRequire(import.meta.url).resolve('livescript/package.json');

const PAGE = `doctype html
html
  head
    title app
  body
    #main
    include parts/_foot.jade
    #tab_1.tab_selected(onclick='mwl.switchClass("#tab_1", "tab_selected", "tab_not_selected")') tab
    script(src='javascripts/vendor.js')
    script(src='javascripts/templates.js')
    script(src='javascripts/app.js')
    script.
      require('initialize').start()
`;

/** Every construct that applications made for Brunch use: names from app/, relative ones, index, both kinds of export. */
const BRUNCH_APP = {
  'app/index.pug': PAGE,
  'app/parts/_foot.jade': 'p#foot foot\n',
  'app/initialize.coffee': `view = require 'views/main_view'
tabs = require './lib/tabs'
exports.start = ->
  document.getElementById('main').innerHTML = view.render title: 'News', action: tabs.select(2)
  document.getElementById('go').onclick = -> @textContent = require('models').count()
`,
  'app/lib/tabs.coffee': `exports.select = (n) -> "mwl.addClass('#tab_#{n}', 'chosen');"\n`,
  'app/views/main_view.js': `var template = require('./templates/main');
module.exports = { render: function (data) { return template(data); } };\n`,
  'app/views/templates/main.jade': 'h1= title\np#tab_2(onclick=action) two\nbutton#go count\n',
  'app/models/index.coffee': `Story = require './story'\nmodule.exports = count: -> 'stories: ' + new Story().n\n`,
  'app/models/story.coffee': `module.exports = class Story\n  constructor: -> @n = 3\n`,
  'vendor/scripts/jade_runtime.js': 'this.jade = { escape: function (text) { return text; } };\n',
  'vendor/styles/base.css': 'body { margin: 3px }\n',
  'app/styles/app.css': 'h1 { color: rgb(1, 2, 3) }\n',
};

async function preview(root: string) {
  const built = await handset(root, ['build']);
  expect([built.status, built.stderr]).toEqual([0, '']);
  const server = await startDevServer({ root, host: 'localhost', port: 0, live: false });
  const opened = await openPreview({ url: server.url, device: DEVICES.touch, headless: true, env: process.env });
  onTestFinished(async () => {
    await opened.close();
    await server.close();
  });
  return { page: opened.page, said: built.stdout };
}

async function phoneOf(root: string) {
  const { settings, plugins } = await openProject(root);
  const { outputs = new Map() } = await createAssembler({ root, settings, plugins, production: false }).assemble();
  const trips: string[] = [];
  const proxy = await startProxy({
    browser: browser(),
    outputs: () => outputs,
    device: DEVICES.touch,
    host: 'localhost',
    port: 0,
    preview: false,
    visits: 2,
    idle: 60_000,
    onExchange: ({ kind }) => kind === 'round trip' && trips.push(kind),
    onRefused: () => undefined,
    onPageError: () => undefined,
  });
  const context = await browser().newContext({ viewport: { width: 240, height: 400 }, hasTouch: true });
  onTestFinished(async () => {
    await context.close();
    await proxy.close();
  });
  const page = await context.newPage();
  await page.goto(proxy.url);
  return { page, trips };
}

describe('an application made for Brunch', () => {
  it('runs as it is: modules, templates as modules, mwl, styles, the runtime of Jade', async () => {
    const { page, said } = await preview(smallProject(BRUNCH_APP));
    expect(await page.textContent('h1')).toBe('News');
    await page.tap('#tab_2');
    await page.locator('#tab_2.chosen').waitFor();
    await page.tap('#tab_1');
    await page.locator('#tab_1.tab_not_selected').waitFor();
    await page.tap('#go');
    await page.locator('#go:text-is("stories: 3")').waitFor();
    expect(said).toMatch(/jade_runtime\.js is not the runtime of these templates/);
  });

  it('runs behind the proxy, where mwl costs no round trip', async () => {
    const { page, trips } = await phoneOf(smallProject(BRUNCH_APP));
    await page.tap('#tab_2');
    await page.locator('#tab_2.chosen').waitFor();
    await page.tap('#tab_1');
    await page.locator('#tab_1.tab_not_selected').waitFor();
    expect(trips).toEqual([]);
    await page.tap('#go');
    await page.locator('#go:text-is("stories: 3")').waitFor();
    expect(trips).toHaveLength(1);
  });

  it('finds mwl where only the script of a theme uses it', async () => {
    const root = smallProject({ 'app/assets/light/js/light.js': "mwl.hide('#a');" });
    await handset(root, ['build']);
    expect(text(root, 'public/javascripts/vendor.js')).toContain('handset client library');
  });

  it('joins its style sheets, those of vendor first', async () => {
    const root = smallProject(BRUNCH_APP);
    await handset(root, ['build']);
    expect(text(root, 'public/stylesheets/app.css')).toMatch(/margin: 3px[\s\S]*rgb\(1, 2, 3\)/);
  });

  it('points its errors at the sources', async () => {
    const root = smallProject({ ...BRUNCH_APP, 'app/models/story.coffee': 'module.exports = -> null.n\n' });
    await handset(root, ['build']);
    const map = JSON.parse(text(root, 'public/javascripts/app.js.map')) as {
      sections: { offset: { line: number }; map: { sources: string[] } }[];
    };
    const section = map.sections.find(({ map: { sources } }) => sources[0] === 'app/models/story.coffee');
    const lines = text(root, 'public/javascripts/app.js').split('\n');
    expect(lines[section?.offset.line ?? 0]).toContain('require.register("models/story"');
  });

  it('runs the unit tests of its modules', async () => {
    const tested = `module.exports = class Story\n  constructor: -> @n = 3\nif typeof test is 'function'\n  test 'counts', -> assert.equal new module.exports().n, 3\n`;
    const root = smallProject({
      ...BRUNCH_APP,
      'app/models/story.coffee': tested,
      'app/models/story.test.coffee': `test 'is required', -> assert.equal typeof require('models/story'), 'function'\n`,
    });
    const { status, stdout } = await handset(root, ['test']);
    expect([status, stdout]).toEqual([0, expect.stringMatching(/counts[\s\S]*is required/)]);
  });
});

describe('what public applications do', () => {
  it('Jade of 2012: a page that begins with !!!, a script without a dot, a template that is handed its runtime', async () => {
    const page = `!!! 5
html
  head
    title Foo
    // a comment
    script(type='text/javascript')
      function refresh() {
        var template = require("templates/mainlist");
        require("testCs").call(); require("testJs").call();
        var ns = {listitems: ["one", "two"]};
        document.getElementById("listdiv").innerHTML = template(ns, jade.attrs, jade.escape, jade.rethrow, jade.merge);
      }
    script(language='javascript', type='text/javascript', src='javascripts/app.js')
    script(language='javascript', type='text/javascript',
      src='javascripts/vendor.js')
    script(language='javascript', type='text/javascript', src='javascripts/templates.js')
  body
    .ui-button(onclick="refresh();") Press this
    include parts/foot
    #listdiv
`;
    const root = smallProject({
      'app/index.jade': page,
      'app/main.js': '',
      'app/testCs.coffee': 'exports.call = ->\n\twindow.called = ["cs"]\n',
      'app/testJs.js': 'exports.call = function () { window.called.push("js"); }',
      'app/parts/foot.jade': 'p#foot foot\n',
      'app/templates/mainlist.jade': 'ul\n  for it, i in listitems\n    li(id="item#{i}")= it\n',
      'vendor/jade_runtime.js': 'jade = (function (exports) { exports.escape = String; return exports; })({});\n',
    });
    rmSync(path.join(root, 'app/index.pug'));
    const { page: shown } = await preview(root);
    await shown.tap('text=Press this');
    await shown.locator('#item1:text-is("two")').waitFor();
    expect(await shown.evaluate('called.join()')).toBe('cs,js');
  });

  it('a page that loads vendor.js and app.js alone: its templates are in app.js', async () => {
    const plugin = `export const plugin = { name: 'braces', extensions: ['.hbs'], targets: ['template'],
      compile: ({ text }) => ({ output: 'function (data) { return ' + JSON.stringify(text) + '.replace("{{name}}", data.name); }' }) };`;
    const root = smallProject({
      'plugins/braces.js': plugin,
      'package.json': '{ "type": "module" }',
      'handset.config.json':
        '{ "plugins": ["plugins/braces.js"], "first": ["vendor/scripts/console-helper.js", "vendor/scripts/lib-*.js"] }',
      'app/assets/index.html': `<!doctype html><html><head><script src="javascripts/vendor.js"></script><script src="javascripts/app.js"></script>
        <script>require('initialize');</script></head><body><div id="app"></div></body></html>`,
      'app/main.js': '',
      'app/initialize.coffee': `{Application} = require 'application'\ndocument.addEventListener 'DOMContentLoaded', -> new Application().show()\n`,
      'app/application.coffee': `template = require './views/templates/home'\nexports.Application = class Application\n  show: -> document.getElementById('app').innerHTML = template name: lib\n`,
      'app/views/templates/home.hbs': 'Hello {{name}}',
      'vendor/scripts/lib-1.0.js': 'var lib = order.join();\n',
      'vendor/scripts/console-helper.js': 'var order = ["helper first"];\n',
    });
    rmSync(path.join(root, 'app/index.pug'));
    const { page } = await preview(root);
    await page.locator('#app:text-is("Hello helper first")').waitFor();
  });
});

describe('modules', () => {
  it('are not made of scripts that require nothing of the application', async () => {
    const umd = `(function (f) { if (typeof exports === 'object') module.exports = f(); else this.lib = f(); })(function () { return 1; });`;
    const root = smallProject({ 'app/umd.js': umd, 'app/main.js': 'var shared = lib; // require("elsewhere")\n' });
    await handset(root, ['build']);
    expect(text(root, 'public/javascripts/app.js')).not.toContain('require.register');
  });

  it.each([
    ['commonjs', true],
    ['none', false],
  ])('are what "modules": "%s" says', async (modules, wrapped) => {
    const files = wrapped ? { 'app/main.js': 'var own = 1;\n' } : BRUNCH_APP;
    const root = smallProject({ ...files, 'handset.config.json': JSON.stringify({ modules }) });
    await handset(root, ['build']);
    expect(text(root, 'public/javascripts/app.js').includes('require.register("')).toBe(wrapped);
  });

  it('know a template that came while sources are watched', async () => {
    const root = smallProject({ 'app/main.js': "require('./part');\n", 'app/part.js': 'exports.n = 1;\n' });
    write(root, { 'vendor/pug_runtime.js': 'var pug = {};\n' });
    const { settings, plugins } = await openProject(root);
    const assembler = createAssembler({ root, settings, plugins, production: false });
    await assembler.assemble();
    write(root, { 'app/templates/late.pug': 'p late\n' });
    const after = await assembler.reassemble(['app/templates/late.pug']);
    const app = Buffer.from(after?.outputs?.get('javascripts/app.js')?.read() ?? '').toString();
    expect(app).toContain('require.register("templates/late"');
  });

  it('tell what they do not find, and ask a `require` that was there before', async () => {
    const root = smallProject({
      'app/index.pug': `doctype html\nhtml\n  body\n    p#seen\n    script(src='javascripts/vendor.js')\n    script(src='javascripts/app.js')\n    script.\n      require('start')\n`,
      'app/start.js': `var seen = document.getElementById('seen');
seen.textContent = require('elsewhere') + require('./part');
try { require('./gone'); } catch (error) { seen.title = error.message; }\n`,
      'app/part.js': `module.exports = ' and a part';\n`,
      'vendor/loader.js': `this.require = function (name) { if (name === 'elsewhere') return 'an earlier one'; throw new Error('no ' + name); };\n`,
    });
    const { page } = await preview(root);
    expect([await page.textContent('#seen'), await page.getAttribute('#seen', 'title')]).toEqual([
      'an earlier one and a part',
      'no ./gone',
    ]);
  });
});

describe('handset build says once', () => {
  it('what nothing handles, what an order names in vain, and nothing of papers', async () => {
    const root = smallProject({
      'app/style.styl': 'a\n  b 1\n',
      'app/data.json': '{}',
      'vendor/README.md': 'x',
      'vendor/LICENSE': 'x',
      'app/notes.txt': 'x',
      'app/main.test.js': '',
      'handset.config.json': '{ "first": ["vendor/jquery*.js", "app/*.js"] }',
    });
    const { stdout } = await handset(root, ['build']);
    expect(stdout).toMatch(/Nothing handles app\/data\.json, app\/style\.styl: they are not in public\//);
    expect(stdout).toMatch(/"vendor\/jquery\*\.js" is no source/);
    expect(stdout).not.toMatch(/"app\/\*\.js" is no source|LICENSE|notes|README/);
  });

  it('what a module requires and nothing brings', async () => {
    const files = {
      'app/main.js': "require('lib/tabs'); require('./gone');",
      'app/lib/tabs.js': '',
      'vendor/pug_runtime.js': readFileSync(path.join(PACKAGE, 'scaffold/vendor/pug_runtime.js')),
    };
    expect((await handset(smallProject(files), ['build'])).stdout).toMatch(
      /app\/main\.js — It requires "\.\/gone", which is no script/,
    );
    const brought = { ...files, 'vendor/more.js': 'window.require = function () {};' };
    expect((await handset(smallProject(brought), ['build'])).stdout).not.toMatch(/It requires/);
  });

  it('that the page itself uses mwl and does not load it, and where', async () => {
    const root = smallProject({ 'app/index.pug': "p(onclick='mwl.hide(1)') a\n" });
    expect((await handset(root, ['build'])).stdout).toMatch(/app\/index\.pug — The page uses mwl/);
  });

  it('nothing where a plugin of the application handles them', async () => {
    const plugin = `export const plugin = { name: 'upper', extensions: ['.styl'], targets: ['style'], compile: ({ text }) => ({ output: text.toUpperCase() }) };`;
    const root = smallProject({
      'app/style.styl': 'a { b: 1 }\n',
      'plugins/upper.js': plugin,
      'package.json': '{ "type": "module" }',
      'handset.config.json': '{ "plugins": ["plugins/upper.js"] }',
    });
    const { stdout } = await handset(root, ['build']);
    expect(stdout).not.toMatch(/Nothing handles/);
    expect(text(root, 'public/stylesheets/app.css')).toBe('A { B: 1 }\n');
  });

  it('where a production build would not be ES5', async () => {
    const root = smallProject({ 'app/late.js': 'var a = 1;\nvar b = [1].map((x) => x);\n' });
    const { status, stdout } = await handset(root, ['build', '--production']);
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/app\/late\.js:2[\s\S]*newer than ES5[\s\S]*Write it in ES5/),
    ]);
    expect((await handset(root, ['build'])).status).toBe(0);
    write(root, { 'app/late.js': '', 'app/assets/light/js/old.min.js': 'var a;\nlet b;\n' });
    expect((await handset(root, ['build', '--production'])).stdout).toMatch(
      /light\/js\/old\.min\.js:2[^\n]*newer than ES5/,
    );
  });
});

describe("the guide's plugin", () => {
  it('compiles LiveScript as it is written there', async () => {
    const guide = readFileSync(path.join(PACKAGE, '../../docs/guides/handset.md'), 'utf8');
    const plugin = /```js\n(import livescript[\s\S]*?)```/.exec(guide)?.[1] ?? '';
    const root = smallProject({
      'plugins/livescript.js': plugin,
      'package.json': '{ "type": "module" }',
      'handset.config.json': '{ "plugins": ["plugins/livescript.js"] }',
      'app/main.js': '',
      'app/double.ls': 'window.doubled = [1 2 3] |> (.map (* 2))\nthrow new Error "late" if window.fails\n',
    });
    mkdirSync(path.join(root, 'node_modules'));
    symlinkSync(path.dirname(LIVESCRIPT), path.join(root, 'node_modules/livescript'));
    const { page } = await preview(root);
    expect(await page.evaluate('doubled.join()')).toBe('2,4,6');
    const app = text(root, 'public/javascripts/app.js');
    expect(app.match(/sourceMappingURL=\S+/g)).toEqual(['sourceMappingURL=app.js.map']);
    expect(text(root, 'public/javascripts/app.js.map')).toContain('"sources":["app/double.ls"]');
  });
});
