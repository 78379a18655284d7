/** The value of a variable; undefined if it is not set. */
export type Lookup = (name: string) => string | undefined;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*/;
const DEEPEST = 10;

/** An error with a sentence for the user. The caller adds the line number. */
export class WordError extends Error {}

/** Splits at white space outside of quotes, which stay as they are. Throws a `WordError` when a quote is not closed. */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word = '';
  let quote = '';
  for (let at = 0; at < text.length; at += 1) {
    const letter = text.charAt(at);
    if (letter === '\\' && quote !== "'" && at + 1 < text.length) {
      word += letter + text.charAt(at + 1);
      at += 1;
    } else if (quote === '' && /\s/.test(letter)) {
      if (word !== '') words.push(word);
      word = '';
    } else {
      if (letter === quote) quote = '';
      else if (quote === '' && (letter === '"' || letter === "'")) quote = letter;
      word += letter;
    }
  }
  if (quote !== '') throw new WordError(`the quote ${quote} is not closed.`);
  if (word !== '') words.push(word);
  return words;
}

/**
 * Removes quotes and escapes and inserts variables, as a shell does: `$name`, `${name}`, `${name:-else}`, `${name:+if}`, and the last two
 * without the colon. A variable that is not set is empty. Throws a `WordError` for anything else after `${name`.
 */
export function expand(text: string, lookup: Lookup, depth = 0): string {
  if (depth > DEEPEST) throw new WordError('variables are nested too deeply.');
  let out = '';
  let quote = '';
  for (let at = 0; at < text.length; ) {
    const letter = text.charAt(at);
    if (quote === "'") {
      if (letter === "'") quote = '';
      else out += letter;
      at += 1;
    } else if (letter === '\\') {
      const next = text.charAt(at + 1);
      // Between double quotes, a backslash is an ordinary character unless the next character is special.
      out += quote === '"' && !'"$\\'.includes(next) ? `\\${next}` : next;
      at += 2;
    } else if (letter === '"' || (letter === "'" && quote === '')) {
      quote = quote === '' ? letter : '';
      at += 1;
    } else if (letter === '$') {
      const variable = readVariable(text, at + 1, lookup, depth);
      out += variable.value;
      at = variable.end;
    } else {
      out += letter;
      at += 1;
    }
  }
  if (quote !== '') throw new WordError(`the quote ${quote} is not closed.`);
  return out;
}

function readVariable(text: string, at: number, lookup: Lookup, depth: number): { value: string; end: number } {
  const plain = NAME.exec(text.slice(at))?.[0];
  if (plain !== undefined) return { value: lookup(plain) ?? '', end: at + plain.length };
  // A dollar sign alone is an ordinary character.
  if (text.charAt(at) !== '{') return { value: '$', end: at };
  const end = closingBrace(text, at);
  const inside = text.slice(at + 1, end);
  const name = NAME.exec(inside)?.[0];
  if (name === undefined) throw new WordError(`\${${inside.slice(0, 40)}} names no variable.`);
  const [, colon, operator, word = ''] = /^(?:(:?)([-+])(.*))?$/s.exec(inside.slice(name.length)) ?? [undefined];
  if (operator === undefined && inside.length > name.length)
    throw new WordError(`\${${inside.slice(0, 40)}} is not understood; \${name:-else} and \${name:+if} are.`);
  const value = lookup(name);
  const present = value !== undefined && !(colon === ':' && value === '');
  if (operator === '-') return { value: present ? value : expand(word, lookup, depth + 1), end: end + 1 };
  if (operator === '+') return { value: present ? expand(word, lookup, depth + 1) : '', end: end + 1 };
  return { value: value ?? '', end: end + 1 };
}

function closingBrace(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    if (text.charAt(at) === '\\') at += 1;
    else if (text.charAt(at) === '{') depth += 1;
    else if (text.charAt(at) === '}') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  throw new WordError('a ${ is not closed.');
}
