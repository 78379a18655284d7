import { type Instruction, lineError } from './instructions.ts';
import { expand, type Lookup, splitWords, WordError } from './words.ts';

/** `a=b` pairs; the old form `ENV name all the rest` too. */
export function assignments(instruction: Instruction, lookup: Lookup): [string, string][] {
  const { name, line, rest } = instruction;
  return placed(instruction, () => {
    const raw = splitWords(rest);
    if (raw.length > 1 && !raw[0]?.includes('=')) {
      const [, key = '', value = ''] = /^(\S+)\s+(.*)$/s.exec(rest) ?? [];
      return [[expand(key, lookup), expand(value, lookup)]];
    }
    return raw.map((word) => {
      const [key, value] = splitPair(word);
      if (!word.includes('=') || key === '')
        throw lineError(line, `${name} takes name=value, not ${word.slice(0, 60)}.`);
      return [expand(key, lookup), expand(value, lookup)];
    });
  });
}

/** The names of an ARG, each with its default. */
export function args(instruction: Instruction, lookup: Lookup): [string, string | undefined][] {
  return placed(instruction, () =>
    splitWords(instruction.rest).map((word) => {
      const [name, value] = splitPair(word);
      if (!/^[A-Za-z_]\w*$/.test(name))
        throw lineError(instruction.line, `ARG ${name.slice(0, 60)}: that is not a name.`);
      return [name, word.includes('=') ? expand(value, lookup) : undefined];
    }),
  );
}

/** The words of an instruction, variables put in. */
export function words(instruction: Instruction, lookup: Lookup): string[] {
  return placed(instruction, () => splitWords(instruction.rest).map((word) => expand(word, lookup)));
}

/** All that an instruction says as one text, variables put in. */
export function expanded(instruction: Instruction, lookup: Lookup): string {
  return placed(instruction, () => expand(instruction.rest, lookup));
}

/** Adds the line to what is wrong with a word. */
export function placed<T>({ line }: Instruction, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof WordError ? lineError(line, error.message) : error;
  }
}

/** `a=b` as [a, b]; without the sign the second is empty. */
export function splitPair(text: string): [string, string] {
  const at = text.indexOf('=');
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
