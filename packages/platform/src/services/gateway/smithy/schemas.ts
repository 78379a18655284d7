import type { DocumentValue } from '@agentplatform/contract';
import { isObject } from '../tools/json-pointer.ts';
import type { JsonObject, JsonSchema } from '../tools/tool.ts';
import { cleanName } from '../tools/tool-names.ts';
import { textOfHtml } from './html.ts';
import { BrokenModelError, type Member, type Model, type ModelShape, type Traits } from './model.ts';
import type { Protocol } from './protocols.ts';

/** How a timestamp is written. */
export type TimestampFormat = 'date-time' | 'epoch-seconds' | 'http-date';

const INTEGERS: { [type: string]: [number, number] | undefined } = {
  byte: [-128, 127],
  short: [-32_768, 32_767],
  integer: [-2_147_483_648, 2_147_483_647],
  long: undefined,
  bigInteger: undefined,
};

/**
 * Shapes of a model as JSON Schemas: of arguments with all that the model says of them, of results with the types alone. Structures are
 * definitions, so that those that refer to themselves end.
 */
export class SmithySchemas {
  readonly #model: Model;
  readonly #protocol: Protocol;
  readonly #isOutput: boolean;
  readonly #longest: number;
  readonly #definitions = new Map<string, { name: string; schema: JsonSchema; uses: Set<string> }>();
  readonly #names = new Set<string>();

  constructor(model: Model, protocol: Protocol, direction: 'input' | 'output', longestDescription: number) {
    this.#model = model;
    this.#protocol = protocol;
    this.#isOutput = direction === 'output';
    this.#longest = longestDescription;
  }

