import { ProblemError } from '../problem.ts';
import type { CompilePlugin } from './plugin.ts';
import { scriptFault } from './script-fault.ts';

/** Plain JavaScript: checked for syntax, kept as it is. It runs in the global scope, as in a script tag of its own. */
export function createJavaScriptPlugin(): CompilePlugin {
  return {
    name: 'javascript',
    extensions: ['.js'],
    targets: ['script'],
    async compile({ path, text }) {
      // The line that makes a script a program of the shell may begin a file, but not a part of one.
      const output = text.replace(/^#!/, '//');
      const fault = await scriptFault(output);
      if (fault) throw new ProblemError('script-syntax', { file: path, ...fault });
      return { output, map: identityMap(path, text) };
    },
  };
}

/** Line n of the output is line n of the source. */
function identityMap(path: string, text: string) {
  const lines = text.split('\n').length;
  const mappings = `AAAA${';AACA'.repeat(lines - 1)}`;
  return { version: 3 as const, sources: [path], sourcesContent: [text], names: [], mappings };
}
