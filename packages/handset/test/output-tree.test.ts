import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { handset } from './support/cli.ts';
import { PACKAGE, scaffoldCopy, temporaryFolder, text, tree } from './support/project.ts';

// The tables of spec/handset-workflow.md ("Source tree" and "Output tree"), row by row; <theme> is `light` here.
const IMAGES = [
  'arrow-close.png',
  'arrow-open.png',
  'back_40x40.png',
  'button-bg_40x40.png',
  'close_40x40.png',
  'grid_40x40.png',
  'option-menu_titlebar.png',
  'refresh_40x40.png',
  'search_40x40.png',
  'tab_bg.png',
  'title-bar.png',
];

const SOURCE_ROWS: readonly (readonly [row: string, files: readonly string[]])[] = [
  ['app/assets/config.xml', ['app/assets/config.xml']],
  ['app/assets/icon.png', ['app/assets/icon.png']],
  ['app/assets/index.html', ['app/assets/index.html']],
  [
    'app/assets/<theme>/css/',
    ['light.css', 'single_landscape.css', 'single_portrait.css'].map((f) => `app/assets/light/css/${f}`),
  ],
  ['app/assets/<theme>/images/', IMAGES.map((f) => `app/assets/light/images/${f}`)],
  ['app/assets/<theme>/js/', ['light.js', 'screensize.js'].map((f) => `app/assets/light/js/${f}`)],
  ['app/index.jade-style template', ['app/index.pug']],
  ['app/templates/', ['app/templates/main-list.pug']],
  ['app/README.md, testCs, testJs', ['app/README.md', 'app/testCs.coffee', 'app/testJs.js']],
  ['vendor/', ['vendor/README.md', 'vendor/handset.js', 'vendor/pug_runtime.js']],
];

