import { ProblemError } from '../problem.ts';
import { allowOptimizing } from './optimizing.ts';

/** Minifies one script to ES5; throws `minify-failed` that names `file`. `withoutTests` counts its global `test` as undefined. */
export type Minify = (file: string, code: string, withoutTests?: boolean) => Promise<string>;

export interface MinifierOptions {
  /** Let pass what is newer than ES5, for who reports it otherwise. */
  readonly keepsNewer: boolean;
}

/** Terser, with the last results kept so that a rebuild minifies only what changed. Throws `not-es5`, too. */
export function createMinifier(options: MinifierOptions): Minify {
  const cache = new Map<string, { code: string; withoutTests: boolean; result: string }>();
  return async (file, code, withoutTests = false) => {
    const known = cache.get(file);
    if (known?.code === code && known.withoutTests === withoutTests) return known.result;
    const { minify } = await import('terser');
    allowOptimizing();
    try {
      const { code: result = '' } = await minify(code, {
        ecma: 5,
        compress: { ecma: 5, passes: 2, global_defs: withoutTests ? { '@test': 'undefined' } : {} },
        format: { ecma: 5, comments: 'some' },
      });
      if (!options.keepsNewer) await refuseNewer(file, code);
      cache.set(file, { code, withoutTests, result: `${result}\n` });
      return `${result}\n`;
    } catch (error) {
      if (error instanceof ProblemError) throw error;
      const { message, line, col } = error as { message: string; line?: number; col?: number };
      throw new ProblemError('minify-failed', { file, line, column: col === undefined ? undefined : col + 1, message });
    }
  };
}

/** Throws `not-es5` at the first place that a phone's proxy cannot read: Terser makes code smaller, not older. */
export async function refuseNewer(file: string, code: string): Promise<void> {
  const { parse } = await import('acorn');
  try {
    parse(code, { ecmaVersion: 5, sourceType: 'script' });
  } catch (error) {
    const { message, loc } = error as { message: string; loc?: { line: number; column: number } };
    const why = message.replace(/ \(\d+:\d+\)$/, '');
    const column = loc && loc.column + 1;
    throw new ProblemError('not-es5', { file, line: loc?.line, column, message: `This is newer than ES5: ${why}.` });
  }
}
