import type { DocumentValue } from '@agentplatform/contract';
import { pointerTokens } from '../tools/json-pointer.ts';
import type { Problem } from '../tools/problem.ts';
import { locateInJson, scanJson } from './json-scan.ts';
import type { CompileLimits } from './limits.ts';
import { readYaml, UnreadableDocumentError } from './read-yaml.ts';

/** One file of a document, read. */
export interface ReadDocument {
  value: DocumentValue;
  problems: Problem[];
  /** Lines of values, from 1, by their pointers; all at once, because each question walks the text. */
  linesOf(pointers: readonly string[]): Map<string, number>;
}

/** Reads JSON or YAML. Throws `UnreadableDocumentError` for what is neither, too deep or too large. */
export function readDocument(
  given: string,
  limits: Pick<CompileLimits, 'documentBytes' | 'depth' | 'nodes'>,
): ReadDocument {
  if (given.length > limits.documentBytes)
    throw new UnreadableDocumentError(`The document is longer than ${limits.documentBytes} characters.`);
  const text = given.startsWith('\ufeff') ? given.slice(1) : given;
  return /^\s*[{[]/.test(text) ? readJsonDocument(text, limits) : readYamlDocument(text, limits);
}

function readJsonDocument(text: string, limits: Pick<CompileLimits, 'depth' | 'nodes'>): ReadDocument {
  const value = parsed(text);
  const { depth, nodes, repeated } = scanJson(text);
  if (depth > limits.depth)
    throw new UnreadableDocumentError(`The document is nested deeper than ${limits.depth} levels.`);
  if (nodes > limits.nodes) throw new UnreadableDocumentError(`The document has more than ${limits.nodes} values.`);
  const lines = lineCounter(text);
  return {
    value,
    problems: repeated.map(({ name, offset }) => repeatedKey(name, lines(offset))),
    linesOf: (pointers) => {
      const wanted = new Map(pointers.map((pointer) => [pointer, pointerTokens(pointer) ?? []]));
      return new Map([...locateInJson(text, wanted)].map(([pointer, offset]) => [pointer, lines(offset)]));
    },
  };
}

function parsed(text: string): DocumentValue {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const at = /position (\d+)/.exec(message)?.[1];
    const line = lineCounter(text)(at === undefined ? text.length : Number(at));
    throw new UnreadableDocumentError(`The JSON cannot be read: ${message.slice(0, 200)}`, line);
  }
}

function readYamlDocument(text: string, limits: Pick<CompileLimits, 'depth' | 'nodes'>): ReadDocument {
  const { value, repeated, lineOf } = readYaml(text, limits);
  return {
    value,
    problems: repeated.slice(0, 20).map(({ name, line }) => repeatedKey(name, line)),
    linesOf: (pointers) =>
      new Map(
        pointers.flatMap((pointer): [string, number][] => {
          const line = lineOf(pointerTokens(pointer) ?? []);
          return line === undefined ? [] : [[pointer, line]];
        }),
      ),
  };
}

function repeatedKey(name: string, line: number): Problem {
  return {
    severity: 'warning',
    message: `The key ${JSON.stringify(name.slice(0, 100))} stands twice in one object; the last one counts.`,
    line,
  };
}

/** Lines by offset; the text's line breaks are looked for once, when first asked. */
function lineCounter(text: string): (offset: number) => number {
  let breaks: number[] | undefined;
  return (offset) => {
    if (!breaks) {
      breaks = [];
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) breaks.push(at);
    }
    let [low, high] = [0, breaks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((breaks[middle] ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}
