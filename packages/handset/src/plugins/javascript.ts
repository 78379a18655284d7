import vm from 'node:vm';
import { ProblemError } from '../problem.ts';
import type { CompilePlugin } from './plugin.ts';

/** Plain JavaScript: checked for syntax, kept as it is. It runs in the global scope, as in a script tag of its own. */
export function createJavaScriptPlugin(): CompilePlugin {
  return {
    name: 'javascript',
    extensions: ['.js'],
    targets: ['script'],
    async compile({ path, text }) {
      await checkSyntax(path, text);
      return { output: text, map: identityMap(path, text) };
    },
  };
}

/** Throws `script-syntax` with line and column unless `text` is a script. V8 answers fast; acorn is asked where it fails. */
async function checkSyntax(file: string, text: string): Promise<void> {
  try {
    new vm.Script(text, { filename: file });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ProblemError('script-syntax', { file, ...(await errorPosition(text)), message });
  }
}

async function errorPosition(text: string): Promise<{ line?: number; column?: number }> {
  // Loaded only when there is an error to point at.
  const { parse } = await import('acorn');
  try {
    parse(text, { ecmaVersion: 'latest', sourceType: 'script', allowHashBang: false });
  } catch (error) {
    if (error instanceof Error && 'loc' in error) {
      const { line, column } = error.loc as { line: number; column: number };
      return { line, column: column + 1 };
    }
  }
  return {};
}

/** Line n of the output is line n of the source. */
function identityMap(path: string, text: string) {
  const lines = text.split('\n').length;
  const mappings = `AAAA${';AACA'.repeat(lines - 1)}`;
  return { version: 3 as const, sources: [path], sourcesContent: [text], names: [], mappings };
}