  /** A member's schema; `timestamps` is how its place writes them. */
  member(member: Member, timestamps: TimestampFormat, uses: Set<string>): JsonSchema {
    const target = this.#model.shape(member.target);
    const schema = this.#schema(target, member.traits, timestamps, uses);
    return isObject(schema) ? { ...schema, ...this.#said(member.traits) } : schema;
  }

  /** Members of a structure as properties, and which of them must be there. */
  properties(
    members: readonly Member[],
    uses: Set<string>,
  ): { properties: { [name: string]: JsonSchema }; required: string[] } {
    const named = members.map((member) => ({ member, name: this.nameOf(member) }));
    return {
      properties: Object.fromEntries(
        named.map(({ member, name }) => [name, this.member(member, this.#protocol.timestamps, uses)]),
      ),
      required: this.#isOutput ? [] : named.filter(({ member }) => isRequired(member.traits)).map(({ name }) => name),
    };
  }

  /** The member's name in JSON. */
  nameOf({ name, traits }: Member): string {
    return this.#protocol.name === 'restJson' && typeof traits.jsonName === 'string' ? traits.jsonName : name;
  }

  /** The definitions that are reached, by their names; undefined where they are more than `mostBytes`. */
  definitions(uses: ReadonlySet<string>, mostBytes: number): { [name: string]: JsonSchema } | undefined {
    const reached = new Set(uses);
    const found: { [name: string]: JsonSchema } = {};
    let bytes = 0;
    for (const id of reached) {
      const definition = this.#definition(id);
      bytes += JSON.stringify(definition.schema).length;
      if (bytes > mostBytes) return undefined;
      found[definition.name] = definition.schema;
      for (const next of definition.uses) reached.add(next);
    }
    return found;
  }

  #schema(shape: ModelShape, memberTraits: Traits, timestamps: TimestampFormat, uses: Set<string>): JsonSchema {
    if (shape.type === 'structure' || shape.type === 'union') {
      uses.add(shape.id);
      return { $ref: `#/$defs/${this.#nameOf(shape.id)}` };
    }
    const traits = { ...shape.traits, ...memberTraits };
    const schema = this.#plain(shape, traits, timestamps, uses);
    if (!this.#isOutput) return { ...this.#said(shape.traits), ...schema, ...constraints(shape.type, traits) };
    return typeof schema.type === 'string' ? { ...schema, type: [schema.type, 'null'] } : schema;
  }

  #plain(shape: ModelShape, traits: Traits, timestamps: TimestampFormat, uses: Set<string>): JsonObject {
    const { type, members } = shape;
    const [member] = members;
    switch (type) {
      case 'string':
        return { type: 'string', ...this.#values(enumTrait(traits)) };
      case 'enum':
        return { type: 'string', ...this.#values(members.map(({ name, traits: { enumValue } }) => enumValue ?? name)) };
      case 'intEnum':
        return {
          type: 'integer',
          ...this.#values(members.flatMap(({ traits: { enumValue } }) => (enumValue === undefined ? [] : [enumValue]))),
        };
      case 'blob':
        return { type: 'string', contentEncoding: 'base64' };
      case 'boolean':
        return { type: 'boolean' };
      case 'float':
      case 'double':
      case 'bigDecimal':
        return { type: 'number' };
      case 'timestamp':
        return timestampSchema(formatOf(traits) ?? timestamps);
      case 'document':
        return {};
      case 'list':
      case 'set':
        return { type: 'array', ...(member ? { items: this.#entry(member, traits, timestamps, uses) } : {}) };
      case 'map':
        return this.#map(members, traits, timestamps, uses);
    }
    if (!Object.hasOwn(INTEGERS, type))
      throw new BrokenModelError(`A ${type.slice(0, 50)} cannot be an argument (${shape.id.slice(0, 200)}).`);
    const range = this.#isOutput ? undefined : INTEGERS[type];
    return { type: 'integer', ...(range ? { minimum: range[0], maximum: range[1] } : {}) };
  }

  /** An item of a list or a value of a map; of a sparse one it may be nothing. */
  #entry(member: Member, { sparse }: Traits, timestamps: TimestampFormat, uses: Set<string>): JsonSchema {
    const schema = this.member(member, timestamps, uses);
    return sparse === undefined || this.#isOutput ? schema : { anyOf: [schema, { type: 'null' }] };
  }

  #map(members: readonly Member[], traits: Traits, timestamps: TimestampFormat, uses: Set<string>): JsonObject {
    const value = members.find(({ name }) => name === 'value');
    const key = members.find(({ name }) => name === 'key');
    const names = key && !this.#isOutput ? this.member(key, this.#protocol.timestamps, uses) : true;
    return {
      type: 'object',
      ...(value ? { additionalProperties: this.#entry(value, traits, timestamps, uses) } : {}),
      ...(isObject(names) && Object.keys(names).length > 1 ? { propertyNames: names } : {}),
    };
  }

  #values(values: DocumentValue[]): JsonObject {
    if (values.length === 0) return {};
    return this.#isOutput ? { examples: values.slice(0, 20) } : { enum: values };
  }

  #said({ documentation, deprecated, default: value }: Traits): JsonObject {
    return {
      ...(typeof documentation === 'string' ? { description: textOfHtml(documentation, this.#longest) } : {}),
      ...(deprecated === undefined ? {} : { deprecated: true }),
      ...(value === undefined || value === null || this.#isOutput ? {} : { default: value }),
    };
  }

  #nameOf(id: string): string {
    return this.#definition(id).name;
  }

  /** Noted before its members are looked at, which may lead back to it. */
  #definition(id: string): { name: string; schema: JsonSchema; uses: Set<string> } {
    const known = this.#definitions.get(id);
    if (known) return known;
    const definition = { name: this.#freeName(id), schema: true as JsonSchema, uses: new Set<string>() };
    this.#definitions.set(id, definition);
    const shape = this.#model.shape(id);
    const { properties, required } = this.properties(shape.members, definition.uses);
    definition.schema = {
      type: this.#isOutput ? ['object', 'null'] : 'object',
      ...this.#said(shape.traits),
      properties,
      ...(required.length > 0 ? { required } : {}),
      ...(shape.type === 'union' && !this.#isOutput ? { minProperties: 1, maxProperties: 1 } : {}),
    };
    return definition;
  }

  #freeName(id: string): string {
    const wanted = cleanName(id.slice(id.indexOf('#') + 1)).slice(0, 100) || 'shape';
    let name = wanted;
    for (let next = 2; this.#names.has(name); next += 1) name = `${wanted}_${next}`;
    this.#names.add(name);
    return name;
  }
}

/** Whether the member must be given; one with a default need not. */
export function isRequired({ required, default: value, clientOptional }: Traits): boolean {
  return required !== undefined && value === undefined && clientOptional === undefined;
}

/** What a timestamp's traits say of its format. */
export function formatOf({ timestampFormat }: Traits): TimestampFormat | undefined {
  return timestampFormat === 'date-time' || timestampFormat === 'epoch-seconds' || timestampFormat === 'http-date'
    ? timestampFormat
    : undefined;
}

function timestampSchema(format: TimestampFormat): JsonObject {
  if (format === 'epoch-seconds')
    return { type: 'number', description: 'A time in seconds since 1970-01-01T00:00:00Z.' };
  if (format === 'http-date')
    return { type: 'string', description: 'A time as HTTP writes it, such as Tue, 29 Apr 2014 18:30:38 GMT.' };
  return { type: 'string', format: 'date-time' };
}

function enumTrait(traits: Traits): DocumentValue[] {
  const { enum: given } = traits;
  if (!Array.isArray(given)) return [];
  return given.flatMap((one) => (isObject(one) && typeof one.value === 'string' ? [one.value] : []));
}

const LENGTHS: { [type: string]: string | undefined } = {
  list: 'Items',
  set: 'Items',
  map: 'Properties',
  string: 'Length',
  enum: 'Length',
};

/** `length`, `range`, `pattern` and `uniqueItems` as JSON Schema has them. Lengths of blobs are of bytes, and not of their base64. */
function constraints(type: string, { length, range, pattern, uniqueItems }: Traits): JsonObject {
  const made: JsonObject = {};
  const of = LENGTHS[type];
  if (of !== undefined && isObject(length)) {
    if (typeof length.min === 'number') made[`min${of}`] = length.min;
    if (typeof length.max === 'number') made[`max${of}`] = length.max;
  }
  if (isObject(range)) {
    if (typeof range.min === 'number') made.minimum = range.min;
    if (typeof range.max === 'number') made.maximum = range.max;
  }
  if (typeof pattern === 'string' && type === 'string') made.pattern = pattern;
  if (uniqueItems !== undefined || type === 'set') made.uniqueItems = true;
  return made;
}
