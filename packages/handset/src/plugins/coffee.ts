import { ProblemError } from '../problem.ts';
import { loadCompiler } from './compilers.ts';
import type { CompilePlugin, SourceMapV3 } from './plugin.ts';

/**
 * CoffeeScript. The last release of the 1.x line is pinned on purpose: it is the one whose output is ES5 throughout
 * (2.x writes classes, arrow functions and template literals, which these devices' rules forbid).
 */
export function createCoffeePlugin(): CompilePlugin {
  let compiler: ReturnType<typeof loadCompiler<'coffeescript'>> | undefined;
  return {
    name: 'coffeescript',
    extensions: ['.coffee', '.litcoffee', '.coffee.md'],
    targets: ['script'],
    compile({ path, text }) {
      compiler ??= loadCompiler('coffeescript');
      try {
        const literate = /\.(litcoffee|coffee\.md)$/i.test(path);
        const options = { filename: path, literate, sourceMap: true, sourceFiles: [path] };
        const { js, v3SourceMap } = compiler.compile(text, options);
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
