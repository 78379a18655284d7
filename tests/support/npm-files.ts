import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { fetchedOnce } from './fetched-once.ts';

const run = promisify(execFile);

/**
 * A folder with these files of a package, of which nothing else is kept: for large documents that a package brings beside much else. Undefined
 * where it cannot be had (said on stderr): its tests are skipped then.
 */
export function npmFiles(name: string, paths: readonly string[]): Promise<string | undefined> {
  return fetchedOnce({
    package: name,
    prefix: 'npm-files',
    whole: (folder) => paths.every((path) => existsSync(resolve(folder, path))),
    async fill(folder, npm) {
      await npm('pack', name, '--pack-destination', folder);
      const [archive = ''] = await readdir(folder);
      const members = paths.map((path) => `package/${path}`);
      await run('tar', ['-xzf', resolve(folder, archive), '-C', folder, '--strip-components=1', ...members]);
      await rm(resolve(folder, archive));
    },
  });
}
