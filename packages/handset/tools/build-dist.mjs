// Builds what is published: dist/ from the sources, in few files, without types at run time. Run by `npm pack`; plain
// JavaScript, so that any Node runs it.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const require = createRequire(import.meta.url);
const { resolve } = require;
const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dist = path.join(here, 'dist');
const { dependencies } = JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8'));
rmSync(dist, { recursive: true, force: true });

const shared = {
  absWorkingDir: here,
  bundle: true,
  platform: 'node',
  target: 'node20',
  legalComments: 'none',
  metafile: true,
  logLevel: 'error',
};
const commonJs = {
  ...shared,
  outExtension: { '.js': '.cjs' },
  format: 'cjs',
  minifyWhitespace: true,
  minifySyntax: true,
};
/**
 * Pug needs of @babel/types three tables and some questions about nodes, not its two thousand makers of nodes, which take a
 * tenth of a cold build to set up. The tables are those of the package, taken now.
 */
const babelTypes = {
  name: 'babel-types',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^@babel\/types$/ }, () => ({ path: 'babel-types', namespace: 'tables' }));
    onLoad({ filter: /^/, namespace: 'tables' }, () => {
      const { TYPES, VISITOR_KEYS, FLIPPED_ALIAS_KEYS } = require('@babel/types');
      const validator = (name) =>
        `require(${JSON.stringify(path.join(path.dirname(resolve('@babel/types')), 'validators', name))})`;
      return {
        resolveDir: here,
        contents: `const VISITOR_KEYS = ${JSON.stringify(VISITOR_KEYS)};
          module.exports = {
            ...${validator('generated/index.js')},
            isReferenced: ${validator('isReferenced.js')}.default,
            isValidIdentifier: ${validator('isValidIdentifier.js')}.default,
            isNode: (node) => Boolean(node && VISITOR_KEYS[node.type]),
            TYPES: ${JSON.stringify(TYPES)},
            VISITOR_KEYS,
            FLIPPED_ALIAS_KEYS: ${JSON.stringify(FLIPPED_ALIAS_KEYS)},
          };`,
      };
    });
  },
};
/**
 * What packages ask for at their start and use in rare cases, or only to say that something is wrong, is loaded then: assertions
 * that fail, Pug filters of other packages, Commander's commands that are programs of their own.
 */
const LATER = {
  assert: "module.exports = (holds, ...rest) => holds || require('assert')(holds, ...rest);",
  resolve: "exports.sync = (...given) => require('resolve').sync(...given);",
  'node:child_process': "exports.spawn = (...given) => require('node:child_process').spawn(...given);",
};
const later = {
  name: 'later',
  setup({ onResolve, onLoad }) {
    onResolve(
      { filter: new RegExp(`^(${Object.keys(LATER).join('|')})$`) },
      ({ path: name, importer, namespace, resolveDir }) =>
        namespace !== 'later' && importer.includes('node_modules')
          ? { path: name, namespace: 'later', pluginData: resolveDir }
          : undefined,
    );
    onLoad({ filter: /^/, namespace: 'later' }, ({ path: name, pluginData: resolveDir }) => ({
      contents: LATER[name],
      resolveDir,
    }));
  },
};
// To open the four hundred files of the compilers takes longer than to compile a small application with them.
const compilers = await build({
  ...commonJs,
  entryPoints: Object.fromEntries(['coffeescript', 'pug'].map((name) => [name, resolve(name)])),
  outdir: path.join(dist, 'compilers'),
  plugins: [babelTypes, later],
});
/** What loads the program and the compilers is a module of its own, as Node's own loader knows it. */
const loader = {
  name: 'loader',
  setup({ onResolve }) {
    onResolve({ filter: /[\\/]load-script\.ts$/ }, ({ kind }) =>
      kind === 'entry-point' ? undefined : { path: './load-script.cjs', external: true },
    );
  },
};
await build({ ...commonJs, entryPoints: { 'load-script': 'src/plugins/load-script.ts' }, outdir: dist });
// The program is one CommonJS file like the compilers: its machine form is kept as theirs is, and to load a dozen modules of
// its own and to list what Node's export took a fifth of a build of which all is known.
const program = await build({
  ...commonJs,
  entryPoints: { main: 'src/main.ts' },
  outdir: dist,
  external: Object.keys(dependencies),
  define: { 'import.meta.url': 'ownUrl' },
  banner: { js: "const ownUrl = require('node:url').pathToFileURL(__filename).href;" },
  supported: { 'dynamic-import': false },
  plugins: [loader, later],
});
const library = await build({
  ...shared,
  entryPoints: { index: 'src/index.ts', 'test-worker': 'src/test-runner/test-worker.ts' },
  outdir: dist,
  splitting: true,
  chunkNames: '[name]-[hash]',
  format: 'esm',
  external: Object.keys(dependencies),
  // CommonJS packages ask for Node's own modules by `require`.
  banner: {
    js: "import { createRequire as nodeRequire } from 'node:module'; const require = nodeRequire(import.meta.url);",
  },
});
const inputs = [compilers, program, library].flatMap(({ metafile }) => Object.keys(metafile.inputs));
writeFileSync(path.join(dist, 'third-party.txt'), licences(inputs));

const compiler = path.join(path.dirname(resolve('typescript/package.json')), 'bin/tsc');
execFileSync(process.execPath, [compiler, '-p', path.join(here, 'tsconfig.build.json')], { stdio: 'inherit' });

/** The licence of every package that stands in the bundle. */
function licences(inputs) {
  const folders = new Set();
  for (const input of inputs) {
    const folder = /^(?!tables:).*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
    if (folder !== undefined) folders.add(path.resolve(here, folder));
  }
  return [...folders]
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
      const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
      const text = file ? readFileSync(path.join(folder, file), 'utf8') : license;
      return `${name} ${version}\n\n${text.trim()}\n`;
    })
    .sort()
    .join(`\n${'-'.repeat(80)}\n\n`);
}
