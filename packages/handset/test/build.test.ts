import { rmSync, statSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import path from 'node:path';
import { parse } from 'acorn';
import { describe, expect, it } from 'vitest';
import { handset } from './support/cli.ts';
import { newsCopy, scaffoldCopy, smallProject, text, tree, write } from './support/project.ts';

describe('handset build', () => {
  it('makes the same bytes in another folder, in both modes', async () => {
    for (const mode of [[], ['--production']]) {
      const [a, b] = [newsCopy(), newsCopy()];
      await handset(a, ['build', ...mode]);
      await handset(b, ['build', ...mode]);
      const [one, other] = [tree(path.join(a, 'public')), tree(path.join(b, 'public'))];
      expect(one.size).toBeGreaterThan(30);
      expect([...other]).toEqual([...one]);
    }
  });

  it('writes nothing when nothing changed', async () => {
    const root = scaffoldCopy();
    await handset(root, ['build']);
    const before = statSync(path.join(root, 'public/javascripts/app.js')).mtimeMs;
    const again = JSON.parse((await handset(root, ['build', '--json'])).stdout) as { written: string[] };
    expect(again.written).toEqual([]);
    expect(statSync(path.join(root, 'public/javascripts/app.js')).mtimeMs).toBe(before);
  });

  it('removes what it wrote and no longer makes, and nothing of others', async () => {
    const root = smallProject({ 'app/assets/old/css/old.css': 'p {}', 'public/notes.txt': 'mine' });
    const first = await handset(root, ['build']);
    expect(first.stdout).toContain('public/ holds files that handset did not write: notes.txt');
    expect(tree(path.join(root, 'public')).has('old/css/old.css')).toBe(true);
    rmSync(path.join(root, 'app/assets/old'), { recursive: true });
    await handset(root, ['build', '--production']);
    const names = [...tree(path.join(root, 'public')).keys()];
    expect(names).toContain('notes.txt');
    expect(names.filter((name) => name.startsWith('old') || name.endsWith('.map'))).toEqual([]);
    expect(statSync(path.join(root, 'public/old'), { throwIfNoEntry: false })).toBeUndefined();
    await handset(root, ['build', '--clean']);
    expect(tree(path.join(root, 'public')).has('notes.txt')).toBe(false);
  });

  it('joins the plain and the compiled scripts folder by folder, files by name, and takes a stated order', async () => {
    const files = {
      'app/b.coffee': 'log "b"',
      'app/a.js': 'log("a")',
      'app/sub/a.js': 'log("sub")',
      'app/c.test.js': 'log("no")',
    };
    const root = smallProject(files);
    const order = () => [...text(root, 'public/javascripts/app.js').matchAll(/log\("(\w+)"\)/g)].map((m) => m[1]);
    await handset(root, ['build']);
    expect(order()).toEqual(['a', 'b', 'sub']);
    write(root, { 'handset.config.json': '{ "first": ["app/sub/a.js"], "last": ["app/a.js"] }' });
    await handset(root, ['build']);
    expect(order()).toEqual(['sub', 'b', 'a']);
  });

  it('keeps two files apart that would run into one statement', async () => {
    const root = smallProject({
      'app/a.js': 'var a = function () { return 1; } // no semicolon',
      'app/b.js': '(function () {})()',
    });
    await handset(root, ['build']);
    const scope: { a?: () => number } = {};
    new Function(`${text(root, 'public/javascripts/app.js')}; this.a = a;`).call(scope);
    expect(scope.a?.()).toBe(1);
  });

  it('lets the template win over the page in assets, and says so', async () => {
    const root = smallProject({ 'app/assets/index.html': '<p>asset</p>' });
    const both = await handset(root, ['build']);
    expect(both.stdout).toMatch(/warning app\/assets\/index.html — app\/index.pug wins/);
    expect(text(root, 'public/index.html')).toContain('small');
    rmSync(path.join(root, 'app/index.pug'));
    const one = await handset(root, ['build']);
    expect(one.stdout).not.toContain('warning');
    expect(text(root, 'public/index.html')).toBe('<p>asset</p>');
  });

  it('maps every joined script to its source and line in development', async () => {
    const root = scaffoldCopy();
    await handset(root, ['build']);
    const code = text(root, 'public/javascripts/app.js');
    expect(code).toMatch(/\/\/# sourceMappingURL=app\.js\.map\n$/);
    const map = new SourceMap(JSON.parse(text(root, 'public/javascripts/app.js.map')) as SourceMapPayload);
    const at = (needle: string): unknown => {
      const before = code.slice(0, code.indexOf(needle)).split('\n');
      const entry = map.findEntry(before.length - 1, before.at(-1)?.length ?? 0);
      if (!('originalSource' in entry)) return undefined;
      return [entry.originalSource, text(root, entry.originalSource).split('\n')[entry.originalLine]];
    };
    expect(at('app.search = function')).toEqual([
      'app/testCs.coffee',
      expect.stringContaining('app.search = (items, words)'),
    ]);
    expect(at('app.refresh = function')).toEqual(['app/testJs.js', expect.stringContaining('app.refresh = function')]);
  });

  it('minifies for production to ES5, without maps and without the unit tests', async () => {
    const root = scaffoldCopy();
    await handset(root, ['build']);
    const large = text(root, 'public/javascripts/app.js').length;
    await handset(root, ['build', '--production']);
    for (const [name, bytes] of tree(path.join(root, 'public'))) {
      if (!name.endsWith('.js')) continue;
      expect(bytes.toString(), name).not.toContain('sourceMappingURL');
      parse(bytes.toString(), { ecmaVersion: 5 });
    }
    const app = text(root, 'public/javascripts/app.js');
    expect(app.length).toBeLessThan(large * 0.6);
    expect(app).not.toContain('assert');
    expect(text(root, 'public/javascripts/vendor.js')).toContain('pug-runtime 3.0.1 | MIT');
  });

  const SAYS = "if (typeof test === 'function') test('says', function () { assert.ok(1); });\n";
  it.each([
    ['declares', { 'app/a.js': "var test = { run: function () { return 'ran'; } };\nthis.result = test.run();" }],
    ['declares after it', { 'app/a.js': `this.result = test();\n${SAYS}function test() { return 'ran'; }` }],
    ['assigns', { 'app/a.js': `test = function () { return 'ran'; };\n${SAYS}this.result = test();` }],
    [
      'has of a library',
      { 'vendor/a.js': "this.test = { run: 'ran' };", 'app/a.js': `${SAYS}this.result = test.run;` },
    ],
    ['takes from the page', { 'app/a.js': `${SAYS}this.result = test.title;`, 'app/index.pug': 'p#test(title="ran")' }],
  ])('keeps in production what an application %s as `test`', async (_what, files) => {
    const root = smallProject(files);
    await handset(root, ['build', '--production']);
    const scope: { result?: string; test?: unknown } = {};
    const code = ['vendor', 'app'].map((name) => text(root, `public/javascripts/${name}.js`)).join('\n');
    const named = 'app/index.pug' in files ? { title: 'ran' } : undefined;
    new Function('test', `${code.replace('this.test', 'test')}`).call(scope, named);
    expect(scope.result).toBe('ran');
  });

  it('leaves out the unit tests of an application whose functions have a parameter `test`', async () => {
    const keep =
      'this.keep = function (list, test) { return list.filter(test || function (a) { return a.test(1); }); };';
    const root = smallProject({ 'app/a.js': `// A test. What stands here is no code.\n${keep}\n${SAYS}` });
    await handset(root, ['build', '--production']);
    expect(text(root, 'public/javascripts/app.js')).not.toContain('assert');
  });

  it('lets no "use strict" of one file cover another', async () => {
    const root = smallProject({
      'vendor/a.js': '"use strict"; var strictLib = 1;',
      'vendor/b.js': 'implicitGlobal = 2;\nthis.found = implicitGlobal;',
    });
    for (const mode of [[], ['--production']]) {
      await handset(root, ['build', ...mode]);
      const scope: { found?: number } = {};
      new Function(text(root, 'public/javascripts/vendor.js')).call(scope);
      expect(scope.found).toBe(2);
    }
    Reflect.deleteProperty(globalThis, 'implicitGlobal');
  });

  it('joins a script that begins with a line for the shell, and maps it', async () => {
    const root = smallProject({ 'vendor/a.js': 'var a;', 'vendor/z.js': '#!/usr/bin/env node\nvar z = 1;\n' });
    for (const mode of [['--production'], []]) {
      expect(await handset(root, ['build', ...mode])).toMatchObject({ status: 0 });
      parse(text(root, 'public/javascripts/vendor.js'), { ecmaVersion: 5 });
    }
    const at = text(root, 'public/javascripts/vendor.js').split('\n').indexOf('var z = 1;');
    const map = new SourceMap(JSON.parse(text(root, 'public/javascripts/vendor.js.map')) as SourceMapPayload);
    expect(map.findEntry(at, 0)).toMatchObject({ originalSource: 'vendor/z.js', originalLine: 1 });
  });

  it('compiles literate CoffeeScript', async () => {
    const literate = 'A text.\n\n    first = 1\n\nAnother.\n\n    @second = first + 1\n';
    const files = { 'app/a.litcoffee': literate, 'app/b.coffee.md': literate.replace('second', 'third') };
    const root = smallProject({ ...files, 'app/c.test.coffee.md': 'nothing = (', 'app/notes.md': 'nothing = (' });
    await handset(root, ['build']);
    const app = text(root, 'public/javascripts/app.js');
    expect(app).toMatch(/this\.second = first \+ 1;[\s\S]*this\.third = first \+ 1;/);
    const line = app.split('\n').findIndex((l) => l.includes('third'));
    const map = new SourceMap(JSON.parse(text(root, 'public/javascripts/app.js.map')) as SourceMapPayload);
    expect(map.findEntry(line, 10)).toMatchObject({ originalSource: 'app/b.coffee.md', originalLine: 6 });
    write(root, { 'app/a.litcoffee': 'A text.\n\n    first = (\n' });
    expect((await handset(root, ['build'])).stdout).toContain('app/a.litcoffee:3:');
  });

  it('puts no reload script and no absolute path into public/', async () => {
    const root = newsCopy();
    await handset(root, ['build']);
    const all = [...tree(path.join(root, 'public'))].filter(([name]) => /\.(html|css|js)$/.test(name));
    expect(all.filter(([, bytes]) => /__handset\/|EventSource/.test(bytes.toString())).map(([name]) => name)).toEqual(
      [],
    );
    expect(text(root, 'public/index.html')).not.toMatch(/(src|href)="(\/|[a-z]+:)/);
    const html = text(root, 'public/index.html');
    expect(html.indexOf('vendor.js')).toBeLessThan(html.indexOf('app.js'));
  });

  it('makes the same of what an earlier build compiled, and looks at includes and contents', async () => {
    const root = newsCopy();
    const build = async () => JSON.parse((await handset(root, ['build', '--json'])).stdout) as { compiled: number };
    const first = await build();
    const before = [...tree(path.join(root, 'public'))];
    rmSync(path.join(root, 'public'), { recursive: true });
    const again = await build();
    expect([...tree(path.join(root, 'public'))]).toEqual(before);
    // Plain JavaScript costs nothing to compile and is not kept.
    expect([first.compiled, again.compiled]).toEqual([12, 5]);
    write(root, { 'app/templates/_stories.pug': 'p changed' });
    expect((await build()).compiled).toBe(7);
    expect(text(root, 'public/javascripts/templates.js')).toContain('changed');
    write(root, { '.handset/compiled.json': '{ broken' });
    expect((await build()).compiled).toBe(12);
    write(root, { 'app/news.coffee': 'a = (' });
    expect((await handset(root, ['build'])).status).toBe(1);
  });

  it('finds a template again whose name looks like a page', async () => {
    const root = smallProject({ 'app/index.a.pug': 'p a', 'vendor/pug_runtime.js': '' });
    const build = async () => JSON.parse((await handset(root, ['build', '--json'])).stdout) as { compiled: number };
    // The plain scripts, which are not kept, are two.
    expect([(await build()).compiled, (await build()).compiled]).toEqual([4, 2]);
    const { format } = JSON.parse(text(root, '.handset/compiled.json')) as { format: string };
    expect(format).toMatch(/^handset \d+\.\d+\.\d+, coffeescript 1\.12\.7, pug 3\.0\.4, node \d+$/);
    // What other compilers made is not taken.
    const kept = text(root, '.handset/compiled.json').replace('pug 3.0.4', 'pug 3.0.3');
    write(root, { '.handset/compiled.json': kept });
    expect((await build()).compiled).toBe(4);
  });

  it('takes another template language, for the main page too, from one file', async () => {
    const plugin = `exports.plugin = {
      name: 'braces', extensions: ['.braces'], targets: ['template', 'page'],
      compile({ text, target }) {
        if (target === 'page') return { output: text };
        const body = JSON.stringify(text.trim()).replace(/\\{(\\w+)\\}/g, '" + locals.$1 + "');
        return { output: 'function (locals) { return ' + body + '; };' };
      },
    };`;
    const root = smallProject({
      'plugins/braces.cjs': plugin,
      'handset.config.json': '{ "plugins": ["plugins/braces.cjs"] }',
      'app/index.braces': '<!doctype html><title>braces</title>',
      'app/templates/hello.braces': '<p>Hello {name}</p>\n',
    });
    rmSync(path.join(root, 'app/index.pug'));
    expect((await handset(root, ['build'])).stdout).toMatch(/^compiled in/);
    expect(text(root, 'public/index.html')).toContain('<title>braces</title>');
    const scope: { html?: string } = {};
    new Function(
      `${text(root, 'public/javascripts/templates.js')}; this.html = templates.hello({ name: 'you' });`,
    ).call(scope);
    expect(scope.html).toBe('<p>Hello you</p>');
    // No template of Pug, no runtime: neither the build nor lint asks for one.
    const { stdout } = await handset(root, ['lint', '--json']);
    expect(stdout).not.toMatch(/runtime|es5/);
  });

  it('takes another language from one file', async () => {
    const plugin = `export const plugin = {
      name: 'shout', extensions: ['.shout'], targets: ['script'],
      compile({ path, text, read }) {
        const lines = text.trim().split('\\n');
        const bad = lines.findIndex((line) => !line.endsWith('!'));
        if (bad !== -1) throw Object.assign(new Error('A line must end with !'), { line: bad + 1, column: 1 });
        return { output: lines.map((line) => 'say(' + JSON.stringify(line + read('app/suffix.txt').trim()) + ');').join('\\n') };
      },
    };`;
    const root = smallProject({
      'plugins/shout.js': plugin,
      'package.json': '{ "type": "module" }',
      'handset.config.json': '{ "plugins": ["plugins/shout.js"] }',
      'app/a.shout': 'hello!\n',
      'app/suffix.txt': '?\n',
    });
    await handset(root, ['build']);
    expect(text(root, 'public/javascripts/app.js')).toContain('say("hello!?");');
    write(root, { 'app/a.shout': 'hello!\nquiet\n' });
    const { stdout, status } = await handset(root, ['build']);
    expect(status).toBe(1);
    expect(stdout).toContain('app/a.shout:2:1 — A line must end with !');
  });
});
