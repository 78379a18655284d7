import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { fromBuffer } from 'yauzl';
import type { ProjectFile } from '../project/project.ts';
import { packageCode } from './package-code.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentcore-package-'));
  return () => rm(folder, { recursive: true, force: true });
});

async function write(files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}

async function pack(file: Partial<ProjectFile>) {
  const project = { folder, file: { name: 'a', language: 'typescript' as const, entrypoint: 'index.ts', ...file } };
  await using code = await packageCode(project, { signal: new AbortController().signal });
  const zip = await readFile(code.zip);
  const { sha256, entryPoint, runtime, external } = code;
  return { zip, names: await namesIn(zip), sha256, entryPoint, runtime, external };
}

function namesIn(zip: Buffer): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const names: string[] = [];
    fromBuffer(zip, (error, file) => {
      if (error) return reject(error);
      file
        .on('entry', (entry) => names.push(entry.fileName))
        .on('end', () => resolve(names))
        .on('error', reject);
    });
  });
}

async function unzipAndRun(zip: Buffer, entryPoint: string): Promise<string> {
  const out = await mkdtemp(join(tmpdir(), 'agentcore-unzip-'));
  try {
    await writeFile(join(out, 'code.zip'), zip);
    execFileSync('python3', ['-m', 'zipfile', '-e', 'code.zip', '.'], { cwd: out });
    return execFileSync(process.execPath, [entryPoint], { cwd: out, encoding: 'utf8' });
  } finally {
    await rm(out, { recursive: true });
  }
}

