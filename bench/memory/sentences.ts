import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const PACKAGES = resolve(import.meta.dirname, '../../node_modules');

/**
 * Distinct English sentences out of the documentation that comes with installed packages: real text, always there, in an
 * order that does not change. Throws when there are fewer than asked for.
 */
export async function realSentences(count: number): Promise<string[]> {
  const found = new Set<string>();
  const all = (await readdir(PACKAGES, { recursive: true })).sort();
  // Pages first; the comments of code when those are not enough.
  const pages = all.filter((name) => /\.(md|markdown)$/i.test(name));
  const code = all.filter((name) => /\.(d\.[mc]?ts|js|mjs|cjs)$/.test(name));
  for (const name of [...pages, ...code]) {
    const text = await readFile(join(PACKAGES, name), 'utf8').catch(() => '');
    for (const sentence of sentencesOf(/\.(md|markdown)$/i.test(name) ? text : commentsOf(text))) {
      found.add(sentence);
      if (found.size === count) return [...found];
    }
  }
  throw new Error(`there are ${found.size} sentences in the documentation of the installed packages, not ${count}`);
}

function commentsOf(declarations: string): string {
  const comments = declarations.match(/\/\*\*[\s\S]*?\*\//g) ?? [];
  return comments.map((comment) => comment.replace(/^\s*\/?\*+\/?|\*\/$/gm, '').replace(/@\w+/g, '\n\n')).join('\n\n');
}

function sentencesOf(markdown: string): string[] {
  return markdown
    .replace(/```[\s\S]*?```/g, '\n')
    .replace(/<[^>]*>|\[([^\]]*)\]\([^)]*\)|[*_`#>|]/g, '$1')
    .split(/\n{2,}|(?<=[.!?])\s+/)
    .map((sentence) => sentence.replace(/\s+/g, ' ').trim())
    .filter((sentence) => sentence.length >= 20 && sentence.length <= 400 && sentence.split(' ').length >= 3);
}
