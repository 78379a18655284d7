/**
 * Models in Smithy's IDL (version 2) as the JSON AST that targets take: as much of it as Smithy's own protocol tests use. Names that a file neither
 * imports nor shares a namespace with are those of the prelude. Throws for text that it does not know.
 */
export function readSmithy(texts: readonly string[]): SmithyModel {
  const files = texts.map((text) => new IdlFile(text));
  const own = new Set(files.flatMap((file) => file.declared()));
  const shapes: SmithyModel['shapes'] = {};
  const applied: [id: string, traits: Traits][] = [];
  for (const file of files) file.read(own, shapes, applied);
  for (const [id, traits] of applied) {
    const [shapeId = '', member] = id.split('$');
    const shape = shapes[shapeId];
    const target = member === undefined ? shape : shape?.members?.[member];
    if (target) target.traits = { ...target.traits, ...traits };
    else shapes[id] = { type: 'apply', traits };
  }
  return { smithy: '2.0', shapes };
}

export interface SmithyModel {
  smithy: string;
  shapes: { [id: string]: SmithyShape };
}

export interface SmithyShape {
  type: string;
  traits: Traits;
  members?: { [name: string]: Target & { traits: Traits } };
  [other: string]: unknown;
}

export type Node = string | number | boolean | null | Node[] | { [name: string]: Node };
export type Traits = { [id: string]: Node };
type Target = { target: string };

/** Longest first: texts, numbers, names (of shapes, with namespace and member), signs. */
const TOKEN =
  /"""(?<block>[\s\S]*?)"""|"(?<text>(?:[^"\\]|\\[\s\S])*)"|(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<name>[A-Za-z_$][\w.#$]*)|(?<sign>:=|[@{}()[\]:=])/y;
const BETWEEN = /(?:[\s,]|\/\/[^\n]*)*/y;
const AGGREGATES = new Set(['structure', 'union', 'list', 'set', 'map', 'enum', 'intEnum']);
const WITHOUT_MEMBERS =
  'string blob boolean byte short integer long float double bigInteger bigDecimal timestamp document'.split(' ');
const SHAPES = new Set([...AGGREGATES, ...WITHOUT_MEMBERS, 'operation', 'service', 'resource']);

interface Token {
  kind: 'text' | 'number' | 'name' | 'sign';
  value: string;
}

class IdlFile {
  readonly #tokens: Token[];
  readonly #uses = new Map<string, string>();
  /** What ends the names of the structures that operations declare themselves. */
  readonly #suffixes = new Map<string, string>();
  #at = 0;
  #namespace = '';
  #own: ReadonlySet<string> = new Set();
  #shapes: SmithyModel['shapes'] = {};

  constructor(text: string) {
    this.#tokens = tokensOf(text);
    for (let at = 0; at < this.#tokens.length; at += 1) {
      const [{ value = '', kind } = { kind: 'sign' }, next] = this.#tokens.slice(at, at + 2);
      if (kind !== 'name' || next?.kind !== 'name') continue;
      if (value === 'namespace') this.#namespace ||= next.value;
      if (value === 'use') this.#uses.set(next.value.slice(next.value.indexOf('#') + 1), next.value);
    }
  }

