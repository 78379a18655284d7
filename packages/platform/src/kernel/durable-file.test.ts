import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { replaceFile, syncDirectory } from './durable-file.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'durable-file-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test('takes the place of what is there, and only its owner may read it', async () => {
  const path = join(directory, 'key');
  await writeFile(path, 'a longer old content', { mode: 0o644 });
  await replaceFile(path, 'new');
  expect(await readFile(path, 'utf8')).toBe('new');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(directory)).toEqual(['key']);
});

test('what a crash left of an earlier try neither stops it nor lends its mode', async () => {
  const path = join(directory, 'key');
  await writeFile(`${path}.new`, 'half', { mode: 0o666 });
  await replaceFile(path, 'whole');
  expect(await readFile(path, 'utf8')).toBe('whole');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test('a file that cannot be put in place leaves the old one and no draft', async () => {
  const path = join(directory, 'taken');
  await mkdir(join(path, 'inside'), { recursive: true });
  await expect(replaceFile(path, 'new')).rejects.toMatchObject({ code: 'EISDIR' });
  expect(await readdir(directory)).toEqual(['taken']);
});

test('a directory that is gone needs no sync, any other trouble is told', async () => {
  await syncDirectory(directory);
  await syncDirectory(join(directory, 'gone'));
  await expect(syncDirectory('\0')).rejects.toThrow();
});
