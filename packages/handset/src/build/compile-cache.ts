import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { packageManifest } from '../package-folder.ts';
import type { CompileResult, CompileTarget } from '../plugins/plugin.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import { projectPath } from '../project/paths.ts';
import type { Compiled, CompileJob } from './compiler.ts';
import type { SourceStore } from './source-store.ts';

/** Results of earlier builds of a project, found again by content, so that a build need not even load the compilers. */
export interface CompileCache {
  /** What a source compiled to, if neither it nor what it includes has changed since. */
  find(job: CompileJob): Compiled | undefined;
  /** Keep the results of this build and forget all others. */
  save(compiled: ReadonlyMap<string, Compiled>): void;
}

/** One kept result; hashes are those of the contents it was made from. */
interface Entry {
  readonly target: CompileTarget;
  readonly hash: string;
  readonly dependencies: readonly (readonly [name: string, hash: string])[];
  readonly result: CompileResult;
}

const FILE = '.handset/compiled.json';
/** The languages that come with handset only: a project's own plugin may change without a change of its version. */
export function createCompileCache(root: string, plugins: PluginRegistry, store: SourceStore): CompileCache {
  const format = madeBy();
  let entries: ReadonlyMap<string, Entry> | undefined;
  let kept = '';
  return {
    find({ name, target }) {
      entries ??= read(root, format);
      const entry = entries.get(name);
      const plugin = plugins.find(name);
      if (!entry || entry.target !== target || !plugin || !plugins.builtIn.has(plugin)) return undefined;
      if (entry.hash !== store.hash(name)) return undefined;
      if (entry.dependencies.some(([other, hash]) => store.hash(other) !== hash)) return undefined;
      return {
        ok: true,
        target,
        result: entry.result,
        dependencies: new Set(entry.dependencies.map(([other]) => other)),
      };
    },
    save(compiled) {
      const all: [string, Entry][] = [];
      for (const [name, source] of compiled) {
        const plugin = plugins.find(name);
        const hash = store.hash(name);
        if (!source.ok || !plugin || !plugins.builtIn.has(plugin) || hash === undefined) continue;
        const dependencies = [...source.dependencies].map((other) => [other, store.hash(other) ?? ''] as const);
        all.push([name, { target: source.target, hash, dependencies, result: source.result }]);
      }
      const key = all
        .map(([name, { hash, dependencies }]) => `${name} ${hash} ${dependencies.join()}`)
        .sort()
        .join('\n');
      if (key === kept) return;
      kept = key;
      write(root, JSON.stringify({ format, entries: all }));
    },
  };
}

/** Part of the file: what other compilers, or this handset before a change, have made is not taken. */
function madeBy(): string {
  const { version, devDependencies } = packageManifest();
  const { coffeescript, pug } = devDependencies;
  const node = process.versions.node.split('.')[0];
  return `handset ${version}, coffeescript ${coffeescript}, pug ${pug}, node ${node}`;
}

function read(root: string, format: string): Map<string, Entry> {
  try {
    const value = JSON.parse(readFileSync(projectPath(root, FILE), 'utf8')) as { format?: unknown; entries?: unknown };
    if (value.format !== format || !Array.isArray(value.entries)) return new Map();
    return new Map(value.entries as [string, Entry][]);
  } catch {
    return new Map();
  }
}

/** A cache that cannot be written is a slower build, not a failed one. */
function write(root: string, text: string): void {
  try {
    mkdirSync(projectPath(root, '.handset'), { recursive: true });
    const temporary = projectPath(root, `${FILE}-${process.pid}`);
    writeFileSync(temporary, text);
    renameSync(temporary, projectPath(root, FILE));
  } catch {
    // As said above.
  }
}
