import { plainText } from '../tools/plain-text.ts';

const ENTITIES: { [name: string]: string | undefined } = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  '#39': "'",
  '#34': '"',
};
const BREAKS = new Set([
  'p',
  'br',
  'li',
  'ul',
  'ol',
  'dl',
  'dt',
  'dd',
  'div',
  'note',
  'important',
  'h1',
  'h2',
  'h3',
  'h4',
  'tr',
  'table',
  'pre',
]);

/** The text of a documentation trait, which is CommonMark with HTML in it, without its tags. */
export function textOfHtml(html: string, longest: number): string {
  const text = html
    .replace(/<\/?([A-Za-z][^<>]*)>/g, (_, tag: string) => (BREAKS.has(nameOf(tag)) ? '\n' : ''))
    .replace(/&(#?[a-z0-9]{1,6});/gi, (whole, name: string) => ENTITIES[name.toLowerCase()] ?? whole);
  const lines = text.split('\n').map((line) => line.trim());
  return plainText(lines.filter((line, index) => line !== '' || lines[index - 1] !== '').join('\n'), longest);
}

/** The name that a tag begins with, in small letters. */
function nameOf(tag: string): string {
  return /^[A-Za-z0-9]+/.exec(tag)?.[0].toLowerCase() ?? '';
}
