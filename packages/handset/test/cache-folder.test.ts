import { spawnSync } from 'node:child_process';
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
