// Builds what the command line takes along where it is installed outside of a clone: the folder that an argument names is a whole package,
// JavaScript and the WebAssembly module. The workspace itself keeps running the TypeScript source; `../build.mjs` makes the module.
import { spawnSync } from 'node:child_process';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const dist = resolve(process.argv[2] ?? join(root, 'dist'));
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

await rm(dist, { recursive: true, force: true });
const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', dist], {
  stdio: ['ignore', 2, 2],
});
if (status !== 0) process.exit(status ?? 1);
await cp(join(root, 'wasm'), join(dist, 'wasm'), { recursive: true });
// The compiler does not rewrite the address of a worker.
const engine = join(dist, 'src/engine.js');
const source = await readFile(engine, 'utf8');
if (!source.includes("'./engine-worker.ts'")) throw new Error('src/engine.ts names no worker');
await writeFile(engine, source.replace("'./engine-worker.ts'", "'./engine-worker.js'"));
const { name, version, description, license, type } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
const manifest = { name, version, description, license, type, exports: { '.': './src/index.js' } };
await writeFile(join(dist, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
