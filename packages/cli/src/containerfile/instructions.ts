import { CliError } from '../cli-error.ts';

/** One instruction of a Containerfile, its lines joined. */
export interface Instruction {
  /** The line that it begins on, from 1. */
  line: number;
  /** Upper case: COPY, RUN … */
  name: string;
  /** `--chown=1:2` as ['chown', '1:2'], in their order. */
  flags: [name: string, value: string][];
  /** What follows, flags taken off. */
  rest: string;
  /** Whether a here-document belongs to it; its text is left out. */
  hereDocument: boolean;
}

/** What is wrong, with the line it is in. */
export function lineError(line: number, message: string, remedy?: string): CliError {
  return new CliError('usage', `Line ${line} of the Containerfile: ${message}`, remedy);
}

const WITH_FLAGS = new Set(['FROM', 'COPY', 'ADD', 'RUN', 'HEALTHCHECK']);
const WITH_HERE_DOCUMENTS = new Set(['COPY', 'ADD', 'RUN']);
const LONGEST = 1024 * 1024;

/**
 * Reads the text of a Containerfile: comments and `\`-continued lines as the Dockerfile reference has them. Throws a `CliError`
 * (usage) that names the line.
 */
export function readInstructions(text: string): Instruction[] {
  if (text.length > LONGEST) throw new CliError('usage', 'The Containerfile is longer than 1 MB.');
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n/);
  checkDirectives(lines);
  const found: Instruction[] = [];
  for (let at = 0; at < lines.length; ) {
    const first = at;
    let whole = '';
    let goesOn = true;
    for (; goesOn && at < lines.length; at += 1) {
      const line = lines[at] ?? '';
      // Comments and empty lines within a continued instruction are passed over; outside, they are nothing at all.
      if (/^\s*(#|$)/.test(line)) {
        if (whole === '') goesOn = false;
        continue;
      }
      goesOn = /\\\s*$/.test(line);
      whole += goesOn ? line.replace(/\\\s*$/, '') : line;
    }
    if (whole.trim() === '') continue;
    const instruction = readInstruction(whole.trim(), first + 1);
    const terminators = WITH_HERE_DOCUMENTS.has(instruction.name) ? hereDocuments(instruction.rest) : [];
    for (const { word, tabs } of terminators) {
      const end = lines.findIndex((line, i) => i >= at && (tabs ? line.replace(/^\t+/, '') : line) === word);
      if (end === -1) throw lineError(first + 1, `the here-document has no end line "${word}".`);
      at = end + 1;
    }
    found.push({ ...instruction, hereDocument: terminators.length > 0 });
  }
  return found;
}

function readInstruction(text: string, line: number): Omit<Instruction, 'hereDocument'> {
  const [, word, after = ''] = /^([A-Za-z]+)(?:\s+(.*))?$/s.exec(text) ?? [];
  if (word === undefined) throw lineError(line, `${JSON.stringify(text.slice(0, 60))} is not an instruction.`);
  const name = word.toUpperCase();
  const flags: Instruction['flags'] = [];
  let rest = after.trim();
  while (WITH_FLAGS.has(name)) {
    const [whole, flag, value = ''] = /^--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|$)/.exec(rest) ?? [];
    if (whole === undefined || flag === undefined) break;
    flags.push([flag, value]);
    rest = rest.slice(whole.length);
  }
  if (rest === '' && flags.length === 0) throw lineError(line, `${name} says nothing.`);
  return { line, name, flags, rest };
}

function hereDocuments(rest: string): { word: string; tabs: boolean }[] {
  const marks = rest.matchAll(/(?:^|\s)<<(-?)(["']?)([A-Za-z_][A-Za-z0-9_]*)\2(?=\s|$)/g);
  return [...marks].map(([, dash, , word]) => ({ word: word ?? '', tabs: dash === '-' }));
}

// `# escape=` changes how everything after it is read; the other directives choose a builder, which this is not.
function checkDirectives(lines: readonly string[]): void {
  for (const [index, line] of lines.entries()) {
    const [, name, value] = /^\s*#\s*([A-Za-z]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined) return;
    if (name.toLowerCase() === 'escape' && value !== '\\')
      throw lineError(index + 1, 'only the backslash can be the escape character.', 'Leave the directive out.');
  }
}

/** The members of `["a", "b"]`; undefined when it is not a JSON list of texts. */
export function jsonTexts(rest: string): string[] | undefined {
  if (!rest.startsWith('[')) return undefined;
  try {
    const value: unknown = JSON.parse(rest);
    if (Array.isArray(value) && value.every((item): item is string => typeof item === 'string')) return value;
  } catch {
    // Not JSON: it is meant for the shell then.
  }
  return undefined;
}
