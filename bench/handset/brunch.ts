import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * The last release by Brunch's authors. The registry's newest, 5.0.1, has nothing to do with them. Compilers are those of
 * handset, so that the assemblers are compared and not the compilers.
 */
const PACKAGES = { brunch: '4.0.2', 'coffee-script-brunch': '4.0.0', coffeescript: '1.12.7', pug: '3.0.4' };
const INTEGRITY = 'sha512-J+6M9uDk1/24+OTFauNoTqEiD6UVoIbpQeqnZX/YTwKyrsTJ2LbA6L1Nf1oWE2QWwd6BXHIvFg+qK92SqC+Rxg==';
const INSTALL_MS = 300_000;

/** Brunch's own Pug plugin is written for a Pug of 2016; this one does what it did with the Pug that handset uses. */
const PUG_PLUGIN = `'use strict';
const pug = require('pug');
class PugCompiler {
  constructor() { this.pattern = /\\.pug$/; }
  compile(file) {
    const data = pug.compileClient(file.data, { filename: file.path, compileDebug: false, inlineRuntimeFunctions: false });
    return Promise.resolve({ data: data + '\\nmodule.exports = template;' });
  }
  compileStatic(file) {
    return Promise.resolve({ data: pug.compile(file.data, { filename: file.path })({}) });
  }
}
PugCompiler.prototype.brunchPlugin = true;
PugCompiler.prototype.type = 'template';
PugCompiler.prototype.extension = 'pug';
PugCompiler.prototype.staticTargetExtension = 'html';
module.exports = PugCompiler;
`;

const CONFIG = `module.exports = {
  files: {
    javascripts: { joinTo: { 'javascripts/app.js': /^app/, 'javascripts/vendor.js': /^vendor/ } },
    templates: { joinTo: 'javascripts/templates.js' },
  },
  modules: { autoRequire: {} },
  npm: { enabled: false },
};
`;

/** Make \`root\` a Brunch project; install Brunch and check that it is the genuine one. Returns the program to run. */
export async function installBrunch(root: string): Promise<string> {
  const dependencies = { ...PACKAGES, 'pug-bench-brunch': 'file:pug-bench-brunch' };
  await mkdir(path.join(root, 'pug-bench-brunch'), { recursive: true });
  await writeFile(path.join(root, 'pug-bench-brunch/index.js'), PUG_PLUGIN);
  await writeFile(
    path.join(root, 'pug-bench-brunch/package.json'),
    '{ "name": "pug-bench-brunch", "version": "1.0.0", "main": "index.js" }',
  );
  await writeFile(
    path.join(root, 'package.json'),
    JSON.stringify({
      name: 'peer',
      version: '1.0.0',
      private: true,
      dependencies,
      overrides: { coffeescript: PACKAGES.coffeescript },
    }),
  );
  await writeFile(path.join(root, 'brunch-config.js'), CONFIG);
  await run('npm', ['install', '--ignore-scripts', '--install-links', '--no-fund', '--no-audit'], {
    cwd: root,
    timeout: INSTALL_MS,
  });
  await checkGenuine(root);
  return path.join(root, 'node_modules/brunch/bin/brunch');
}

async function checkGenuine(root: string): Promise<void> {
  const lock = JSON.parse(await readFile(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { integrity?: string; version?: string }>;
  };
  const installed = lock.packages['node_modules/brunch'];
  const { author } = JSON.parse(await readFile(path.join(root, 'node_modules/brunch/package.json'), 'utf8')) as {
    author?: string;
  };
  if (
    installed?.version !== PACKAGES.brunch ||
    installed.integrity !== INTEGRITY ||
    author !== 'Brunch team (https://brunch.io)'
  ) {
    throw new Error(`This is not the Brunch that was looked at: ${JSON.stringify({ ...installed, author })}`);
  }
}
