import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const source = fileURLToPath(new URL('../../packages/handset/', import.meta.url));

/** Build handset as it is published into `folder`, with this checkout's dependencies; returns the program to run. */
export async function publishTo(folder: string): Promise<string> {
  await run(process.execPath, [path.join(source, 'tools/build-dist.mjs')]);
  const { files, dependencies } = JSON.parse(await readFile(path.join(source, 'package.json'), 'utf8')) as {
    files: string[];
    dependencies: Record<string, string>;
  };
  for (const name of ['package.json', ...files])
    await cp(path.join(source, name), path.join(folder, name), { recursive: true });
  await mkdir(path.join(folder, 'node_modules'));
  const { resolve } = createRequire(path.join(source, 'package.json'));
  for (const name of Object.keys(dependencies)) {
    const entry = resolve(name);
    const home = entry.slice(
      0,
      entry.lastIndexOf(path.join('node_modules', name)) + path.join('node_modules', name).length,
    );
    await symlink(home, path.join(folder, 'node_modules', name));
  }
  return path.join(folder, 'bin/handset.js');
}
