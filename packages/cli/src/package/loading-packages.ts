import { readFile, realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Metafile } from 'esbuild';

/**
 * Names the packages of a bundle that load others by `createRequire(import.meta.url)`: no bundler sees what, and it is looked for
 * beside the bundle. A package within another counts as that other. Left out are those that the project itself does not see in a
 * `node_modules` folder (as pnpm links them): what is copied from there would not find its own.
 */
export async function loadingPackages(folder: string, { inputs, outputs }: Metafile): Promise<string[]> {
  const home = await realpath(folder);
  const names = new Set<string>();
  for (const [path, { bytesInOutput }] of Object.values(outputs).flatMap((output) => Object.entries(output.inputs))) {
    if (bytesInOutput === 0 || !inputs[path]?.imports.some((one) => /^(node:)?module$/.test(one.path))) continue;
    const file = await realpath(resolve(folder, path));
    const [, above, name] = /^(.*?)\/node_modules\/((?:@[^/]+\/)?[^/@.][^/]*)\//.exec(file) ?? [];
    if (above === undefined || name === undefined || !`${home}/`.startsWith(`${above}/`)) continue;
    const text = await readFile(file, 'utf8');
    if (text.includes('createRequire') && text.includes('import.meta')) names.add(name);
  }
  return [...names].sort();
}