  /** Ids of the shapes that it has. */
  declared(): string[] {
    return this.#tokens.flatMap(({ kind, value }, at) => {
      const next = this.#tokens[at + 1];
      return kind === 'name' && SHAPES.has(value) && next?.kind === 'name' ? [`${this.#namespace}#${next.value}`] : [];
    });
  }

  read(own: ReadonlySet<string>, shapes: SmithyModel['shapes'], applied: [string, Traits][]): void {
    this.#own = own;
    this.#shapes = shapes;
    while (this.#at < this.#tokens.length) {
      const traits = this.#traits();
      const word = this.#name();
      if (word.startsWith('$') || word === 'metadata') {
        const name = word === 'metadata' ? this.#next().value : word;
        this.#at += 1;
        const value = this.#node();
        if (name.endsWith('Suffix')) this.#suffixes.set(name, String(value));
      } else if (word === 'namespace' || word === 'use') this.#at += 1;
      else if (word === 'apply') {
        const [name = '', member] = this.#name().split('$');
        const id = member === undefined ? this.#id(name) : `${this.#id(name)}$${member}`;
        const braced = this.#is('{');
        applied.push([id, braced ? this.#traits() : this.#trait()]);
        if (braced) this.#expect('}');
      } else if (SHAPES.has(word)) this.#shape(word, this.#name(), traits);
      else throw new Error(`the word ${word} begins no statement of ${this.#namespace}`);
    }
  }

  #shape(type: string, name: string, traits: Traits): string {
    const id = `${this.#namespace}#${name}`;
    const shape: SmithyShape = { type, traits };
    this.#shapes[id] = shape;
    if (this.#is('for')) this.#name();
    if (this.#is('with')) shape.mixins = this.#ids();
    if (type === 'operation') Object.assign(shape, this.#operation(name));
    else if (type === 'service' || type === 'resource') Object.assign(shape, this.#properties());
    else if (AGGREGATES.has(type)) this.#members(shape, type);
    return id;
  }

  #members(shape: SmithyShape, type: string): void {
    const members: NonNullable<SmithyShape['members']> = {};
    this.#expect('{');
    while (!this.#is('}')) {
      const traits = this.#traits();
      const name = this.#name();
      if (type.endsWith('num')) {
        const value = this.#is('=') ? this.#node() : name;
        members[name] = { target: 'smithy.api#Unit', traits: { ...traits, 'smithy.api#enumValue': value } };
        continue;
      }
      this.#expect(':');
      const target = this.#id(this.#name());
      const value: Traits = this.#is('=') ? { 'smithy.api#default': this.#node() } : {};
      members[name] = { target, traits: { ...traits, ...value } };
    }
    if (['list', 'set', 'map'].includes(type)) Object.assign(shape, members);
    else shape.members = members;
  }

  #operation(name: string): { input?: Target; output?: Target; errors?: Target[] } {
    const said: { input?: Target; output?: Target; errors?: Target[] } = {};
    this.#expect('{');
    while (!this.#is('}')) {
      const word = this.#name();
      if (word === 'errors') {
        this.#expect(':');
        said.errors = this.#ids();
      } else if (word === 'input' || word === 'output') {
        const inline = this.#is(':=');
        if (!inline) this.#expect(':');
        const suffix = word === 'input' ? 'Input' : 'Output';
        const made = `${name}${this.#suffixes.get(`$operation${suffix}Suffix`) ?? suffix}`;
        said[word] = { target: inline ? this.#shape('structure', made, this.#traits()) : this.#id(this.#name()) };
      } else throw new Error(`the operation ${name} says ${word}`);
    }
    return said;
  }

  /** Of services and resources: their ids as references. */
  #properties(): { [name: string]: unknown } {
    const node = this.#node();
    const asReference = (value: Node): unknown =>
      typeof value === 'string' && value.includes('#')
        ? { target: value }
        : Array.isArray(value)
          ? value.map(asReference)
          : value;
    if (node === null || typeof node !== 'object' || Array.isArray(node)) throw new Error('there are no properties');
    return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, asReference(value)]));
  }

  #traits(): Traits {
    const traits: Traits = {};
    while (this.#tokens[this.#at]?.value === '@') Object.assign(traits, this.#trait());
    return traits;
  }

  #trait(): Traits {
    this.#expect('@');
    const id = this.#id(this.#name());
    return { [id]: this.#is('(') ? this.#arguments() : {} };
  }

  #arguments(): Node {
    const [first, second] = this.#tokens.slice(this.#at, this.#at + 2);
    if (second?.value === ':' && second.kind === 'sign' && first?.kind !== 'sign') return this.#object(')');
    if (this.#is(')')) return {};
    const value = this.#node();
    this.#expect(')');
    return value;
  }

  #object(end: string): Node {
    const made: { [name: string]: Node } = {};
    while (!this.#is(end)) {
      const key = this.#next().value;
      this.#expect(':');
      made[key] = this.#node();
    }
    return made;
  }

  #node(): Node {
    const { kind, value } = this.#next();
    if (kind === 'text') return value;
    if (kind === 'number') return Number(value);
    if (kind === 'name') return value in WORDS ? (WORDS[value] ?? null) : this.#id(value);
    if (value === '{') return this.#object('}');
    if (value !== '[') throw new Error(`${value} begins no value`);
    const made: Node[] = [];
    while (!this.#is(']')) made.push(this.#node());
    return made;
  }

  #ids(): Target[] {
    const ids: Target[] = [];
    this.#expect('[');
    while (!this.#is(']')) ids.push({ target: this.#id(this.#name()) });
    return ids;
  }

  #id(name: string): string {
    if (name.includes('#')) return name;
    const here = `${this.#namespace}#${name}`;
    return this.#uses.get(name) ?? (this.#own.has(here) ? here : `smithy.api#${name}`);
  }

  #next(): Token {
    const token = this.#tokens[this.#at];
    if (!token) throw new Error(`a file of ${this.#namespace} ends too soon`);
    this.#at += 1;
    return token;
  }

  #name(): string {
    const { kind, value } = this.#next();
    if (kind !== 'name') throw new Error(`a name stands where ${value} is (${this.#namespace})`);
    return value;
  }

  /** Passes over the sign or word if it is next. */
  #is(value: string): boolean {
    const next = this.#tokens[this.#at];
    if (next?.value !== value || (next.kind !== 'sign' && next.kind !== 'name')) return false;
    this.#at += 1;
    return true;
  }

  #expect(value: string): void {
    const at = this.#tokens.slice(this.#at, this.#at + 4).map((token) => token.value);
    if (!this.#is(value)) throw new Error(`${value} stands where "${at.join(' ')}" is (${this.#namespace})`);
  }
}

const WORDS: { [word: string]: boolean | null } = { true: true, false: false, null: null };

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  for (let at = between(text, 0); at < text.length; at = between(text, TOKEN.lastIndex)) {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text)?.groups;
    if (!found) throw new Error(`this is no Smithy: ${text.slice(at, at + 40)}`);
    const { block, text: quoted, number, name, sign } = found;
    if (block !== undefined) tokens.push({ kind: 'text', value: unescaped(unindented(block)) });
    else if (quoted !== undefined) tokens.push({ kind: 'text', value: unescaped(quoted) });
    else if (number !== undefined) tokens.push({ kind: 'number', value: number });
    else if (name !== undefined) tokens.push({ kind: 'name', value: name });
    else tokens.push({ kind: 'sign', value: sign ?? '' });
  }
  return tokens;
}

function between(text: string, at: number): number {
  BETWEEN.lastIndex = at;
  BETWEEN.exec(text);
  return BETWEEN.lastIndex;
}

/** A text block without what its least indented line is indented by, and without blanks at the ends of lines. */
function unindented(block: string): string {
  const lines = block.replace(/^\s*?\n/, '').split('\n');
  const counted = lines.filter((line, at) => line.trim() !== '' || at === lines.length - 1);
  const indent = Math.min(...counted.map((line) => line.length - line.trimStart().length));
  return lines.map((line) => line.slice(indent).trimEnd()).join('\n');
}

const ESCAPES: { [letter: string]: string } = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f', '\n': '' };

function unescaped(text: string): string {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|([\s\S]))/g, (_, code: string | undefined, letter: string) =>
    code === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
