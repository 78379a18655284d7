import type { DocumentValue } from '@agentplatform/contract';
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import type { CompileLimits } from './limits.ts';

/** Why a text is no document; `line` from 1. */
export class UnreadableDocumentError extends Error {
  override readonly name = 'UnreadableDocumentError';
  readonly line?: number;

  constructor(message: string, line?: number) {
    super(message);
    if (line !== undefined) this.line = line;
  }
}

export interface ReadYaml {
  value: DocumentValue;
  /** Keys that a mapping has twice; the last counts. */
  repeated: { name: string; line: number }[];
  lineOf(tokens: readonly string[]): number | undefined;
}

/** Reads YAML 1.2 (and merge keys). Aliases share what they stand for, and count as if they did not. Throws `UnreadableDocumentError`. */
export function readYaml(text: string, limits: Pick<CompileLimits, 'depth' | 'nodes'>): ReadYaml {
  const lines = new LineCounter();
  const document = parsed(text, lines);
  const [first] = document.errors;
  if (first)
    throw new UnreadableDocumentError(
      `The YAML cannot be read: ${first.message.split('\n')[0]}`,
      lines.linePos(first.pos[0]).line,
    );
  const reader = new YamlReader(lines, limits);
  const { value } = reader.read(document.contents, 0);
  return {
    value,
    repeated: reader.repeated,
    lineOf: (tokens) => {
      const found = find(document.contents, tokens);
      return found?.range ? lines.linePos(found.range[0]).line : undefined;
    },
  };
}

function parsed(text: string, lineCounter: LineCounter): Document.Parsed {
  try {
    // Unique keys are looked for below, in linear time.
    return parseDocument(text, { lineCounter, uniqueKeys: false, logLevel: 'silent', prettyErrors: false });
  } catch (error) {
    if (error instanceof RangeError) throw new UnreadableDocumentError('The YAML is nested too deep.');
    throw error;
  }
}

interface Sized {
  value: DocumentValue;
  /** Values in it, with all that aliases stand for. */
  size: number;
}

class YamlReader {
  readonly repeated: { name: string; line: number }[] = [];
  readonly #lines: LineCounter;
  readonly #limits: Pick<CompileLimits, 'depth' | 'nodes'>;
  /** What anchors stand for; null while it is being read. */
  readonly #anchored = new Map<string, Sized | null>();

  constructor(lines: LineCounter, limits: Pick<CompileLimits, 'depth' | 'nodes'>) {
    this.#lines = lines;
    this.#limits = limits;
  }

  read(node: unknown, depth: number): Sized {
    if (!isNode(node)) return { value: null, size: 1 };
    if (depth > this.#limits.depth)
      throw new UnreadableDocumentError(
        `The document is nested deeper than ${this.#limits.depth} levels.`,
        this.#line(node),
      );
    if (isAlias(node)) return this.#alias(node);
    const anchor = 'anchor' in node && typeof node.anchor === 'string' ? node.anchor : undefined;
    if (anchor !== undefined) this.#anchored.set(anchor, null);
    const read = this.#plain(node, depth);
    if (read.size > this.#limits.nodes)
      throw new UnreadableDocumentError(
        `The document has more than ${this.#limits.nodes} values, those of aliases counted each time.`,
        this.#line(node),
      );
    if (anchor !== undefined) this.#anchored.set(anchor, read);
    return read;
  }

  #alias(node: Alias): Sized {
    const found = this.#anchored.get(node.source);
    if (found === null)
      throw new UnreadableDocumentError(`The alias *${node.source} stands for itself.`, this.#line(node));
    if (!found) throw new UnreadableDocumentError(`The alias *${node.source} stands for nothing.`, this.#line(node));
    return found;
  }

  #plain(node: Node, depth: number): Sized {
    if (isScalar(node)) return { value: scalar(node.value), size: 1 };
    if (isSeq(node)) {
      const items = node.items.map((item) => this.read(item, depth + 1));
      return { value: items.map(({ value }) => value), size: total(items) };
    }
    return isMap(node) ? this.#map(node, depth) : { value: null, size: 1 };
  }

  #map(node: YAMLMap, depth: number): Sized {
    const entries = new Map<string, Sized>();
    const merged: Sized[] = [];
    for (const { key, value } of node.items) {
      const name = this.#name(key);
      const read = this.read(value, depth + 1);
      if (name === '<<') merged.push(read);
      else {
        if (entries.has(name)) this.repeated.push({ name, line: this.#line(isNode(key) ? key : node) });
        entries.set(name, read);
      }
    }
    const inherited = merged.flatMap(({ value }) => (Array.isArray(value) ? value : [value])).reverse();
    const value = Object.fromEntries([
      ...inherited.flatMap((one) => (typeof one === 'object' && one !== null ? Object.entries(one) : [])),
      ...[...entries].map(([name, { value: own }]): [string, DocumentValue] => [name, own]),
    ]);
    return { value, size: total([...entries.values(), ...merged]) };
  }

  #name(key: unknown): string {
    if (isScalar(key)) return key.value === null ? '' : String(key.value);
    throw new UnreadableDocumentError('A key is not text.', isNode(key) ? this.#line(key) : undefined);
  }

  #line(node: Node): number {
    return this.#lines.linePos(node.range?.[0] ?? 0).line;
  }
}

const total = (read: readonly Sized[]): number => read.reduce((sum, { size }) => sum + size, 1);

function scalar(value: unknown): DocumentValue {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  return typeof value === 'number' && Number.isFinite(value) ? value : String(value);
}

/** The node that the tokens lead to, or the last on the way. */
function find(root: Node | null, tokens: readonly string[]): Node | undefined {
  let at: unknown = root;
  let last: Node | undefined = root ?? undefined;
  for (const token of tokens) {
    if (isSeq(at)) at = at.items[Number(token)];
    else if (isMap(at)) {
      const pair = at.items.find(({ key }) => isScalar(key) && String(key.value ?? '') === token);
      if (pair && isNode(pair.key)) last = pair.key;
      at = pair?.value;
      continue;
    } else break;
    if (isNode(at)) last = at;
  }
  return last;
}
