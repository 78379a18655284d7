/** One regular expression, read. `accepts` judges one character (code point). */
export type PatternNode =
  | { kind: 'char'; accepts: (char: string) => boolean }
  | { kind: 'start' }
  | { kind: 'end' }
  | { kind: 'sequence'; parts: PatternNode[] }
  | { kind: 'choice'; options: PatternNode[] }
  | { kind: 'repeat'; body: PatternNode; min: number; max: number };

/** A regular expression that cannot be matched in linear time, such as one with a back reference; the message continues a sentence. */
export class UnsupportedPatternError extends Error {
  override readonly name = 'UnsupportedPatternError';
}

const LONGEST_SOURCE = 4096;
const COUNT = /\{(\d{1,7})(?:(,)(\d{0,7}))?\}/y;
const ESCAPE = /\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|[pP]\{[^}]*\}|c[A-Za-z]|[\s\S])/y;

/**
 * Reads a regular expression as JavaScript writes it, without flags. Throws `SyntaxError` for what is none, and
 * `UnsupportedPatternError` for look-around, back references, word boundaries and modifiers.
 */
export function readPattern(source: string): PatternNode {
  if (source.length > LONGEST_SOURCE) throw new UnsupportedPatternError(`is longer than ${LONGEST_SOURCE} characters`);
  // What is no regular expression at all is found by the engine that defines them.
  const flags = isUnicode(source) ? 'u' : '';
  if (flags === '') new RegExp(source);
  return new PatternReader(source, flags).read();
}

function isUnicode(source: string): boolean {
  try {
    new RegExp(source, 'u');
    return true;
  } catch {
    return false;
  }
}

class PatternReader {
  readonly #source: string;
  readonly #flags: string;
  #at = 0;

  constructor(source: string, flags: string) {
    this.#source = source;
    this.#flags = flags;
  }

  read(): PatternNode {
    const node = this.#choice();
    if (this.#at < this.#source.length) throw new UnsupportedPatternError('has a bracket that closes nothing');
    return node;
  }

  #choice(): PatternNode {
    const options = [this.#sequence()];
    while (this.#take('|')) options.push(this.#sequence());
    const [only] = options;
    return only && options.length === 1 ? only : { kind: 'choice', options };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    for (let next = this.#peek(); next !== '' && next !== '|' && next !== ')'; next = this.#peek())
      parts.push(this.#quantified(this.#atom()));
    return { kind: 'sequence', parts };
  }

  #quantified(body: PatternNode): PatternNode {
    const range = this.#range();
    if (!range) return body;
    // Whether it is greedy decides what groups hold, not whether the whole matches.
    this.#take('?');
    return { kind: 'repeat', body, ...range };
  }

  #range(): { min: number; max: number } | undefined {
    if (this.#take('*')) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#take('+')) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#take('?')) return { min: 0, max: 1 };
    const count = this.#match(COUNT);
    if (!count) return undefined;
    const min = Number(count[1]);
    if (count[2] === undefined) return { min, max: min };
    return { min, max: count[3] === '' ? Number.POSITIVE_INFINITY : Number(count[3]) };
  }

  #atom(): PatternNode {
    if (this.#take('^')) return { kind: 'start' };
    if (this.#take('$')) return { kind: 'end' };
    if (this.#take('(')) return this.#group();
    if (this.#take('.')) return this.#native('.');
    if (this.#peek() === '[') return this.#native(this.#class());
    const escaped = this.#match(ESCAPE)?.[0];
    if (escaped !== undefined) return this.#escaped(escaped);
    const literal = String.fromCodePoint(this.#source.codePointAt(this.#at) ?? 0);
    this.#at += literal.length;
    return { kind: 'char', accepts: (char) => char === literal };
  }

  #group(): PatternNode {
    if (this.#take('?')) {
      const name = this.#match(/<[^=!>][^>]*>/y);
      if (!name && !this.#take(':')) throw new UnsupportedPatternError('looks ahead or behind, or changes flags');
    }
    const inner = this.#choice();
    if (!this.#take(')')) throw new UnsupportedPatternError('has a bracket that is never closed');
    return inner;
  }

  #escaped(source: string): PatternNode {
    if (/^\\[1-9k]/.test(source)) throw new UnsupportedPatternError('refers back to a group');
    if (/^\\[bB]/.test(source)) throw new UnsupportedPatternError('asks for a word boundary');
    return this.#native(source);
  }

  #class(): string {
    const start = this.#at;
    for (this.#at += 1; this.#peek() !== ']'; this.#at += 1) if (this.#peek() === '\\') this.#at += 1;
    this.#at += 1;
    return this.#source.slice(start, this.#at);
  }

  /** What stands for one character is judged by the engine itself: on one character it has nothing to go back to. */
  #native(source: string): PatternNode {
    const one = new RegExp(`^(?:${source})$`, this.#flags);
    return { kind: 'char', accepts: (char) => one.test(char) };
  }

  #peek(): string {
    return this.#source.charAt(this.#at);
  }

  #take(text: string): boolean {
    if (this.#peek() !== text) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source);
    if (!found) return undefined;
    this.#at = pattern.lastIndex;
    return found;
  }
}
