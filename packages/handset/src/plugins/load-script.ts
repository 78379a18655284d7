import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { cachedDataVersionTag } from 'node:v8';
import vm from 'node:vm';

/** So many forms are kept: other versions of handset and of Node have theirs. */
const MOST_CACHES = 18;

/** The folder of this user that `bin/handset.js` has looked at and found fit to run code from; undefined if there is none. */
export function ownCache(): string | undefined {
  return process.env.NODE_DISABLE_COMPILE_CACHE ? undefined : process.env.NODE_COMPILE_CACHE;
}

/**
 * Run a CommonJS file by the machine form of it that is kept in `cache`, a folder of this user, if there is one. The form is
 * taken when the process ends: unlike Node's own compile cache it knows the functions that were called, and a cold build
 * takes half the time. Nothing of an application is in it.
 */
export function loadScript(file: string, cache: string | undefined, require: NodeJS.Require): unknown {
  const source = readFileSync(file);
  const kept = cache && path.join(cache, cacheName(file, source));
  const cachedData = kept ? readIfThere(kept) : undefined;
  const script = new vm.Script(`(function (exports, require, module, __filename) {${source}\n})`, {
    filename: file,
    cachedData,
  });
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module, file);
  if (kept && (!cachedData || script.cachedDataRejected)) {
    process.once('exit', () => keep(kept, script.createCachedData()));
  }
  return module.exports;
}

/** Import a module by its URL. It is done here because what `loadScript` runs cannot: V8 knows no module that asks. */
export function importModule(url: string): Promise<unknown> {
  return import(url);
}

/**
 * V8 checks its own version and settings, but of the source only the length. The settings of `handset build` are not those
 * of the other commands: each has its own form, or they would overwrite each other's.
 */
function cacheName(file: string, source: Buffer): string {
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
