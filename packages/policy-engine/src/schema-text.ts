import type { ShapeOutline } from './made-inputs.ts';
import type { ToolOutline } from './traces.ts';

/** The tools of a schema that `toolSchema` has written, with the types of what they take and give. */
export function toolsOf(schema: string): ToolOutline[] {
  const actions = /^ {2}action ("(?:[^"\\]|\\.)*") in \[CallTool\] appliesTo \{\n.*?context: (\{.*\})$/gm;
  return [...schema.matchAll(actions)].flatMap(([, name = '', context = '']) => {
    const shape = new Reader(context).shape();
    if (shape?.type !== 'Record') return [];
    const of = (side: string) => shape.fields.find((field) => field.name === side)?.shape ?? null;
    return [{ action: unquoted(name), input: of('input'), output: of('output') }];
  });
}

/** Reads the types that `toolSchema` writes, and no others. */
class Reader {
  readonly #words: string[];
  #at = 0;

  constructor(text: string) {
    this.#words = text.match(/"(?:[^"\\]|\\.)*"|\w+|[{}<>:?,]/g) ?? [];
  }

  shape(): ShapeOutline {
    const word = this.#next();
    if (word === '{') return this.#record();
    if (word === 'Set') {
      this.#next();
      const element = this.shape();
      this.#next();
      return { type: 'Set', element };
    }
    return word === 'Bool' || word === 'Long' || word === 'String' || word === 'decimal' ? { type: word } : null;
  }

  #record(): ShapeOutline {
    const fields: Extract<ShapeOutline, { type: 'Record' }>['fields'] = [];
    while (this.#words[this.#at] !== '}' && this.#at < this.#words.length) {
      const name = this.#next();
      const required = this.#words[this.#at] !== '?';
      if (!required) this.#next();
      this.#next();
      fields.push({ name: name.startsWith('"') ? unquoted(name) : name, required, shape: this.shape() });
      if (this.#words[this.#at] === ',') this.#next();
    }
    this.#next();
    return { type: 'Record', fields };
  }

  #next(): string {
    return this.#words[this.#at++] ?? '';
  }
}

/** As `toolSchema` quotes names. */
function unquoted(name: string): string {
  return name
    .slice(1, -1)
    .replace(/\\u\{([0-9a-f]+)\}|\\(.)/g, (_, code: string | undefined, one: string) =>
      code === undefined ? one : String.fromCodePoint(Number.parseInt(code, 16)),
    );
}
