import { ProblemError } from '../problem.ts';
import { allowOptimizing } from './optimizing.ts';

/** Minifies one script to ES5; throws `minify-failed` that names `file`. */
export type Minify = (file: string, code: string) => Promise<string>;

const APP = 'javascripts/app.js';

/**
 * Terser, with the last results kept so that a rebuild minifies only what changed. In app.js the
 * global `test` counts as undefined: unit tests that stand behind `if (typeof test === 'function')` are left out.
 */
export function createMinifier(): Minify {
  const cache = new Map<string, { code: string; result: string }>();
  return async (file, code) => {
    const known = cache.get(file);
    if (known?.code === code) return known.result;
    const { minify } = await import('terser');
    allowOptimizing();
    try {
      const { code: result = '' } = await minify(code, {
        ecma: 5,
        compress: { ecma: 5, passes: 2, global_defs: file === APP ? { '@test': 'undefined' } : {} },
        format: { ecma: 5, comments: 'some' },
      });
      cache.set(file, { code, result: `${result}\n` });
      return `${result}\n`;
    } catch (error) {
      const { message, line, col } = error as { message: string; line?: number; col?: number };
      throw new ProblemError('minify-failed', { file, line, column: col === undefined ? undefined : col + 1, message });
    }
  };
}
