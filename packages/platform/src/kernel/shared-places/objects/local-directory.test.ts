import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { localDirectory, removeLeft } from './local-directory.ts';

it('removes what processes left that have ended, and nothing of one that lives', async () => {
  const all = await mkdtemp(join(tmpdir(), 'local-directory-'));
  try {
    const lives = localDirectory(all, process.pid);
    const ended = localDirectory(all, spawnSync('true').pid);
    for (const one of [lives, ended]) {
      await mkdir(one);
      await writeFile(join(one, '1'), 'content');
    }
    // As a version kept them that had one directory for all.
    await writeFile(join(all, '1'), 'content');
    await removeLeft(all);
    expect(await readdir(all)).toEqual([basename(lives)]);
    expect(await readdir(lives)).toEqual(['1']);
    await removeLeft(join(all, 'none'));
  } finally {
    await rm(all, { recursive: true, force: true });
  }
});
