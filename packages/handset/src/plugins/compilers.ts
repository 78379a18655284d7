import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { cachedDataVersionTag } from 'node:v8';
import vm from 'node:vm';
import { PACKAGE_FOLDER } from '../package-folder.ts';

/** The parts of the compilers that are used here; neither comes with types. */
interface Compilers {
  readonly coffeescript: { compile(text: string, options: object): { js: string; v3SourceMap: string } };
  readonly pug: {
    compileClient(text: string, options: object): string;
    compile(text: string, options: object): (locals: object) => string;
  };
}

/** So many caches are kept: other versions of handset and of Node have theirs. */
const MOST_CACHES = 12;

/**
 * Load a compiler. The published package carries each as one file, whose machine form is kept in `cache`, a folder of this
 * user. It is taken after the compiler has worked: unlike Node's own compile cache it knows the functions that were called,
 * and a cold build takes half the time. Nothing of an application is in it.
 */
export function loadCompiler<Name extends keyof Compilers>(
  name: Name,
  cache = process.env.NODE_DISABLE_COMPILE_CACHE ? undefined : process.env.NODE_COMPILE_CACHE,
): Compilers[Name] {
  const require = createRequire(import.meta.url);
  if (import.meta.url.endsWith('.ts')) return require(name) as Compilers[Name];
  const file = fileURLToPath(new URL(`dist/compilers/${name}.cjs`, PACKAGE_FOLDER));
  return loadScript(file, cache, require) as Compilers[Name];
}

/** Run a CommonJS file that asks for nothing but Node's own modules, by its cached machine form if there is one. */
export function loadScript(file: string, cache: string | undefined, require: NodeJS.Require): unknown {
  const source = readFileSync(file, 'utf8');
  const kept = cache && path.join(cache, cacheName(file, source));
  const cachedData = kept ? readIfThere(kept) : undefined;
  const script = new vm.Script(`(function (exports, require, module) {${source}\n})`, { filename: file, cachedData });
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module);
  if (kept && (!cachedData || script.cachedDataRejected)) {
    process.once('exit', () => keep(kept, script.createCachedData()));
  }
  return module.exports;
}

/**
 * V8 checks its own version and settings, but of the source only the length. The settings of `handset build` are not those
 * of the other commands: each has its own form, or they would overwrite each other's.
 */
function cacheName(file: string, source: string): string {
  const hash = createHash('sha256').update(source).digest('hex').slice(0, 32);
  const settings = cachedDataVersionTag().toString(16);
  return `${path.basename(file)}-${process.version}-${process.arch}-${settings}-${hash}.v8`;
}

function readIfThere(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

/** A cache that cannot be written is a slower start, not a failure. */
function keep(file: string, data: Buffer): void {
  const folder = path.dirname(file);
  const temporary = `${file}-${process.pid}`;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(temporary, data, { mode: 0o600 });
    renameSync(temporary, file);
    const caches = readdirSync(folder).filter((name) => name.endsWith('.v8'));
    const byAge = caches
      .map((name) => path.join(folder, name))
      .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
    for (const old of byAge.slice(MOST_CACHES)) rmSync(old, { force: true });
  } catch {
    rmSync(temporary, { force: true });
  }
}
