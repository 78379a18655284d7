import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { defaultPythonDirs } from './python-interpreters.ts';

const NOBODY = 65_534;

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'pythons-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

it('looks where version managers keep Pythons', async () => {
  await mkdir(join(root, '.pyenv/versions/3.12.1'), { recursive: true });
  expect(await defaultPythonDirs({ HOME: root })).toContain(join(root, '.pyenv/versions/3.12.1/bin'));
});

it('passes over a folder that it may not look into', async () => {
  await mkdir(join(root, 'versions'), { mode: 0 });
  const isRoot = userInfo().uid === 0;
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    expect(await defaultPythonDirs({ PYENV_ROOT: root })).toEqual(['/usr/bin', '/usr/local/bin']);
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
});
