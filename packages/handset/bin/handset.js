#!/usr/bin/env node
// In a checkout the TypeScript sources run as they are; the published package holds only what was built from them.
import { existsSync } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import path from 'node:path';

// Most of a short build is loading the compilers: Node keeps their compiled form, and nothing of the application, in a
// folder of this user. Threads find the folder by the variable.
// An empty or relative XDG_CACHE_HOME counts as none: what a project's folder holds must not be run as machine code.
const caches = process.env.XDG_CACHE_HOME ?? '';
process.env.NODE_COMPILE_CACHE ??= path.join(
  path.isAbsolute(caches) ? caches : path.join(homedir(), '.cache'),
  'handset',
);
module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE);

const source = new URL('../src/main.ts', import.meta.url);
const built = new URL('../dist/main.js', import.meta.url);
const runsSources = existsSync(source) && Boolean(process.features.typescript);
if (runsSources || existsSync(built)) await import(runsSources ? source.href : built.href);
else {
  process.stderr.write(
    `handset: Node ${process.versions.node} does not run the TypeScript sources of a checkout. Use Node 22.18 or newer, or build it once: npm run build -w packages/handset\n`,
  );
  process.exitCode = 1;
}
