import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { handset } from './support/cli.ts';
import { PACKAGE, temporaryFolder, tree, write } from './support/project.ts';

/** Build dist/, pack it, and unpack it as npm would install it; its dependencies are those of this checkout. */
function installPacked(): string {
  const folder = temporaryFolder();
  const copy = path.join(folder, 'source');
  // The build writes dist/: in a copy, so that two runs do not meet.
  cpSync(PACKAGE, copy, {
    recursive: true,
    filter: (source) => !/[\\/](node_modules|dist|public|\.handset|test)$/.test(source),
  });
  const workspace = path.resolve(PACKAGE, '../..');
  const base = JSON.parse(readFileSync(path.join(PACKAGE, 'tsconfig.build.json'), 'utf8')) as object;
  write(copy, { 'tsconfig.build.json': JSON.stringify({ ...base, extends: path.join(workspace, 'tsconfig.json') }) });
  symlinkSync(path.join(workspace, 'node_modules'), path.join(folder, 'node_modules'));
  mkdirSync(path.join(copy, 'node_modules'));
  for (const name of [
    'acorn',
    'commander',
    'playwright-core',
    'pug',
    'parse5',
    'saxes',
    'terser',
    'yazl',
    'jsdom',
    'coffeescript',
  ]) {
    const own = path.join(PACKAGE, 'node_modules', name);
    const target = existsSync(own) ? own : path.join(workspace, 'node_modules', name);
    symlinkSync(target, path.join(copy, 'node_modules', name));
  }
  execFileSync(process.execPath, ['tools/build-dist.mjs'], { cwd: copy });
  const npm = (args: readonly string[], cwd: string) =>
    execFileSync('npm', args, {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      shell: process.platform === 'win32',
    });
  const archive =
    npm(['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], copy).trim().split('\n').at(-1) ?? '';
  const app = path.join(folder, 'app');
  const installed = path.join(app, 'node_modules/handset');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['xzf', path.join(folder, archive), '-C', installed, '--strip-components=1']);
  cpSync(path.join(installed, 'scaffold'), app, { recursive: true });
  symlinkSync(path.join(copy, 'node_modules'), path.join(installed, 'node_modules'));
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

  it('makes an application that asks for its own version', () => {
    const app = installPacked();
    const bin = path.join(app, 'node_modules/handset/bin/handset.js');
    const folder = temporaryFolder();
    execFileSync(process.execPath, [bin, 'new', 'my-app'], { cwd: folder });
    const made = JSON.parse(readFileSync(path.join(folder, 'my-app/package.json'), 'utf8')) as {
      devDependencies: object;
    };
    expect(made.devDependencies).toEqual({ handset: '0.1.0' });
    expect(tree(path.join(folder, 'my-app')).has('.gitignore')).toBe(true);
  });

  it('pins every dependency exactly', () => {
    const { dependencies } = JSON.parse(readFileSync(path.join(PACKAGE, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    for (const [name, version] of Object.entries(dependencies))
      expect([name, version]).toEqual([name, expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
  });
});
