import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Project } from '../project/project.ts';
import { packageCode } from './package-code.ts';
import { pythonPackages } from './python-packages.ts';

/** A Python in the project's virtual environment whose pip notes each call and installs one file. */
const PYTHON = `#!/bin/sh
if [ "$1" = -c ]; then echo 3.12; exit; fi
printf '%s\\n' "$*" >> "$(dirname "$0")/calls"
echo 'Collecting something'
echo 'Collecting else>=2 (from something)'
echo 'Installing collected packages: else, something'
while [ "$1" != --target ]; do shift; done
if grep -q broken requirements.txt; then echo 'ERROR: No matching distribution' >&2; exit 1; fi
cp requirements.txt "$2/installed"
`;

/** A package whose build needs nothing from a registry. */
const PYPROJECT = `[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
`;
const BACKEND = `import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "lib-1-py3-none-any.whl"
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        wheel.write("content.py", "lib.py")
        wheel.writestr("lib-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: lib\\nVersion: 1\\n")
        wheel.writestr("lib-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("lib-1.dist-info/RECORD", "")
    return name
`;
const localVersion = (): string =>
  execFileSync('python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], { encoding: 'utf8' }).trim();

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentcore-pip-'));
  await write('.venv/bin/python', PYTHON);
  await chmod(join(folder, '.venv/bin/python'), 0o755);
  return () => rm(folder, { recursive: true, force: true });
});

async function write(name: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, name)), { recursive: true });
  await writeFile(join(folder, name), text);
}

const said: string[] = [];
const install = (version = '3.12'): Promise<string | undefined> =>
  pythonPackages({ folder, version, signal: new AbortController().signal, say: (text) => said.push(text) });
const calls = async (): Promise<string[]> =>
  (await readFile(join(folder, '.venv/bin/calls'), 'utf8').catch(() => '')).split('\n').slice(0, -1);
const installed = async (place: string | undefined): Promise<string> =>
  readFile(join(place ?? '', 'installed'), 'utf8');

const project = (): Project => ({
  folder,
  file: { name: 'a', language: 'python', entrypoint: 'main.py', runtime: 'PYTHON_3_12' },
});

/** What each file of a zip holds, as Python reads it. */
function heldBy(zip: string): Record<string, string> {
  const script =
    'import json, sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); print(json.dumps({n: z.read(n).decode() for n in z.namelist()}))';
  return JSON.parse(execFileSync('python3', ['-c', script, zip], { encoding: 'utf8' }));
}

