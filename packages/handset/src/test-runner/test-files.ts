import { joinParts, scriptPart } from '../build/bundle.ts';
import { compileSource } from '../build/compiler.ts';
import { isUnitTest } from '../build/roles.ts';
import type { SourceStore } from '../build/source-store.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import type { Problem } from '../problem.ts';
import { compareNames } from '../project/paths.ts';

/** A compiled file of unit tests. */
export interface TestFile {
  readonly name: string;
  readonly code: string;
  /** Source map as JSON. */
  readonly map: string;
}

/** Compile `*.test.*` below app/ and every script below test/. */
export async function compileTestFiles(
  store: SourceStore,
  plugins: PluginRegistry,
): Promise<{ files: TestFile[]; problems: Problem[] }> {
  const files: TestFile[] = [];
  const problems: Problem[] = [];
  for (const name of [...store.names()].sort(compareNames)) {
    const isTest =
      name.startsWith('test/') || (name.startsWith('app/') && isUnitTest(name.slice(name.lastIndexOf('/') + 1)));
    if (!isTest || !plugins.find(name)?.targets.includes('script')) continue;
    const compiled = await compileSource(name, 'script', plugins, store);
    if (!compiled.ok) problems.push(compiled.problem);
    else {
      const { code, map } = joinParts(name, [scriptPart(name, compiled.result.output, compiled.result.map)]);
      files.push({ name, code, map });
    }
  }
  return { files, problems };
}
