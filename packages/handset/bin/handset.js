#!/usr/bin/env node
// In a checkout the TypeScript sources run as they are; the published package holds only what was built from them.
// CommonJS (see package.json beside it): Node starts it, and loads its own modules for it, in half the time.
const { existsSync, mkdirSync, statSync } = require('node:fs');
const { createRequire, enableCompileCache } = require('node:module');
const { homedir } = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const v8 = require('node:v8');

// A short build is over before most of what V8 optimizes for it has paid (see src/build/optimizing.ts). V8 takes a kept
// compiled form only under the settings under which it was made, so they are the same at the end as at the start.
if (process.argv[2] === 'build') {
  const settle = () => {
    v8.setFlagsFromString('--no-turbofan');
    v8.setFlagsFromString('--invocation-count-for-maglev=1500');
  };
  settle();
  process.once('exit', settle);
}

// Most of a short build is loading the compilers: Node keeps their compiled form, and nothing of the application, in a
// folder of this user. Threads find the folder by the variable.
// An empty or relative XDG_CACHE_HOME counts as none: what a project's folder holds must not be run as machine code.
const caches = process.env.XDG_CACHE_HOME ?? '';
process.env.NODE_COMPILE_CACHE ??= path.join(
  path.isAbsolute(caches) ? caches : path.join(homedir(), '.cache'),
  'handset',
);
if (!process.env.NODE_DISABLE_COMPILE_CACHE) {
  const fault = faultOfCache(process.env.NODE_COMPILE_CACHE);
  if (fault === undefined) enableCompileCache?.(process.env.NODE_COMPILE_CACHE);
  else {
    process.env.NODE_DISABLE_COMPILE_CACHE = '1';
    if (fault)
      process.stderr.write(`handset: ${process.env.NODE_COMPILE_CACHE} ${fault}: no compiled form is kept there\n`);
  }
}

const source = path.join(__dirname, '../src/main.ts');
const built = path.join(__dirname, '../dist/main.cjs');
if (existsSync(source) && process.features.typescript) void import(pathToFileURL(source).href);
else if (existsSync(built)) {
  const { loadScript, ownCache } = require('../dist/load-script.cjs');
  loadScript(built, ownCache(), createRequire(built));
} else {
  process.stderr.write(
    `handset: Node ${process.versions.node} does not run the TypeScript sources of a checkout. Use Node 22.18 or newer, or build it once: npm run build -w packages/handset\n`,
  );
  process.exitCode = 1;
}

/** What another user may write there would be run as this one: why not, empty if the folder cannot be made, undefined if all is well. */
function faultOfCache(folder) {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(folder);
    if (process.getuid === undefined) return undefined;
    if (uid !== process.getuid()) return 'belongs to another user';
    return mode & 0o022 ? 'may be written by other users (chmod go-w)' : undefined;
  } catch {
    return '';
  }
}
