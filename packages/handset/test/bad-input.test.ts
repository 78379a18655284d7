import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAssembler } from '../src/build/assembler.ts';
import { createSourceStore } from '../src/build/source-store.ts';
import { openProject } from '../src/project/project.ts';
import { handset } from './support/cli.ts';
import { PACKAGE, smallProject, temporaryFolder, text, tree, write } from './support/project.ts';

/** Build, then say what the user reads: status, and the sentences. */
async function build(
  files: Readonly<Record<string, string | Uint8Array | null>>,
): Promise<{ status: number | null; says: string; root: string }> {
  const root = smallProject();
  for (const [name, content] of Object.entries(files)) {
    if (content === null) rmSync(path.join(root, name));
    else write(root, { [name]: content });
  }
  const { status, stdout, stderr } = await handset(root, ['build']);
  return { status, says: stdout + stderr, root };
}

describe('bad input is answered by a sentence with the file and the way out', () => {
  const cases: readonly (readonly [
    what: string,
    files: Record<string, string | Uint8Array | null>,
    sentence: RegExp,
    wayOut: RegExp,
  ])[] = [
    [
      'config.xml is missing',
      { 'app/assets/config.xml': null },
      /app\/assets\/config\.xml — There is no config\.xml/,
      /handset new/,
    ],
    [
      'the icon is missing',
      { 'app/assets/icon.png': null },
      /app\/assets\/icon\.png — There is no icon\.png/,
      /Put a PNG/,
    ],
    [
      'there is no page',
      { 'app/index.pug': null },
      /app\/index\.pug — There is no main page/,
      /Create app\/index\.pug/,
    ],
    ['there are two pages', { 'app/index.jade': 'p' }, /Both app\/index\.jade and app\/index\.pug/, /Keep one/],
    [
      'XML is malformed',
      { 'app/assets/config.xml': '<widget>\n  <name>a</nam>\n</widget>' },
      /config\.xml:2:\d+ — Not well-formed XML/,
      /Close every tag/,
    ],
    [
      'config.xml is empty',
      { 'app/assets/config.xml': '' },
      /config\.xml:1:1 — Not well-formed XML/,
      /Close every tag/,
    ],
    [
      'a template includes itself',
      { 'app/index.pug': 'p\ninclude index' },
      /app\/index\.pug:2 — The template includes itself: app\/index\.pug → app\/index\.pug/,
      /out of the circle/,
    ],
    [
      'templates include each other',
      {
        'app/index.pug': 'include a',
        'app/_x.pug': '',
        'app/a.pug': 'include b',
        'app/b.pug': 'p\ninclude a',
        'vendor/pug_runtime.js': '',
      },
      /app\/b\.pug:2 — The template includes itself: app\/b\.pug → app\/a\.pug → app\/b\.pug/,
      /out of the circle/,
    ],
    [
      'an include is missing',
      { 'app/index.pug': 'p\np\ninclude parts/head' },
      /app\/index\.pug:3 — There is no file app\/parts\/head\.pug/,
      /correct the path/,
    ],
    [
      'an include leads outside',
      { 'app/index.pug': 'include ../../secret' },
      /app\/index\.pug:1 — The include "\.\.\/\.\.\/secret\.pug" leads outside app/,
      /into app/,
    ],
    [
      'an inner include is missing',
      { 'app/index.pug': 'include _a', 'app/_a.pug': 'p\ninclude gone' },
      /app\/_a\.pug:2 — There is no file app\/gone\.pug/,
      /correct the path/,
    ],
    [
      'a vendor file has a syntax error',
      { 'vendor/lib.js': 'var a = 1;\nvar b = ;\n' },
      /vendor\/lib\.js:2:9 — Unexpected token/,
      /Correct the line/,
    ],
    [
      'two vendor files declare one constant',
      { 'vendor/one.js': 'const VERSION = 1;', 'vendor/two.js': '/*! two */\nconst VERSION = 2;\n' },
      /vendor\/two\.js:2 — Identifier 'VERSION' has already been declared in vendor\/one\.js[\s\S]*> 2 \| const/,
      /another name/,
    ],
    [
      'a script declares what a vendor file has',
      { 'vendor/one.js': '/*! one */class Store{}', 'app/a.coffee': 'a = 1', 'app/main.js': '\nvar Store = 2;\n' },
      /app\/main\.js:2 — Identifier 'Store' has already been declared in vendor\/one\.js/,
      /another name/,
    ],
    [
      'a script has a syntax error',
      { 'app/main.js': 'var a = {\n' },
      /app\/main\.js:2:1 — Unexpected end of input/,
      /Correct the line/,
    ],
    [
      'CoffeeScript has a syntax error',
      { 'app/a.coffee': 'a = 1\nb = (2\n' },
      /app\/a\.coffee:2:5 — missing \)/,
      /Correct the line/,
    ],
    ['a template has a syntax error', { 'app/index.pug': 'p\np(a=' }, /app\/index\.pug:2:\d+ — /, /Correct the line/],
    [
      'the page uses a variable it does not have',
      { 'app/index.pug': 'p= user.name' },
      /app\/index\.pug — The page cannot be rendered/,
      /give every variable/,
    ],
    [
      'a source is not UTF-8',
      { 'app/main.js': Buffer.from('var a;\nvar b = "\xe9";', 'latin1') },
      /app\/main\.js:2 — Byte 0xe9 at offset 16 is not UTF-8/,
      /Save the file as UTF-8/,
    ],
    [
      'a source is UTF-16',
      { 'app/a.coffee': Buffer.from('\ufeffa = 1', 'utf16le') },
      /app\/a\.coffee — The file is encoded as UTF-16/,
      /Save the file as UTF-8/,
    ],
    [
      'config.xml is not UTF-8',
      { 'app/assets/config.xml': Buffer.from('<widget><name>\xe9</name></widget>', 'latin1') },
      /config\.xml:1 — Byte 0xe9/,
      /UTF-8/,
    ],
    [
      'the template runtime is missing',
      { 'app/templates/a.pug': 'p' },
      /vendor\/pug_runtime\.js — The templates need their runtime/,
      /Copy pug_runtime\.js/,
    ],
    [
      'two sources become one output',
      { 'app/assets/javascripts/app.js': '' },
      /would both become public\/javascripts\/app\.js/,
      /Rename one/,
    ],
    [
      'two templates have one name',
      { 'app/a.pug': 'p', 'app/templates/a.pug': 'p', 'vendor/pug_runtime.js': '' },
      /would both be the template "a"/,
      /Rename one/,
    ],
    [
      'a setting is misspelt',
      { 'handset.config.json': '{ "prot": 1 }' },
      /"prot" is not a setting; there are plugins/,
      /Correct handset\.config\.json; this is a right one: \{ "first": /,
    ],
    [
      'the settings are no JSON',
      { 'handset.config.json': '{' },
      /handset\.config\.json — /,
      /Correct handset\.config\.json/,
    ],
    [
      'a plugin is missing',
      { 'handset.config.json': '{ "plugins": ["gone.js"] }' },
      /gone\.js — The plugin cannot be loaded/,
      /must export `plugin`/,
    ],
    [
      'a plugin is none',
      { 'handset.config.json': '{ "plugins": ["p.mjs"] }', 'p.mjs': 'export const plugin = 1' },
      /p\.mjs — The file exports no usable/,
      /must export `plugin`/,
    ],
  ];

  it.each(cases)('%s', async (_what, files, sentence, wayOut) => {
    const { status, says, root } = await build(files);
    expect(says).toMatch(sentence);
    expect(says).toMatch(wayOut);
    expect(says).not.toMatch(/\n\s+at .*\(/);
    expect(status).toBe(1);
    expect(readdirSync(root)).not.toContain('public');
  });

  it('shows the code around the fault', async () => {
    const { says } = await build({ 'app/a.coffee': 'one = 1\ntwo = (2\nthree = 3\n' });
    expect(says).toContain('    > 2 | two = (2\n        |       ^\n      3 | three = 3');
  });

  it('names the source of what cannot be minified, not the script that it became part of', async () => {
    const files = { 'app/a.coffee': 'a = 1\n`var = 2`\n', 'app/assets/light/js/light.js': 'var a = 1;\nvar = 2;\n' };
    const root = smallProject({ 'app/a.coffee': files['app/a.coffee'] });
    const { status, stdout } = await handset(root, ['build', '--production']);
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/app\/a\.coffee:2 — Name expected[\s\S]*> 2 \| `var = 2`/),
    ]);
    const theme = smallProject({ 'app/assets/light/js/light.js': files['app/assets/light/js/light.js'] });
    expect((await handset(theme, ['build', '--production'])).stdout).toContain('app/assets/light/js/light.js:2:5 — ');
  });

  it('lets scripts share what may be shared', async () => {
    const { status } = await build({
      'vendor/a.js': 'let one; var both; function f() { let inner; }',
      'vendor/b.js': 'var both; function f() {} (function () { const one = 1; })();',
    });
    expect(status).toBe(0);
  });

  it('reports every fault of one build, not just the first', async () => {
    const { says } = await build({ 'app/a.coffee': 'a = (', 'vendor/b.js': ')', 'app/assets/icon.png': null });
    for (const file of ['app/a.coffee', 'vendor/b.js', 'app/assets/icon.png']) expect(says).toContain(`error ${file}`);
    expect(says).toContain('3 errors');
  });

  it('keeps the last good public/', async () => {
    const root = smallProject();
    await handset(root, ['build']);
    const before = [...tree(path.join(root, 'public'))];
    write(root, { 'app/main.js': 'var = ;' });
    expect((await handset(root, ['build'])).stdout).toContain('public/ is unchanged');
    expect([...tree(path.join(root, 'public'))]).toEqual(before);
  });

  it('a folder without a project', async () => {
    const { status, stderr } = await handset(temporaryFolder(), ['build']);
    expect(status).toBe(1);
    expect(stderr).toMatch(/There is no app\/ folder in .*\n.*npx handset new/);
  });

  it('a file stands where public/ should be', async () => {
    const root = smallProject({ public: 'a file' });
    const { status, stderr } = await handset(root, ['build']);
    expect(status).toBe(1);
    expect(stderr).toMatch(/public — Cannot write .*a file stands where a folder is needed/);
  });

  it('a read-only output folder', () => {
    const root = smallProject();
    const output = path.join(root, 'public');
    const isRoot = process.getuid?.() === 0;
    mkdirSync(output);
    if (isRoot) chownSync(output, 65534, 65534);
    else chmodSync(output, 0o555);
    // Root may write anywhere, unless it has given up just that.
    const asOthers = isRoot ? ['setpriv', '--bounding-set=-dac_override', '--inh-caps=-dac_override'] : [];
    const [file = '', ...args] = [...asOthers, process.execPath, path.join(PACKAGE, 'bin/handset.js'), 'build'];
    const run = () => spawnSync(file, args, { cwd: root, encoding: 'utf8' });
    const refused = run();
    expect(refused.stderr).toMatch(/public — Cannot write .*you may not write there/);
    expect(refused.stderr).toMatch(/Make public\/ writable/);
    expect(refused.status).toBe(1);
    // The way out works.
    if (isRoot) chownSync(output, 0, 0);
    else chmodSync(output, 0o755);
    expect(run().status).toBe(0);
  });

  it('a link to a folder is named and not followed', async () => {
    const root = smallProject();
    symlinkSync(path.join(root, 'app'), path.join(root, 'app/assets/again'), 'dir');
    const { status, stdout } = await handset(root, ['build']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/warning app\/assets\/again — A link to a folder is not followed/);
  });

  it('a link to a file outside the application is refused, at the start and while watching', async () => {
    const outside = temporaryFolder();
    write(outside, { 'secret.txt': 'SECRET' });
    const root = smallProject({ 'app/assets/inside.txt': 'INSIDE' });
    const link = (target: string, name: string): void => symlinkSync(target, path.join(root, name));
    // The channel is open: a link to a file of the application is followed.
    link('inside.txt', 'app/assets/again.txt');
    const { settings, plugins } = await openProject(root);
    const assembler = createAssembler({ root, settings, plugins, production: false });
    const first = await assembler.assemble();
    expect(Buffer.from(first.outputs?.get('again.txt')?.read() ?? '').toString()).toBe('INSIDE');
    link(path.join(outside, 'secret.txt'), 'app/assets/secret.txt');
    const { status, stdout } = await handset(root, ['build']);
    expect(status).toBe(1);
    expect(stdout).toMatch(/error app\/assets\/secret\.txt — The link leads outside the application, to .*secret\.txt/);
    expect(stdout).toMatch(/→ Copy the file into the application/);
    const watched = await assembler.reassemble(['app/assets/secret.txt']);
    expect([watched?.outputs, watched?.problems.map((p) => p.code)]).toEqual([undefined, ['link-outside']]);
    // A folder of links, too, and mending it needs no restart.
    link(outside, 'app/assets/folder');
    rmSync(path.join(root, 'app/assets/secret.txt'));
    const mended = await assembler.reassemble(['app/assets/folder', 'app/assets/secret.txt']);
    expect(mended?.problems.map((p) => p.code)).toEqual(['folder-link']);
    expect([...(mended?.outputs?.keys() ?? [])].filter((name) => /secret|folder/.test(name))).toEqual([]);
  });

  it('a file deleted between event and read counts as deleted', async () => {
    const root = smallProject({ 'app/extra.js': 'var extra = 1;' });
    const { settings, plugins } = await openProject(root);
    const assembler = createAssembler({ root, settings, plugins, production: false });
    await assembler.assemble();
    rmSync(path.join(root, 'app/extra.js'));
    const assembly = await assembler.reassemble(['app/extra.js', 'app/never.js']);
    expect(Buffer.from(assembly?.outputs?.get('javascripts/app.js')?.read() ?? '').toString()).not.toContain('extra');
  });

  it('an asset deleted before it is copied does not stop the build', async () => {
    const root = smallProject({ 'app/assets/gone.png': 'x' });
    const store = createSourceStore(root);
    store.readAll();
    const { settings, plugins } = await openProject(root);
    const { outputs } = await createAssembler({ root, settings, plugins, production: false }).assemble();
    rmSync(path.join(root, 'app/assets/gone.png'));
    const { createPublicFolder } = await import('../src/build/public-folder.ts');
    const { written } = createPublicFolder(root).write(outputs ?? new Map());
    expect(written).toContain('index.html');
    expect(written).not.toContain('gone.png');
  });

  it('10,000 files', async () => {
    const files: Record<string, string> = {};
    for (let i = 0; i < 9_000; i += 1) files[`app/assets/many/${i % 90}/${i}.txt`] = `${i}`;
    for (let i = 0; i < 1_000; i += 1) files[`app/m/${i % 30}/${i}.js`] = `var v${i} = ${i};`;
    const root = smallProject(files);
    const { status, stdout } = await handset(root, ['build', '--json']);
    expect(status).toBe(0);
    expect((JSON.parse(stdout) as { outputs: string[] }).outputs.length).toBeGreaterThan(9_000);
    expect(text(root, 'public/javascripts/app.js')).toContain('var v999 = 999;');
  });
});

