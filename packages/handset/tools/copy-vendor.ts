// Writes the files that the scaffold and the example carry in vendor/ from their originals: node tools/copy-vendor.ts
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const here = path.resolve(import.meta.dirname, '..');
const require = createRequire(import.meta.url);

/** pug-runtime as one ES5 script that sets the global `pug`. */
export function browserRuntime(): string {
  const folder = path.dirname(require.resolve('pug-runtime'));
  const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as { version: string };
  const source = readFileSync(path.join(folder, 'index.js'), 'utf8');
  return [
    `/*! pug-runtime ${version} | MIT | (c) 2014 Forbes Lindesay and contributors */`,
    '(function (global) {',
    'var exports = {};',
    "var require = function () { return { readFileSync: function () { return ''; } }; };",
    source.trimEnd(),
    'global.pug = exports;',
    '})(this);',
    '',
  ].join('\n');
}

if (process.argv[1] === import.meta.filename) {
  for (const target of ['scaffold/vendor', 'examples/news-reader/vendor']) {
    writeFileSync(path.join(here, target, 'pug_runtime.js'), browserRuntime());
    copyFileSync(path.join(here, 'client/handset.js'), path.join(here, target, 'handset.js'));
  }
}
