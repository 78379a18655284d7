import { readFile, realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Metafile } from 'esbuild';

/**
 * The names of the packages in a bundle that load other packages by `createRequire(import.meta.url)`. A bundler cannot see what they load, and at run time Node looks for it
 * beside the bundle. For a package inside another package, the outer one is named. Packages that the project itself does not see in a `node_modules`
 * folder (as with pnpm) are left out, because a copy of them would not find its own dependencies.
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
