import { execFile, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { MANY_SOURCES } from '../src/build/optimizing.ts';
import { handset } from './support/cli.ts';
import { PACKAGE, temporaryFolder, tree, write } from './support/project.ts';

/** Never the waiting kind: the runner must hear of this thread while a busy machine takes its time. */
const execute = promisify(execFile);

const { dependencies } = JSON.parse(readFileSync(path.join(PACKAGE, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
};
const workspace = path.resolve(PACKAGE, '../..');

/** Build dist/ and pack it into `folder`; returns the archive. */
async function pack(folder: string): Promise<string> {
  const copy = path.join(folder, 'source');
  // The build writes dist/: in a copy, so that two runs do not meet.
  cpSync(PACKAGE, copy, {
    recursive: true,
    filter: (source) => !/[\\/](node_modules|dist|public|\.handset|test)$/.test(source),
  });
  const base = JSON.parse(readFileSync(path.join(PACKAGE, 'tsconfig.build.json'), 'utf8')) as object;
  write(copy, { 'tsconfig.build.json': JSON.stringify({ ...base, extends: path.join(workspace, 'tsconfig.json') }) });
  symlinkSync(path.join(workspace, 'node_modules'), path.join(folder, 'node_modules'));
  mkdirSync(path.join(copy, 'node_modules'));
  const own = path.join(PACKAGE, 'node_modules');
  for (const name of existsSync(own) ? readdirSync(own) : [])
    symlinkSync(path.join(own, name), path.join(copy, 'node_modules', name));
  await execute(process.execPath, ['tools/build-dist.mjs'], { cwd: copy });
  const { stdout } = await execute('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], {
    cwd: copy,
    shell: process.platform === 'win32',
  });
  return path.join(folder, stdout.trim().split('\n').at(-1) ?? '');
}

const packing = mkdtempSync(path.join(tmpdir(), 'handset-pack-'));
let archive: string;
beforeAll(async () => {
  archive = await pack(packing);
}, 240_000);
afterAll(() => rmSync(packing, { recursive: true, force: true }));

/** A copy of the scaffold with the archive unpacked as npm would: it finds its dependencies and nothing else. */
async function installPacked(): Promise<string> {
  const app = temporaryFolder();
  const installed = path.join(app, 'node_modules/handset');
  mkdirSync(installed, { recursive: true });
  await execute('tar', ['xzf', archive, '-C', installed, '--strip-components=1']);
  cpSync(path.join(installed, 'scaffold'), app, { recursive: true });
  for (const name of Object.keys(dependencies)) {
    const own = path.join(PACKAGE, 'node_modules', name);
    symlinkSync(
      existsSync(own) ? own : path.join(workspace, 'node_modules', name),
      path.join(app, 'node_modules', name),
    );
  }
  return app;
}

describe('the packed artefact', () => {
  it('stands alone: start, test, build, lint and pack in a copy of the scaffold that is inside it', async () => {
    const app = await installPacked();
    const bin = path.join(app, 'node_modules/handset/bin/handset.js');
    expect([...tree(path.join(app, 'node_modules/handset/dist')).keys()].filter((n) => n.endsWith('.test.js'))).toEqual(
      [],
    );
    const run = async (args: readonly string[]) =>
      (await execute(process.execPath, [bin, ...args], { cwd: app })).stdout;
    expect(await run(['--version'])).toBe('0.1.0\n');
    expect(await run(['test'])).toContain('3 tests passed');
    expect(await run(['build', '--production'])).toContain('compiled in');
    expect(await run(['lint'])).toContain('nothing to complain about');
    expect(await run(['pack'])).toContain('packed 23 files into my-app.wgt');

    const start = (JSON.parse(readFileSync(path.join(app, 'package.json'), 'utf8')) as { scripts: { start: string } })
      .scripts.start;
    expect(start).toBe('handset watch --server');
    const child = spawn(process.execPath, [bin, ...start.split(' ').slice(1), '--port', '0'], { cwd: app });
    onTestFinished(() => void child.kill('SIGTERM'));
    const url = await new Promise<string>((resolve, reject) => {
      let text = '';
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        const match = /at (http:\S+)[\s\S]*compiled in/.exec(text);
        if (match?.[1]) resolve(match[1]);
      });
      child.on('close', () => reject(new Error(text)));
    });
    expect(await (await fetch(url)).text()).toContain('<title>my-app</title>');

    // What it makes is what the sources make.
    const same = path.join(temporaryFolder(), 'my-app');
    cpSync(path.join(PACKAGE, 'scaffold'), same, { recursive: true });
    await handset(same, ['build', '--production']);
    await run(['build', '--production']);
    expect([...tree(path.join(app, 'public'))]).toEqual([...tree(path.join(same, 'public'))]);

    // A language of the project is a module that the program, which is none itself, can still load.
    write(app, {
      'handset.config.json': '{ "plugins": ["plain.mjs"] }',
      'plain.mjs': `import path from 'node:path';
        const compile = ({ path: name, text }) => ({ output: text + path.posix.basename(name) });
        export const plugin = { name: 'plain', extensions: ['.plain'], targets: ['script'], compile };`,
      'app/made.plain': '// made by ',
    });
    await run(['build']);
    expect(readFileSync(path.join(app, 'public/javascripts/app.js'), 'utf8')).toContain('// made by made.plain');
  });

  it('keeps the machine form of itself and its compilers in its own folder, nothing of an application, and survives a spoiled one', async () => {
    const app = await installPacked();
    const cache = path.join(temporaryFolder(), 'cache');
    const build = (command = 'build') => {
      rmSync(path.join(app, '.handset'), { recursive: true, force: true });
      return execute(process.execPath, [path.join(app, 'node_modules/handset/bin/handset.js'), command], {
        cwd: app,
        env: { ...process.env, XDG_CACHE_HOME: cache, NODE_COMPILE_CACHE: undefined },
      });
    };
    await build();
    const made = tree(path.join(app, 'public'));
    const kept = [...tree(cache)].filter(([name]) => name.endsWith('.v8'));
    expect(kept.map(([name]) => name.replace(/-v.*/, ''))).toEqual(
      ['coffeescript', 'main', 'pug'].map((name) => `handset/${name}.cjs`),
    );
    for (const [, bytes] of tree(cache)) expect(bytes.includes('main-list')).toBe(false);

    for (const [name, bytes] of kept) writeFileSync(path.join(cache, name), bytes.subarray(0, bytes.length / 2));
    await build();
    expect([...tree(path.join(app, 'public'))]).toEqual([...made]);
    for (const [name, bytes] of kept) expect(tree(cache).get(name)?.length).toBeGreaterThan(bytes.length / 2);
    await build();
    expect([...tree(path.join(app, 'public'))]).toEqual([...made]);

    // `build` runs under settings of its own (src/build/optimizing.ts): neither it nor another command spoils what the
    // other has kept, also when there is so much to compile that it changes them on its way.
    const forms = () => new Map([...tree(cache)].filter(([name]) => name.endsWith('.v8')));
    const ofBuild = forms();
    await build('pack');
    const ofBoth = forms();
    expect([ofBuild.size, ofBoth.size]).toEqual([3, 6]);
    const many = Array.from({ length: MANY_SOURCES + 20 }, (_, i) => [`app/many/${i}.coffee`, `@a${i} = ${i}\n`]);
    write(app, Object.fromEntries(many) as Record<string, string>);
    await build();
    expect(forms()).toEqual(ofBoth);
  });

  it('makes an application whose npm install finds this handset again, from wherever it came', async () => {
    const installed = path.join(await installPacked(), 'node_modules/handset');
    const made = async (resolved: string | undefined) => {
      const packages = { 'node_modules/handset': { version: '0.1.0', resolved } };
      write(installed, { '../.package-lock.json': JSON.stringify({ packages }) });
      const folder = temporaryFolder();
      await execute(process.execPath, [path.join(installed, 'bin/handset.js'), 'new', 'my-app'], { cwd: folder });
      expect(tree(path.join(folder, 'my-app')).has('.gitignore')).toBe(true);
      const { devDependencies } = JSON.parse(readFileSync(path.join(folder, 'my-app/package.json'), 'utf8')) as {
        devDependencies: { handset: string };
      };
      return { spec: devDependencies.handset, root: path.join(folder, 'my-app') };
    };
    expect((await made('https://registry.example/handset/-/handset-0.1.0.tgz')).spec).toBe('0.1.0');
    const shared = await made(`file:${path.relative(path.resolve(installed, '../..'), archive)}`);
    expect(shared.spec).toBe(`file:${path.basename(archive)}`);
    expect(readFileSync(path.join(shared.root, path.basename(archive))).equals(readFileSync(archive))).toBe(true);
    for (const from of ['file:../gone-0.1.0.tgz', undefined]) {
      const { spec, root } = await made(from);
      expect(spec).toMatch(/^file:\.\./);
      expect(path.resolve(root, spec.slice('file:'.length))).toBe(installed);
    }
  });

  it('pins every dependency exactly', () => {
    for (const [name, version] of Object.entries(dependencies))
      expect([name, version]).toEqual([name, expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
  });
});