describe('packageCode', () => {
  it('makes no zip once it is interrupted', async () => {
    await write({ 'index.ts': 'console.log(1);' });
    const file = { name: 'a', language: 'typescript' as const, entrypoint: 'index.ts' };
    await expect(packageCode({ folder, file }, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    });
  });

  it('makes one module of TypeScript with packages of both kinds, that runs alone', async () => {
    await write({
      'src/index.ts': `import { shout } from './lib.js'; import old from 'old'; import { readFileSync } from 'node:fs';
        enum Mode { Loud = 'loud' }
        console.log(shout(Mode.Loud), old.sep, readFileSync(new URL('../data/words.txt', import.meta.url), 'utf8'));`,
      'src/lib.ts': 'export const shout = (text: string): string => text.toUpperCase();',
      'data/words.txt': 'words',
      'node_modules/old/package.json': '{"name":"old","version":"1.0.0","main":"index.js"}',
      'node_modules/old/index.js': "exports.sep = require('path').sep + typeof __dirname;",
    });
    const { zip, names, entryPoint, runtime } = await pack({ entrypoint: 'src/index.ts' });
    expect([entryPoint, runtime]).toEqual(['src/index.mjs', 'NODE_22']);
    expect(names).toEqual(['data/words.txt', 'src/index.mjs', 'src/index.ts', 'src/lib.ts']);
    expect(await unzipAndRun(zip, entryPoint)).toBe('LOUD /string words\n');
  });

  it('gives the same bytes for the same files, whatever their dates and the time zone', async () => {
    await write({ 'index.ts': 'console.log(1)', 'b.txt': 'b', 'a.txt': 'a' });
    const zone = process.env.TZ;
    try {
      process.env.TZ = 'Asia/Tokyo';
      const first = await pack({});
      process.env.TZ = 'America/Lima';
      await utimes(join(folder, 'a.txt'), 1, 1);
      const second = await pack({});
      expect(second.zip.equals(first.zip)).toBe(true);
      expect(second.sha256).toBe(first.sha256);
      await write({ 'a.txt': 'c' });
      expect((await pack({})).sha256).not.toBe(first.sha256);
    } finally {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    }
  });

  it('leaves out dot files, dependencies, links, and what is excluded', async () => {
    await write({
      'main.py': '',
      '.env': 'SECRET=1',
      '.git/config': '',
      '.agentcore/state.json': '',
      'venv/bin/python': '',
      'lib/__pycache__/x.pyc': '',
      'lib/x.py': '',
      'notes/a.md': '',
      'agentcore.json': '{}',
    });
    await symlink('/etc/passwd', join(folder, 'passwd'));
    const { names, runtime } = await pack({
      language: 'python',
      entrypoint: 'main.py',
      runtime: 'PYTHON_3_12',
      exclude: ['notes/', '*.txt'],
    });
    expect(names).toEqual(['lib/x.py', 'main.py']);
    expect(runtime).toBe('PYTHON_3_12');
  });

  it('ships external packages as they are installed, with what they need', async () => {
    await write({
      'index.ts': "import { deep } from 'native'; console.log(deep);",
      'node_modules/native/package.json':
        '{"name":"native","type":"module","main":"i.js","dependencies":{"dep":"1"},"optionalDependencies":{"absent":"1"}}',
      'node_modules/native/i.js': "export { deep } from 'dep';",
      'node_modules/native/node_modules/dep/package.json': '{"name":"dep","type":"module","main":"i.js"}',
      'node_modules/native/node_modules/dep/i.js': "export const deep = 'inner';",
      'node_modules/dep/package.json': '{"name":"dep"}',
    });
    const { zip, names, entryPoint } = await pack({ bundle: { external: ['native'] } });
    expect(names).toContain('node_modules/native/node_modules/dep/i.js');
    expect(names).not.toContain('node_modules/dep/package.json');
    expect(await unzipAndRun(zip, entryPoint)).toBe('inner\n');
  });

  it('ships a package that loads others by a require of its own as it is installed: no bundler sees those', async () => {
    await write({
      'index.ts': "import { word } from 'between'; console.log(word);",
      'node_modules/between/package.json': '{"name":"between","type":"module","main":"i.js"}',
      'node_modules/between/i.js': "export { word } from 'asks/here';",
      'node_modules/asks/package.json': '{"type":"module","exports":{"./here":"./i.js"},"dependencies":{"late":"1"}}',
      'node_modules/asks/i.js': `import { createRequire as makeRequire } from 'module';
        const load = makeRequire(import.meta.url);
        export const { word } = load('late');`,
      'node_modules/late/package.json': '{"name":"late","main":"i.js"}',
      'node_modules/late/i.js': "exports.word = 'later';",
    });
    const { zip, names, entryPoint, external } = await pack({});
    expect(await unzipAndRun(zip, entryPoint)).toBe('later\n');
    expect(external).toEqual(['asks']);
    expect(names).not.toContain('node_modules/between/i.js');
  });

  it('bundles a package that speaks of such a require where nothing uses it, or that the project does not see', async () => {
    const asks = (word: string): string =>
      `import { createRequire } from 'module'; createRequire(import.meta.url); export const word = '${word}';`;
    await write({
      'index.ts': "import { used } from 'partly'; import { word } from 'linked'; console.log(used, word);",
      'node_modules/partly/package.json': '{"name":"partly","type":"module","main":"i.js","sideEffects":false}',
      'node_modules/partly/i.js': "export { word } from './asks.js'; export const used = 1;",
      'node_modules/partly/asks.js': asks('unused'),
      // As pnpm lays packages out: what is copied from there would not find its own packages.
      'node_modules/.pnpm/linked@1/node_modules/linked/package.json': '{"name":"linked","type":"module","main":"i.js"}',
      'node_modules/.pnpm/linked@1/node_modules/linked/i.js': asks('linked'),
    });
    await symlink('.pnpm/linked@1/node_modules/linked', join(folder, 'node_modules/linked'));
    const { zip, entryPoint, external } = await pack({});
    expect(await unzipAndRun(zip, entryPoint)).toBe('1 linked\n');
    expect(external).toEqual([]);
  });

  it.each([
    [{ 'index.ts': "import 'left-out';" }, /index\.ts:1:8: Could not resolve "left-out"/, 'npm install'],
    [
      { 'index.ts': "import 'n'", 'node_modules/n/package.json': '{"main":"a.node"}', 'node_modules/n/a.node': '' },
      /node/,
      '"external": ["n"]',
    ],
  ])('names what cannot be built, and the way out', async (files, message, remedy) => {
    await write({ ...files } as Record<string, string>);
    await expect(pack({})).rejects.toMatchObject({
      reason: 'usage',
      message: expect.stringMatching(message),
      remedy: expect.stringContaining(remedy),
    });
  });
});
