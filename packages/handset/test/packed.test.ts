import { execFileSync, spawn } from 'node:child_process';
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
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { handset } from './support/cli.ts';
import { PACKAGE, temporaryFolder, tree, write } from './support/project.ts';

const { dependencies } = JSON.parse(readFileSync(path.join(PACKAGE, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
};
const workspace = path.resolve(PACKAGE, '../..');

/** Build dist/ and pack it into `folder`; returns the archive. */
function pack(folder: string): string {
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
  execFileSync(process.execPath, ['tools/build-dist.mjs'], { cwd: copy });
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], {
    cwd: copy,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    shell: process.platform === 'win32',
  });
  return path.join(folder, packed.trim().split('\n').at(-1) ?? '');
}

const packing = mkdtempSync(path.join(tmpdir(), 'handset-pack-'));
let archive: string;
beforeAll(() => {
  archive = pack(packing);
});
afterAll(() => rmSync(packing, { recursive: true, force: true }));

/** A copy of the scaffold with the archive unpacked as npm would: it finds its dependencies and nothing else. */
function installPacked(): string {
  const app = temporaryFolder();
  const installed = path.join(app, 'node_modules/handset');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['xzf', archive, '-C', installed, '--strip-components=1']);
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
    const app = installPacked();
    const bin = path.join(app, 'node_modules/handset/bin/handset.js');
    expect([...tree(path.join(app, 'node_modules/handset/dist')).keys()].filter((n) => n.endsWith('.test.js'))).toEqual(
      [],
    );
    const run = (args: readonly string[]) =>
      execFileSync(process.execPath, [bin, ...args], { cwd: app, encoding: 'utf8' });
    expect(run(['--version'])).toBe('0.1.0\n');
    expect(run(['test'])).toContain('3 tests passed');
    expect(run(['build', '--production'])).toContain('compiled in');
    expect(run(['lint'])).toContain('0 errors');
    expect(run(['pack'])).toContain('packed 23 files into my-app.wgt');

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
    run(['build', '--production']);
    expect([...tree(path.join(app, 'public'))]).toEqual([...tree(path.join(same, 'public'))]);
  });

  it('keeps the machine form of its compilers in its own folder, nothing of an application, and survives a spoiled one', async () => {
    const app = installPacked();
    const cache = path.join(temporaryFolder(), 'cache');
    const build = () => {
      rmSync(path.join(app, '.handset'), { recursive: true, force: true });
      return execFileSync(process.execPath, [path.join(app, 'node_modules/handset/bin/handset.js'), 'build'], {
        cwd: app,
        encoding: 'utf8',
        env: { ...process.env, XDG_CACHE_HOME: cache, NODE_COMPILE_CACHE: undefined },
      });
    };
    build();
    const made = tree(path.join(app, 'public'));
    const kept = [...tree(cache)].filter(([name]) => name.endsWith('.v8'));
    expect(kept.map(([name]) => name.replace(/-v.*/, ''))).toEqual(['handset/coffeescript.cjs', 'handset/pug.cjs']);
    for (const [, bytes] of tree(cache)) expect(bytes.includes('main-list')).toBe(false);

    for (const [name, bytes] of kept) writeFileSync(path.join(cache, name), bytes.subarray(0, bytes.length / 2));
    build();
    expect([...tree(path.join(app, 'public'))]).toEqual([...made]);
    for (const [name, bytes] of kept) expect(tree(cache).get(name)?.length).toBeGreaterThan(bytes.length / 2);
    build();
    expect([...tree(path.join(app, 'public'))]).toEqual([...made]);
  });

  it('makes an application whose npm install finds this handset again, from wherever it came', () => {
    const installed = path.join(installPacked(), 'node_modules/handset');
    const made = (resolved: string | undefined) => {
      const packages = { 'node_modules/handset': { version: '0.1.0', resolved } };
      write(installed, { '../.package-lock.json': JSON.stringify({ packages }) });
      const folder = temporaryFolder();
      execFileSync(process.execPath, [path.join(installed, 'bin/handset.js'), 'new', 'my-app'], { cwd: folder });
      expect(tree(path.join(folder, 'my-app')).has('.gitignore')).toBe(true);
      const { devDependencies } = JSON.parse(readFileSync(path.join(folder, 'my-app/package.json'), 'utf8')) as {
        devDependencies: { handset: string };
      };
      return devDependencies.handset;
    };
    expect(made('https://registry.example/handset/-/handset-0.1.0.tgz')).toBe('0.1.0');
    expect(made(`file:${path.relative(path.resolve(installed, '../..'), archive)}`)).toBe(`file:${archive}`);
    expect(made('file:../gone-0.1.0.tgz')).toBe(`file:${installed}`);
    expect(made(undefined)).toBe(`file:${installed}`);
  });

  it('pins every dependency exactly', () => {
    for (const [name, version] of Object.entries(dependencies))
      expect([name, version]).toEqual([name, expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
  });
});