describe('the source tree', () => {
  const files = tree(path.join(PACKAGE, 'scaffold'));

  it.each(SOURCE_ROWS)('has the row %s', (_row, names) => {
    for (const name of names) expect(files.get(name)?.length ?? 0, name).toBeGreaterThan(0);
  });

  it('has nothing else in app/ and vendor/', () => {
    const listed = SOURCE_ROWS.flatMap(([, names]) => names).sort();
    expect([...files.keys()].filter((name) => /^(app|vendor)\//.test(name)).sort()).toEqual(listed);
  });

  it('uses every image in a style sheet', () => {
    const css = text(path.join(PACKAGE, 'scaffold'), 'app/assets/light/css/light.css');
    expect(IMAGES.filter((image) => !css.includes(`../images/${image}`))).toEqual([]);
  });

  it('is what `handset new` makes', async () => {
    const folder = temporaryFolder();
    expect(await handset(folder, ['new', 'my-app'])).toMatchObject({ status: 0 });
    const made = tree(path.join(folder, 'my-app'));
    made.delete('package.json');
    const own = new Map(files);
    own.delete('package.json');
    expect([...made.keys()]).toEqual([...own.keys()]);
    for (const [name, bytes] of own) expect(made.get(name)?.equals(bytes), name).toBe(true);
  });

  it('can have another name and theme', async () => {
    const folder = temporaryFolder();
    expect(await handset(folder, ['new', 'weather', '--theme', 'night'])).toMatchObject({ status: 0 });
    const made = path.join(folder, 'weather');
    const all = [...tree(made)].filter(([name]) => !name.endsWith('.png') && !name.startsWith('vendor/'));
    expect(
      all.filter(([name, bytes]) => /my-app/.test(bytes.toString()) || /light\./.test(name)).map(([name]) => name),
    ).toEqual([]);
    expect(await handset(made, ['build'])).toMatchObject({ status: 0 });
    expect(tree(path.join(made, 'public')).has('night/css/night.css')).toBe(true);
    const lint = await handset(made, ['lint']);
    expect(lint.stdout).toContain('nothing to complain about');
  });
});

describe('the scaffold', () => {
  it('builds, passes its tests and lints without a word, with either index page', async () => {
    for (const page of ['app/index.pug', 'app/assets/index.html']) {
      const root = scaffoldCopy();
      const other = page === 'app/index.pug' ? 'app/assets/index.html' : 'app/index.pug';
      for (const gone of [undefined, other]) {
        if (gone) rmSync(path.join(root, gone));
        for (const command of [['build'], ['build', '--production'], ['test'], ['lint']]) {
          const { status, stdout } = await handset(root, command);
          expect([page, command, status, /warning/.test(stdout.replace('0 warnings', ''))]).toEqual([
            page,
            command,
            0,
            false,
          ]);
        }
      }
    }
  });

  it('has the same page as a template and without one', async () => {
    const root = scaffoldCopy();
    await handset(root, ['build']);
    const plain = (html: string) =>
      html
        .replace(/<!--[\s\S]*?-->/g, '')
        .replace(/>\s+/g, '>')
        .replace(/\s+</g, '<')
        .toLowerCase()
        .trim();
    expect(plain(text(root, 'app/assets/index.html'))).toBe(plain(text(root, 'public/index.html')));
  });
});

describe('the output tree', () => {
  const OUTPUT_ROWS: readonly (readonly [row: string, files: readonly string[]])[] = [
    ['public/config.xml, icon.png, index.html', ['config.xml', 'icon.png', 'index.html']],
    ['public/javascripts/app.js', ['javascripts/app.js']],
    ['public/javascripts/vendor.js', ['javascripts/vendor.js']],
    ['public/javascripts/templates.js and public/js/templates.js', ['javascripts/templates.js', 'js/templates.js']],
    [
      'public/<theme>/css, images, js',
      [
        ...['light.css', 'single_landscape.css', 'single_portrait.css'].map((f) => `light/css/${f}`),
        ...IMAGES.map((f) => `light/images/${f}`),
        ...['light.js', 'screensize.js'].map((f) => `light/js/${f}`),
      ],
    ],
  ];
  const listed = OUTPUT_ROWS.flatMap(([, names]) => names).sort();

  it('is the table, no file more and none less', async () => {
    const root = scaffoldCopy();
    await handset(root, ['build', '--production']);
    expect([...tree(path.join(root, 'public')).keys()]).toEqual(listed);
  });

  it('has source maps beside it in development and nothing else', async () => {
    const root = scaffoldCopy();
    await handset(root, ['build']);
    const names = [...tree(path.join(root, 'public')).keys()];
    expect(names.filter((name) => !name.endsWith('.map'))).toEqual(listed);
    expect(names.filter((name) => name.endsWith('.map'))).toEqual([
      'javascripts/app.js.map',
      'javascripts/templates.js.map',
      'javascripts/vendor.js.map',
      'js/templates.js.map',
    ]);
  });

  it('has each content that the table tells of', async () => {
    const root = scaffoldCopy();
    await handset(root, ['build']);
    const files = tree(path.join(root, 'public'));
    const source = (name: string) => readFileSync(path.join(root, name));
    expect(files.get('config.xml')).toEqual(source('app/assets/config.xml'));
    expect(files.get('icon.png')).toEqual(source('app/assets/icon.png'));
    for (const name of listed.filter((n) => n.startsWith('light/'))) {
      expect(files.get(name), name).toEqual(source(`app/assets/${name}`));
    }
    expect(files.get('index.html')?.toString()).toContain('<title>my-app</title>');
    const app = files.get('javascripts/app.js')?.toString() ?? '';
    expect(app).toContain('app.search = function(items, words)');
    expect(app).toContain(source('app/testJs.js').toString().trim());
    const vendor = files.get('javascripts/vendor.js')?.toString() ?? '';
    for (const name of ['handset.js', 'pug_runtime.js'])
      expect(vendor).toContain(source(`vendor/${name}`).toString().trim());
    const templates = files.get('javascripts/templates.js')?.toString() ?? '';
    expect(templates).toContain('templates["main-list"] = function');
    expect(templates).not.toContain('templates["index"]');
    expect(files.get('js/templates.js')?.toString()).toBe(templates);
  });
});
