// Builds what is published: dist/ from the sources, without types at run time. Run by `npm pack`; plain JavaScript, so
// that any Node runs it.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const compiler = path.join(path.dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
rmSync(path.join(here, 'dist'), { recursive: true, force: true });
execFileSync(process.execPath, [compiler, '-p', path.join(here, 'tsconfig.build.json')], { stdio: 'inherit' });