describe('the packages of requirements.txt', () => {
  it('are installed once for one text, and anew for another', async () => {
    await write('requirements.txt', 'one==1\n');
    const first = await install();
    expect(await installed(first)).toBe('one==1\n');
    expect(said.splice(0)).toEqual([
      'pip installs what requirements.txt names; it is kept for the next deploy',
      'pip, 1 package so far: Collecting something',
      'pip, 2 packages so far: Collecting else>=2 (from something)',
      'pip unpacks 2 packages',
    ]);
    expect(await install()).toBe(first);
    expect(await calls()).toHaveLength(1);
    await write('requirements.txt', 'one==2\n');
    const second = await install();
    expect(await installed(second)).toBe('one==2\n');
    // What nothing asks for any more is not kept.
    await expect(installed(first)).rejects.toThrow('ENOENT');
    expect(await calls()).toHaveLength(2);
  });

  it('are installed anew when a file that it includes changes, and for another Python', async () => {
    await write('requirements.txt', '-r more/base.txt\n-c limits.txt\n');
    await write('more/base.txt', '-r deep.txt\n');
    await write('more/deep.txt', 'one\n');
    await install();
    await write('limits.txt', 'one<2\n');
    await install();
    await write('more/deep.txt', 'one\ntwo\n');
    await install();
    await install();
    expect(await calls()).toHaveLength(3);
    await install('3.10');
    await install('3.10');
    await install();
    const [, , , other, ...rest] = await calls();
    expect(other).toContain('--python-version 3.10');
    expect(rest).toEqual([]);
  });

  it.each(['-e .', '-e ./lib', '--editable=./lib', '-r more.txt'])(
    'are refused where a sandbox would find only a link to this machine: %j',
    async (text) => {
      await write('requirements.txt', `${text}\n`);
      await write('more.txt', '-e ./lib\n');
      await expect(install()).rejects.toMatchObject({
        ...{ reason: 'usage', message: expect.stringContaining('editable') },
        remedy: expect.stringMatching(/: \.(\/lib)?$/),
      });
      expect(await calls()).toEqual([]);
    },
  );

  it.each(['./lib', 'lib @ file://FOLDER/lib', '.'])(
    'are copies of what is on this machine, by pip itself: %j',
    async (text) => {
      await rm(join(folder, '.venv'), { recursive: true });
      for (const at of ['lib/', '']) {
        await write(`${at}pyproject.toml`, PYPROJECT);
        await write(`${at}backend.py`, BACKEND);
        await write(`${at}content.py`, 'SAYS = "hello"\n');
      }
      await write('requirements.txt', `${text.replace('FOLDER', folder)}\n`);
      const place = (await install(localVersion())) ?? '';
      expect(await readFile(join(place, 'lib.py'), 'utf8')).toBe('SAYS = "hello"\n');
      expect((await readdir(place)).filter((name) => name.endsWith('.pth'))).toEqual([]);
    },
  );

  it.each(['./lib', './lib[more]', 'lib @ file://FOLDER/lib', 'lib/lib-1-py3-none-any.whl', '-f lib\nlib'])(
    'are installed anew when a file of this machine changes that they name: %j',
    async (text) => {
      await write('lib/lib-1-py3-none-any.whl', 'one');
      await write('requirements.txt', text.replace('FOLDER', folder));
      const first = await install();
      // What a build leaves there is none of its content.
      for (const left of ['lib/build/lib/a.py', 'lib/lib.egg-info/PKG-INFO', 'lib/.cache/a', 'lib/__pycache__/a.pyc'])
        await write(left, 'left');
      expect(await install()).toBe(first);
      expect(await calls()).toHaveLength(1);
      await write('lib/lib-1-py3-none-any.whl', 'two');
      expect(await install()).not.toBe(first);
      expect(await calls()).toHaveLength(2);
    },
  );

  it.each([
    './gone',
    'git+https://example.com/lib.git',
    'lib @ git+ssh://git@example.com/lib.git',
    '-f https://example.com/wheels\nlib',
  ])('are installed each time where they name what may change unseen: %j', async (text) => {
    await write('requirements.txt', text);
    expect(await install()).toBe(await install());
    expect(await calls()).toHaveLength(2);
  });

  it('are none where nothing is named, and pip is not asked', async () => {
    expect(await install()).toBeUndefined();
    await write('requirements.txt', '# nothing yet\n\n');
    expect(await install()).toBeUndefined();
    expect(await calls()).toEqual([]);
  });

  it('come into the zip of each deploy as they were packed for the first, until they change', async () => {
    await write('requirements.txt', 'one==1\n');
    await write('main.py', 'print(1)');
    const pack = async () => {
      await using code = await packageCode(project(), { signal: new AbortController().signal });
      return { sha256: code.sha256, files: code.files, held: heldBy(code.zip) };
    };
    const first = await pack();
    // As before packages were packed ahead: what is deployed stays deployed.
    expect(first.sha256).toBe('a67e25defee358378d9ea171e19bea37b8ee6b5b076f64b79a09abf14ce3058c');
    expect(first).toMatchObject({ files: 3, held: { installed: 'one==1\n', 'main.py': 'print(1)' } });
    const [kept] = (await readdir(join(folder, '.agentcore/packages'))).filter((name) => name.endsWith('.packed'));
    const packed = join(folder, '.agentcore/packages', kept ?? '', 'packed.zip');
    // As a Python leaves it that ran with them.
    await write(`.agentcore/packages/${kept?.replace('.packed', '')}/__pycache__/one.cpython-312.pyc`, 'compiled');
    const { mtimeMs } = await stat(packed);
    expect(await pack()).toEqual(first);
    await write('main.py', 'print(2)');
    const second = await pack();
    expect(second.sha256).not.toBe(first.sha256);
    expect(second.held).toEqual({ ...first.held, 'main.py': 'print(2)' });
    expect((await stat(packed)).mtimeMs).toBe(mtimeMs);
    // Without what is kept, it is the same.
    await truncate(packed, 30);
    expect(await pack()).toEqual(second);
    await rm(dirname(packed), { recursive: true });
    expect(await pack()).toEqual(second);

    await write('installed', 'of the agent');
    expect((await pack()).held).toEqual({ ...second.held, installed: 'of the agent' });
    await rm(join(folder, 'installed'));
    await write('requirements.txt', 'one==2\n');
    expect((await pack()).held).toMatchObject({ installed: 'one==2\n' });
    await expect(stat(packed)).rejects.toThrow('ENOENT');
    expect(await readdir(join(folder, '.agentcore/packages'))).toHaveLength(2);
  });

  it('leave nothing behind that a failed installation had begun', async () => {
    await write('requirements.txt', 'one==1\n');
    const first = await install();
    await write('requirements.txt', 'broken\n');
    await expect(install()).rejects.toMatchObject({ message: expect.stringContaining('No matching distribution') });
    await expect(install()).rejects.toThrow('No matching distribution');
    await write('requirements.txt', 'one==1\n');
    expect(await install()).toBe(first);
    expect(await calls()).toHaveLength(3);
  });
});
