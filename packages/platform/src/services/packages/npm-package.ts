import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { createGzip } from 'node:zlib';
import { pack } from 'tar-stream';
import type { Package } from './package-shelf.ts';

const BUILD_MS = 120_000;

/**
 * The tarball of a workspace's package as npm installs it; its own `scripts/build.mjs` makes the files, in a folder below `temporaryDir`. Rejects
 * when that fails, as where the development packages are not installed.
 */
export async function npmPackage(source: string, temporaryDir: string): Promise<Package> {
  const folder = await mkdtemp(join(temporaryDir, 'package-'));
  try {
    await promisify(execFile)(process.execPath, [join(source, 'scripts/build.mjs'), folder], { timeout: BUILD_MS });
    const { name, version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    return { fileName: `${name}-${version}.tgz`, bytes: await tarball(folder) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The same bytes for the same files: sorted, without dates and owners. */
async function tarball(folder: string): Promise<Buffer> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const archive = pack();
  const packed = buffer(archive.pipe(createGzip()));
  for (const path of paths.sort()) {
    const name = `package/${relative(folder, path)}`;
    const header = { name, mode: name.startsWith('package/bin/') ? 0o755 : 0o644, mtime: new Date(0) };
    archive.entry(header, await readFile(path)).on('error', (error) => archive.destroy(error));
  }
  archive.finalize();
  return packed;
}
