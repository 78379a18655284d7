import type { DocumentValue } from '@agentplatform/contract';
import { isObject, own, pointerTo } from '../tools/json-pointer.ts';
import { searchPattern } from '../tools/patterns.ts';
import { plainText } from '../tools/plain-text.ts';
import type { JsonObject, JsonSchema } from '../tools/tool.ts';
import { cleanName } from '../tools/tool-names.ts';
import { discriminated } from './discriminator.ts';
import { BrokenPartError, type Files, type Found, type Place } from './files.ts';
import type { CompileLimits } from './limits.ts';

/** `input`: the gateway checks arguments against the schema. `output`: the schema only describes the usual form of a result, so it contains no more than types. */
export type Direction = 'input' | 'output';

/** A converted schema and the definitions that it needs, by their keys. */
export interface Converted {
  schema: JsonSchema;
  uses: Set<string>;
}

interface Definition extends Partial<Converted> {
  name: string;
  found: Found;
  bytes: number;
  broken?: BrokenPartError;
}

/** What schemas say that is neither a schema nor a number, and means the same in JSON Schema 2020-12. */
const AS_IT_IS = ['contentEncoding', 'contentMediaType', 'uniqueItems', 'deprecated', 'dependentRequired'];
const NUMBERS = [
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'minContains',
  'maxContains',
  'minimum',
  'maximum',
  'multipleOf',
];
const ONE_SCHEMA = ['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'];
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const MAPS = ['properties', 'patternProperties', 'dependentSchemas'];
/** A result's schema leaves these out, since backends answer less exactly than their documents promise. */
const ONLY_INPUT = new Set([
  ...NUMBERS,
  'uniqueItems',
  'dependentRequired',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'dependentSchemas',
]);
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']);
/** Characters of a default or an example that are worth showing, of an enumeration that a result's schema shows, and patterns that are looked at. */
const LONGEST_EXAMPLE = 500;
const SHOWN_VALUES = 20;
const MOST_PATTERNS = 2_000;

export interface ConverterDeps {
  files: Files;
  direction: Direction;
  /** Whether the document is OpenAPI 3.0. In 3.0, schemas have `nullable`, and members beside `$ref` are ignored. */
  is30: boolean;
  limits: CompileLimits;
  warn(message: string, place: Place): void;
}

/**
 * Schemas of OpenAPI 3.0 and 3.1 as JSON Schema 2020-12. What a `$ref` leads to is converted once, whoever refers to it, and becomes one of
 * the `$defs` of each tool that reaches it; so cycles stay cycles, and the work grows with the document alone.
 */
export class SchemaConverter {
  readonly #deps: ConverterDeps;
  readonly #definitions = new Map<string, Definition>();
  readonly #names = new Set<string>();
  readonly #queue: Definition[] = [];
  readonly #patterns = new Set<string>();
  #nodesLeft: number;

  constructor(deps: ConverterDeps) {
    this.#deps = deps;
    this.#nodesLeft = deps.limits.nodes;
  }

  /** Throws `BrokenPartError` for what is no schema. */
  convert({ value, place }: Found): Converted {
    const uses = new Set<string>();
    const schema = this.#convert(value, place, uses, 0);
    this.#drain();
    return { schema, uses };
  }

  /**
   * The definitions that a schema reaches, by their names; undefined where they are more than `mostBytes`. Throws `BrokenPartError` if one
   * of them is broken.
   */
  definitions(
    uses: ReadonlySet<string>,
    mostBytes: number,
  ): { $defs: { [name: string]: JsonSchema }; bytes: number } | undefined {
    const reached = new Set(uses);
    const $defs: { [name: string]: JsonSchema } = {};
    let bytes = 0;
    for (const key of reached) {
      const definition = this.#definitions.get(key);
      if (definition?.broken) throw definition.broken;
      if (definition?.schema === undefined) continue;
      bytes += definition.bytes;
      if (bytes > mostBytes) return undefined;
      $defs[definition.name] = definition.schema;
      for (const next of definition.uses ?? []) reached.add(next);
    }
    return { $defs, bytes };
  }

