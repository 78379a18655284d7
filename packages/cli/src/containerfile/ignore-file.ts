import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathPattern } from './path-pattern.ts';

/** What of the build context is left out. */
export interface Ignored {
  /** Of a path relative to it, without a slash at its end. */
  ignores(path: string): boolean;
  /** Whether something may be taken back from a folder that is left out. */
  exceptions: boolean;
}

/** Changes with every deploy, and is nobody's business in an image. */
const NEVER = ['.agentcore'];

/** The file that says what of `folder` is not for images: beside the Containerfile first, as Docker and Buildah look for it. */
export async function readIgnoreFile(folder: string, containerfile: string): Promise<Ignored> {
  for (const name of [
    `${containerfile}.containerignore`,
    `${containerfile}.dockerignore`,
    '.containerignore',
    '.dockerignore',
  ]) {
    const text = await readFile(join(folder, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (text !== undefined) return ignoredBy(text);
  }
  return ignoredBy('');
}

/**
 * What the text of a .dockerignore or .containerignore leaves out: `*`, `?`, `[…]` within a name, `**` over any number of folders,
 * `!` takes back, the last line that fits decides, and a folder stands for all that is in it.
 */
export function ignoredBy(text: string): Ignored {
  const rules = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .flatMap((line) => {
      const back = line.startsWith('!');
      const pattern = (back ? line.slice(1).trim() : line).split('/').filter((part) => part !== '' && part !== '.');
      return pattern.length === 0 || pattern.includes('..') ? [] : [{ back, fits: pathPattern(pattern) }];
    });
  return {
    exceptions: rules.some(({ back }) => back),
    ignores(path) {
      const parts = path.split('/');
      if (NEVER.includes(parts[0] ?? '')) return true;
      const withParents = parts.map((_, i) => parts.slice(0, i + 1));
      let ignored = false;
      for (const { back, fits } of rules) if (withParents.some((prefix) => fits(prefix))) ignored = !back;
      return ignored;
    },
  };
}
