import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import type { NodeOfBench } from './full-builds.ts';

const execute = promisify(execFile);

/** The oldest Node that handset runs on and its users have. It has no compile cache of its own: the package that others use gives Brunch one. */
const OLD_NODE = '20.20.2';
const COMPILE_CACHE = { 'v8-compile-cache': '2.4.0' };

/** Node 20, installed below `folder`, and the one that runs this. On both, Brunch keeps its compiled form. */
export async function nodesOfBench(folder: string): Promise<NodeOfBench[]> {
  const home = path.join(folder, 'nodes');
  const cache = path.join(folder, 'brunch-cache');
  const name = `node-linux-${process.arch}`;
  await mkdir(home, { recursive: true });
  const dependencies = { [name]: OLD_NODE, ...COMPILE_CACHE };
  await writeFile(path.join(home, 'package.json'), JSON.stringify({ private: true, dependencies }));
  await execute('npm', ['install', '--ignore-scripts', '--no-fund', '--no-audit'], { cwd: home });
  const preload = createRequire(path.join(home, 'package.json')).resolve('v8-compile-cache');
  return [
    {
      version: OLD_NODE,
      path: path.join(home, 'node_modules', name, 'bin/node'),
      peerArgs: ['--require', preload],
      peerEnv: { V8_COMPILE_CACHE_CACHE_DIR: cache },
    },
    {
      version: process.versions.node,
      path: process.execPath,
      peerArgs: [],
      peerEnv: { NODE_COMPILE_CACHE: cache },
    },
  ];
}
