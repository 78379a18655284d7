import { cp, readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CliError } from '../cli-error.ts';

interface Manifest {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

/**
 * Copies installed packages and all that they need from the `node_modules` folders that `folder` sees into
 * `stage/node_modules`, exactly as they are installed. Rejects with a `CliError` (usage) when one is not installed.
 */
export async function copyPackages(folder: string, names: string[], stage: string): Promise<void> {
  const copied = new Set<string>();
  const take = async (name: string, from: string, needed: boolean): Promise<void> => {
    const found = await locate(name, from);
    if (!found) {
      if (!needed) return;
      throw new CliError(
        'usage',
        `The package "${name}" is needed, but it is not installed.`,
        'Install it first: npm install',
      );
    }
    if (copied.has(found.path)) return;
    copied.add(found.path);
    const target = join(stage, 'node_modules', found.below);
    await cp(found.path, target, {
      recursive: true,
      dereference: true,
      filter: (path) => basename(path) !== 'node_modules',
    });
    for (const dependency of Object.keys(found.manifest.dependencies ?? {})) await take(dependency, found.path, true);
    const optional = { ...found.manifest.optionalDependencies, ...found.manifest.peerDependencies };
    for (const dependency of Object.keys(optional)) await take(dependency, found.path, false);
  };
  for (const name of names) await take(name, folder, true);
}

interface Located {
  path: string;
  /** Its place below the outermost node_modules, such as `a` or `a/node_modules/b`. */
  below: string;
  manifest: Manifest;
}

async function locate(name: string, from: string): Promise<Located | undefined> {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, 'node_modules', name);
    const text = await readFile(join(path, 'package.json'), 'utf8').catch(() => undefined);
    if (text !== undefined) {
      const manifest: Manifest = JSON.parse(text);
      const below = path.slice(path.indexOf('/node_modules/') + '/node_modules/'.length);
      return { path: await realpath(path), below, manifest };
    }
    if (folder === dirname(folder)) return undefined;
  }
}
