import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { pythonPackages } from './python-packages.ts';

/** A Python in the project's virtual environment whose pip notes each call and installs one file. */
const PYTHON = `#!/bin/sh
if [ "$1" = -c ]; then echo 3.12; exit; fi
printf '%s\\n' "$*" >> "$(dirname "$0")/calls"
echo 'Collecting something'
while [ "$1" != --target ]; do shift; done
if grep -q broken requirements.txt; then echo 'ERROR: No matching distribution' >&2; exit 1; fi
cp requirements.txt "$2/installed"
`;

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

describe('the packages of requirements.txt', () => {
  it('are installed once for one text, and anew for another', async () => {
    await write('requirements.txt', 'one==1\n');
    const first = await install();
    expect(await installed(first)).toBe('one==1\n');
    expect(said).toContain('Collecting something');
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

  it.each(['./lib', '-e .', 'lib @ file:///lib', 'wheels/lib-1-py3-none-any.whl', '--find-links wheels\nlib'])(
    'are installed each time where they are files of this machine: %j',
    async (text) => {
      await write('requirements.txt', text);
      expect(await install()).toBe(await install());
      expect(await calls()).toHaveLength(2);
    },
  );

  it('are none where nothing is named, and pip is not asked', async () => {
    expect(await install()).toBeUndefined();
    await write('requirements.txt', '# nothing yet\n\n');
    expect(await install()).toBeUndefined();
    expect(await calls()).toEqual([]);
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
