// Builds what is installed outside of a clone: the folder that an argument names is a whole package called `agentcore`, JavaScript with the
// SDK and the policy engine inside, so that npm looks up none of our names in a registry. The workspace itself keeps running the TypeScript source.
import { spawnSync } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const workspace = join(root, '../..');
const dist = resolve(process.argv[2] ?? join(root, 'dist'));
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

await rm(dist, { recursive: true, force: true });
run(tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', dist);
run(join(root, '../sdk/scripts/build.mjs'), join(dist, 'node_modules/agentplatform'));
run(join(root, '../policy-engine/scripts/build.mjs'), join(dist, 'node_modules/@agentplatform/policy-engine'));
await cp(join(root, 'templates'), join(dist, 'templates'), { recursive: true });
await mkdir(join(dist, 'bin'));
const started = await readFile(join(root, 'bin/agentcore.mjs'), 'utf8');
await writeFile(join(dist, 'bin/agentcore.mjs'), started.replace('../src/main.ts', '../src/main.js'), { mode: 0o755 });

const { optionalDependencies } = JSON.parse(await readFile(join(workspace, 'package.json'), 'utf8'));
const { version, description, license, type, bin, dependencies } = JSON.parse(
  await readFile(join(root, 'package.json'), 'utf8'),
);
const manifest = {
  ...{ name: 'agentcore', version, description, license, type, bin, dependencies },
  bundleDependencies: ['agentplatform', '@agentplatform/policy-engine'],
  // The Node that it runs on where the machine's own is older.
  optionalDependencies,
};
await writeFile(join(dist, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);

function run(...args) {
  const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
}
