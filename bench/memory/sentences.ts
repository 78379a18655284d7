import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const PACKAGES = resolve(import.meta.dirname, '../../node_modules');

/**
 * Distinct English sentences out of the documentation that comes with installed packages: real text, always there, in an
 * order that does not change. Throws when there are fewer than asked for.
 */
export async function realSentences(count: number): Promise<string[]> {
  const found = new Set<string>();
  const names = (await readdir(PACKAGES, { recursive: true })).filter((name) => /\.(md|markdown)$/i.test(name)).sort();
  for (const name of names) {
    const text = await readFile(join(PACKAGES, name), 'utf8').catch(() => '');
    for (const sentence of sentencesOf(text)) {
      found.add(sentence);
      if (found.size === count) return [...found];
    }
  }
  throw new Error(`there are ${found.size} sentences in the documentation of the installed packages, not ${count}`);
}

function sentencesOf(markdown: string): string[] {
  return markdown
    .replace(/```[\s\S]*?```/g, '\n')
    .replace(/<[^>]*>|\[([^\]]*)\]\([^)]*\)|[*_`#>|]/g, '$1')
    .split(/\n{2,}|(?<=[.!?])\s+/)
    .map((sentence) => sentence.replace(/\s+/g, ' ').trim())
    .filter((sentence) => sentence.length >= 30 && sentence.length <= 300 && sentence.split(' ').length >= 6);
}
