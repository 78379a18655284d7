// Builds what is published: `dist/` is a whole package (JavaScript, types, README, its own package.json), so that the
// workspace itself can keep running the TypeScript source. `npm pack ./dist` makes the artefact. An argument names another
// folder than `dist/`.
import { spawnSync } from 'node:child_process';
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = new URL('../', import.meta.url);
const dist = process.argv[2] ? pathToFileURL(`${resolve(process.argv[2])}/`) : new URL('dist/', root);
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

await rm(dist, { recursive: true, force: true });
const project = fileURLToPath(new URL('tsconfig.build.json', root));
const { status } = spawnSync(process.execPath, [tsc, '-p', project, '--outDir', fileURLToPath(dist)], {
  stdio: ['ignore', 2, 2],
});
if (status !== 0) process.exit(status ?? 1);

const source = JSON.parse(await readFile(new URL('package.json', root), 'utf8'));
const { name, version, description, license, type } = source;
/** `./src/memory/index.ts` of the workspace is `./memory/index.js` and its types of what is published. */
const built = (path) => path.replace('./src/', './').replace(/\.ts$/, '');
const manifest = {
  name,
  version,
  description,
  license,
  type,
  engines: { node: '>=20' },
  exports: Object.fromEntries(
    Object.entries(source.exports).map(([subpath, path]) => [
      subpath,
      { types: `${built(path)}.d.ts`, default: `${built(path)}.js` },
    ]),
  ),
  types: './index.d.ts',
  // To serve an agent needs none of them: each belongs to one subpath, or to a WebSocket handler.
  peerDependencies: source.publish.peerDependencies,
  peerDependenciesMeta: Object.fromEntries(
    Object.keys(source.publish.peerDependencies).map((peer) => [peer, { optional: true }]),
  ),
};
await writeFile(new URL('package.json', dist), `${JSON.stringify(manifest, undefined, 2)}\n`);
await copyFile(new URL('README.md', root), new URL('README.md', dist));
