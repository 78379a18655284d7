import { createRequire } from 'node:module';
import { ProblemError } from '../problem.ts';
import type { CompilePlugin, SourceMapV3 } from './plugin.ts';

interface CoffeeCompiler {
  compile(text: string, options: object): { js: string; v3SourceMap: string };
}

/** Names this plugin and no other: a project's own CoffeeScript plugin is not the built-in one. */
export const COFFEE_PLUGIN_NAME = 'coffeescript 1.12.7 (built in)';

/**
 * CoffeeScript. The last release of the 1.x line is pinned on purpose: it is the one whose output is ES5 throughout
 * (2.x writes classes, arrow functions and template literals, which these devices' rules forbid).
 */
export function createCoffeePlugin(): CompilePlugin {
  let compiler: CoffeeCompiler | undefined;
  return {
    name: COFFEE_PLUGIN_NAME,
    extensions: ['.coffee'],
    targets: ['script'],
    compile({ path, text }) {
      compiler ??= createRequire(import.meta.url)('coffeescript') as CoffeeCompiler;
      try {
        const { js, v3SourceMap } = compiler.compile(text, { filename: path, sourceMap: true, sourceFiles: [path] });
        const map = JSON.parse(v3SourceMap) as SourceMapV3;
        return { output: js, map: { ...map, sourcesContent: [text] } };
      } catch (error) {
        throw coffeeProblem(error, path);
      }
    },
  };
}

function coffeeProblem(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || !('location' in error)) return error;
  const location = error.location as { first_line: number; first_column: number } | undefined;
  return new ProblemError('script-syntax', {
    file,
    line: location && location.first_line + 1,
    column: location && location.first_column + 1,
    message: error.message,
  });
}
