import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { PACKAGE, temporaryFolder, tree } from './support/project.ts';

it('an empty or relative XDG_CACHE_HOME does not take machine code from the folder one stands in', () => {
  const caches = (XDG_CACHE_HOME: string): boolean => {
    const cwd = temporaryFolder();
    const env = { ...process.env, HOME: temporaryFolder(), NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME };
    const { status } = spawnSync(process.execPath, [path.join(PACKAGE, 'bin/handset.js'), '--version'], { cwd, env });
    expect(status).toBe(0);
    return tree(path.isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : cwd).size > 0;
  };
  // The channel is open: an absolute one is used.
  expect(caches(temporaryFolder())).toBe(true);
  expect([caches(''), caches('here')]).toEqual([false, false]);
});

it.runIf(process.getuid)('a cache that another user can write is not used, and a sentence says so', () => {
  const version = (prepare: (folder: string) => void) => {
    const [cwd, caches] = [temporaryFolder(), temporaryFolder()];
    const folder = path.join(caches, 'handset');
    prepare(folder);
    const env = { ...process.env, NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME: caches };
    const args = [path.join(PACKAGE, 'bin/handset.js'), '--version'];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd, env, encoding: 'utf8' });
    expect(status).toBe(0);
    return { used: tree(caches).size > 0, stderr };
  };
  // The channel is open: a folder of one's own is used, whether it was there or not.
  const fine = { used: true, stderr: '' };
  expect(version(() => undefined)).toEqual(fine);
  expect(version((folder) => mkdirSync(folder, { mode: 0o700 }))).toEqual(fine);
  const open = version((folder) => {
    mkdirSync(folder);
    chmodSync(folder, 0o777);
  });
  expect(open).toEqual({ used: false, stderr: expect.stringMatching(/handset may be written by other users/) });
  if (process.getuid?.() !== 0) return;
  const foreign = version((folder) => {
    mkdirSync(folder, { mode: 0o755 });
    chownSync(folder, 65534, 65534);
  });
  expect(foreign).toEqual({ used: false, stderr: expect.stringMatching(/handset belongs to another user/) });
});