  #drain(): void {
    for (let next = this.#queue.pop(); next; next = this.#queue.pop()) {
      next.uses = new Set();
      try {
        next.schema = this.#convert(next.found.value, next.found.place, next.uses, 0);
        next.bytes = JSON.stringify(next.schema).length + next.name.length;
      } catch (error) {
        if (!(error instanceof BrokenPartError)) throw error;
        next.broken = error;
      }
    }
  }

  #convert(value: DocumentValue | undefined, place: Place, uses: Set<string>, depth: number): JsonSchema {
    this.#nodesLeft -= 1;
    if (this.#nodesLeft < 0)
      throw new BrokenPartError(`The schemas have more than ${this.#deps.limits.nodes} parts.`, place);
    if (depth > this.#deps.limits.depth) throw new BrokenPartError('A schema is nested too deep.', place);
    if (typeof value === 'boolean') return value;
    if (!isObject(value)) throw new BrokenPartError('A schema is neither an object nor true or false.', place);
    if (typeof value.$ref !== 'string') return this.#keywords(value, place, uses, depth);
    const reference = this.#reference(value.$ref, place, uses);
    return this.#deps.is30 ? reference : { ...this.#keywords(value, place, uses, depth), ...reference };
  }

  #reference(ref: string, place: Place, uses: Set<string>): JsonObject {
    const found = this.#deps.files.resolve(ref, { ...place, pointer: pointerTo(place.pointer, '$ref') });
    const key = `${found.place.file}#${found.place.pointer}`;
    let definition = this.#definitions.get(key);
    if (!definition) {
      definition = { name: this.#freeName(found.place.pointer), found, bytes: 0 };
      this.#definitions.set(key, definition);
      this.#queue.push(definition);
    }
    uses.add(key);
    return { $ref: `#/$defs/${definition.name}` };
  }

  #freeName(pointer: string): string {
    const wanted = cleanName(pointer.slice(pointer.lastIndexOf('/') + 1)).slice(0, 100) || 'schema';
    let name = wanted;
    for (let next = 2; this.#names.has(name); next += 1) name = `${wanted}_${next}`;
    this.#names.add(name);
    return name;
  }

  #keywords(node: JsonObject, place: Place, uses: Set<string>, depth: number): JsonObject {
    const isOutput = this.#deps.direction === 'output';
    const inner = (token: string | number, at = place): Place => ({ ...at, pointer: pointerTo(at.pointer, token) });
    const made: JsonObject = { ...this.#annotations(node), ...this.#values(node, inner('enum')) };
    for (const keyword of [...AS_IT_IS, ...NUMBERS]) {
      const value = own(node, keyword);
      const fits = NUMBERS.includes(keyword) ? typeof value === 'number' : value !== undefined;
      if (fits && !(isOutput && ONLY_INPUT.has(keyword))) made[keyword] = value;
    }
    for (const keyword of ONE_SCHEMA) {
      const value = own(node, keyword);
      if (value === undefined || (isOutput && (ONLY_INPUT.has(keyword) || value === false))) continue;
      made[closes(keyword, node)] = this.#convert(value, inner(keyword), uses, depth + 1);
    }
    for (const keyword of LISTS) {
      const value = own(node, keyword);
      if (!Array.isArray(value) || value.length === 0) continue;
      const list = value.map((one, index) => this.#convert(one, inner(index, inner(keyword)), uses, depth + 1));
      made[isOutput && keyword === 'oneOf' ? 'anyOf' : keyword] = list;
    }
    for (const keyword of MAPS) {
      const value = own(node, keyword);
      if (isObject(value) && !(isOutput && ONLY_INPUT.has(keyword)))
        made[keyword] = this.#map(value, inner(keyword), uses, depth + 1);
    }
    if (!isOutput) this.#onlyInput(node, made, place);
    return this.#nullable(node, made);
  }

  /** What people read. */
  #annotations(node: JsonObject): JsonObject {
    const { description: longest } = this.#deps.limits;
    const made: JsonObject = {};
    if (typeof node.title === 'string') made.title = plainText(node.title, longest);
    if (typeof node.description === 'string') made.description = plainText(node.description, longest);
    if (typeof node.format === 'string') made.format = plainText(node.format, 100);
    if (node.format === 'byte' && made.contentEncoding === undefined) made.contentEncoding = 'base64';
    if (this.#deps.direction === 'output') return made;
    if (node.default !== undefined && isShort(node.default)) made.default = node.default;
    const examples = Array.isArray(node.examples) ? node.examples : node.example === undefined ? [] : [node.example];
    const short = examples.filter(isShort).slice(0, 3);
    if (short.length > 0) made.examples = short;
    return made;
  }

  /** Types and enumerations. */
  #values(node: JsonObject, place: Place): JsonObject {
    const made: JsonObject = {};
    const isOutput = this.#deps.direction === 'output';
    const given = Array.isArray(node.type) ? node.type : [node.type];
    const types = given.filter((type): type is string => typeof type === 'string' && TYPES.has(type));
    const mayBeNull = isOutput || (this.#deps.is30 && node.nullable === true);
    if (types.length > 0 && mayBeNull && !types.includes('null')) types.push('null');
    if (types.length > 0) made.type = types.length === 1 ? types[0] : types;
    if (node.enum !== undefined && !Array.isArray(node.enum))
      this.#deps.warn('An enumeration is not a list; it is passed over.', place);
    const values = Array.isArray(node.enum) ? node.enum : undefined;
    if (isOutput) {
      if (values) made.examples = values.slice(0, SHOWN_VALUES);
      return made;
    }
    if (values) made.enum = mayBeNull && !values.includes(null) ? [...values, null] : values;
    if (node.const !== undefined) made.const = node.const;
    return made;
  }

  #map(map: JsonObject, place: Place, uses: Set<string>, depth: number): JsonObject {
    const entries = Object.entries(map).flatMap(([name, value]): [string, JsonSchema][] => {
      const at = { ...place, pointer: pointerTo(place.pointer, name) };
      return this.isLeftOut(value) ? [] : [[name, this.#convert(value, at, uses, depth)]];
    });
    return Object.fromEntries(entries);
  }

  /** Whether a property is not for this direction: `readOnly` ones are no arguments, `writeOnly` ones are in no result. */
  isLeftOut(property: DocumentValue | undefined): boolean {
    return isObject(property) && property[this.#deps.direction === 'input' ? 'readOnly' : 'writeOnly'] === true;
  }

  #onlyInput(node: JsonObject, made: JsonObject, place: Place): void {
    const properties = isObject(node.properties) ? node.properties : {};
    if (Array.isArray(node.required)) {
      const required = node.required.filter(
        (name) => typeof name === 'string' && !this.isLeftOut(own(properties, name)),
      );
      if (required.length > 0) made.required = [...new Set(required)];
    }
    for (const [keyword, bound] of [
      ['exclusiveMinimum', 'minimum'],
      ['exclusiveMaximum', 'maximum'],
    ] as const) {
      const value = node[keyword];
      if (typeof value === 'number') made[keyword] = value;
      else if (value === true && typeof node[bound] === 'number') {
        made[keyword] = node[bound];
        delete made[bound];
      }
    }
    if (typeof node.pattern === 'string') this.#pattern(node.pattern, made, place);
    if (isObject(node.discriminator)) discriminated(node, made, (ref) => this.#deps.files.resolve(ref, place).value);
  }

  #pattern(pattern: string, made: JsonObject, place: Place): void {
    made.pattern = pattern;
    if (this.#patterns.has(pattern) || this.#patterns.size >= MOST_PATTERNS) return;
    this.#patterns.add(pattern);
    if (searchPattern(pattern) === undefined)
      this.#deps.warn('A pattern cannot be matched in linear time; it is left to the backend.', {
        ...place,
        pointer: pointerTo(place.pointer, 'pattern'),
      });
  }

  /** `nullable` where no type stands beside it. */
  #nullable(node: JsonObject, made: JsonObject): JsonObject {
    if (made.type !== undefined || !this.#deps.is30 || node.nullable !== true) return made;
    const combined = LISTS.some((keyword) => made[keyword] !== undefined);
    return combined ? { anyOf: [made, { type: 'null' }] } : made;
  }
}

/**
 * The keyword to use for `keyword`. `additionalProperties: false` beside `allOf`, `anyOf` or `oneOf` also forbids the properties of the alternatives, so that
 * no value conforms. Generators write this, and mean only the properties that no part of the schema has: `unevaluatedProperties`.
 */
function closes(keyword: string, node: JsonObject): string {
  const isCombined = ['allOf', 'anyOf', 'oneOf'].some((one) => Array.isArray(node[one]));
  return keyword === 'additionalProperties' && node[keyword] === false && isCombined
    ? 'unevaluatedProperties'
    : keyword;
}

function isShort(value: DocumentValue): boolean {
  return typeof value === 'object' || typeof value === 'string'
    ? JSON.stringify(value).length <= LONGEST_EXAMPLE
    : true;
}
