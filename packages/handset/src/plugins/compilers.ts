import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { PACKAGE_FOLDER } from '../package-folder.ts';
import { loadScript, ownCache } from './load-script.ts';

/** The parts of the compilers that are used here; neither comes with types. */
interface Compilers {
  readonly coffeescript: { compile(text: string, options: object): { js: string; v3SourceMap: string } };
  readonly pug: {
    compileClient(text: string, options: object): string;
    compile(text: string, options: object): (locals: object) => string;
  };
}

/** Load a compiler. The published package carries each as one file, whose machine form is kept in `cache`, a folder of this user. */
export function loadCompiler<Name extends keyof Compilers>(name: Name, cache = ownCache()): Compilers[Name] {
  const require = createRequire(import.meta.url);
  if (import.meta.url.endsWith('.ts')) return require(name) as Compilers[Name];
  const file = fileURLToPath(new URL(`dist/compilers/${name}.cjs`, PACKAGE_FOLDER));
  return loadScript(file, cache, require) as Compilers[Name];
}