describe('wrong usage', () => {
  const cases: readonly (readonly [args: string[], sentence: RegExp])[] = [
    [['bild'], /unknown command 'bild'\n\(Did you mean build\?\)/],
    [['build', '--prodution'], /unknown option '--prodution'\n\(Did you mean --production\?\)/],
    [['watch', '--port', '99999'], /whole number from 0 to 65535/],
    [['watch', '--port', 'x'], /whole number from 0 to 65535/],
    [['watch', '--host', '0.0.0.0'], /--host needs --server/],
    [['new'], /missing required argument 'name'/],
    [['new', 'My App'], /use small letters, digits, dots and dashes/],
    [['new', 'a', '--theme', 'js'], /cannot name a theme/],
    [['preview', '--device', 'watch'], /Allowed choices are touch, touch-landscape/],
    [['build', 'extra'], /too many arguments/],
  ];

  it.each(cases)('handset %j', async (args, sentence) => {
    const { status, stderr, stdout } = await handset(smallProject(), args);
    expect(stderr + stdout).toMatch(sentence);
    expect(status).toBe(2);
  });

  it('is told to programs in JSON', async () => {
    const { status, stdout } = await handset(smallProject(), ['build', '--json', '--prodution']);
    expect(status).toBe(2);
    const said = JSON.parse(stdout) as { ok: boolean; problems: { code: string; message: string }[] };
    expect(said).toMatchObject({ ok: false, problems: [{ code: 'usage' }] });
    expect(said.problems[0]?.message).toMatch(/^unknown option '--prodution'/);
    expect((await handset(smallProject(), ['build', '--json', '--help'])).stdout).toContain('Usage:');
  });

  it('a name that is taken', async () => {
    const folder = temporaryFolder();
    write(folder, { 'taken/notes.txt': 'mine' });
    const { status, stderr } = await handset(folder, ['new', 'taken']);
    expect(stderr).toMatch(/taken exists already and is not an empty folder/);
    expect(status).toBe(1);
    expect([...tree(folder).keys()]).toEqual(['taken/notes.txt']);
  });
});
