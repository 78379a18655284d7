import type { CompilePlugin } from './plugin.ts';

/** Plain style sheets outside of app/assets/: kept as they are, and joined. */
export function createCssPlugin(): CompilePlugin {
  return { name: 'css', extensions: ['.css'], targets: ['style'], compile: ({ text }) => ({ output: text }) };
}
