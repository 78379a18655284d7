import { readFile } from 'node:fs/promises';

/** A conversation and what a memory should know once it has ended. */
export interface Labelled {
  title: string;
  sessions: { role: 'USER' | 'ASSISTANT'; text: string }[][];
  /** Each fact by the words that a record of it holds. */
  facts: string[][];
  /** What is no longer so: words that a record of it holds, and no record of a fact. */
  stale: string[][];
  /** What is true and may be kept, though nobody would ask for it. */
  allowed: string[][];
}

/**
 * Reads conversations: `# title`, then `U:` and `A:` lines, `== session` between sessions, `+ word | word` for each fact and `- word | word` for
 * each statement that a later one takes back; `~ word | word` for what may be kept or not. Throws at a line that is none of these.
 */
export async function readLabelled(file: string): Promise<Labelled[]> {
  const read: Labelled[] = [];
  for (const line of (await readFile(file, 'utf8')).split('\n').filter((one) => one.trim() !== '')) {
    const [mark = '', rest = ''] = /^(\S+)\s*(.*)$/.exec(line)?.slice(1) ?? [];
    if (mark === '#') {
      read.push({ title: rest, sessions: [[]], facts: [], stale: [], allowed: [] });
      continue;
    }
    const current = read.at(-1);
    const words = rest.split('|').map((word) => word.trim());
    if (mark === 'U:' || mark === 'A:')
      current?.sessions.at(-1)?.push({ role: mark === 'U:' ? 'USER' : 'ASSISTANT', text: rest });
    else if (mark === '==') current?.sessions.push([]);
    else if (mark === '+') current?.facts.push(words);
    else if (mark === '-') current?.stale.push(words);
    else if (mark === '~') current?.allowed.push(words);
    else throw new Error(`${file}: what is this line? ${line}`);
  }
  return read;
}
