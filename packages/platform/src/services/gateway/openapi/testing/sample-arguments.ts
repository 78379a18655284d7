import type { DocumentValue } from '@agentplatform/contract';
import fc from 'fast-check';
import { atPointer, isObject } from '../../tools/json-pointer.ts';
import type { JsonObject, JsonSchema } from '../../tools/tool.ts';

const DEEPEST = 4;

/** One text of each format that clients check. */
const FORMATS: ReadonlyMap<string, string> = new Map([
  ['date-time', '2026-11-23T10:20:30Z'],
  ['date', '2026-11-23'],
  ['time', '10:20:30Z'],
  ['duration', 'P3D'],
  ['email', 'ada@example.com'],
  ['hostname', 'example.com'],
  ['ipv4', '192.0.2.7'],
  ['ipv6', '2001:db8::7'],
  ['uri', 'https://example.com/a?b=c'],
  ['uri-reference', '/a?b=c'],
  ['uri-template', 'https://example.com/{id}'],
  ['uuid', '123e4567-e89b-42d3-a456-426614174000'],
  ['json-pointer', '/a/b'],
]);

/** Values of a schema, the same for the same seed: all that is required, and of the rest about half. */
export class Samples {
  readonly #root: JsonSchema;
  #state: number;

  constructor(root: JsonSchema, seed: number) {
    this.#root = root;
    this.#state = seed + 1;
  }

  /** A value that conforms, as far as plain means find one; undefined where they do not. */
  of(schema: DocumentValue | undefined, depth = 0): DocumentValue | undefined {
    if (schema === false || depth > 12) return undefined;
    if (!isObject(schema)) return 'any';
    if (typeof schema.$ref === 'string') return this.of(this.#deref(schema), depth + 1);
    if (schema.const !== undefined) return schema.const;
    if (Array.isArray(schema.enum)) return schema.enum[this.#below(schema.enum.length)];
    if (Array.isArray(schema.allOf))
      return this.of(merged([without(schema, 'allOf'), ...schema.allOf.map((one) => this.#deref(one))]), depth + 1);
    for (const keyword of ['oneOf', 'anyOf']) {
      const alternatives = schema[keyword];
      if (!Array.isArray(alternatives)) continue;
      const chosen = alternatives[depth > DEEPEST ? 0 : this.#below(alternatives.length)];
      return this.of(merged([without(schema, keyword), this.#deref(chosen ?? true)]), depth + 1);
    }
    return this.#ofType(schema, depth);
  }

  #at(ref: string): JsonObject {
    const found = typeof this.#root === 'boolean' ? undefined : atPointer(this.#root, ref.slice(1));
    return isObject(found) ? found : {};
  }

  #deref(schema: DocumentValue): DocumentValue {
    return isObject(schema) && typeof schema.$ref === 'string'
      ? merged([this.#at(schema.$ref), without(schema, '$ref')])
      : schema;
  }

  #ofType(schema: JsonObject, depth: number): DocumentValue | undefined {
    const types = Array.isArray(schema.type) ? schema.type.filter((type) => type !== 'null') : [schema.type];
    const type = types[this.#below(types.length)] ?? (isObject(schema.properties) ? 'object' : 'string');
    if (type === 'object') return this.#object(schema, depth);
    if (type === 'array') return this.#array(schema, depth);
    if (type === 'string') return this.#text(schema);
    if (type === 'boolean') return this.#below(2) === 1;
    if (type === 'null') return null;
    return this.#number(schema);
  }

  #object(schema: JsonObject, depth: number): DocumentValue | undefined {
    const most = typeof schema.maxProperties === 'number' ? schema.maxProperties : Number.POSITIVE_INFINITY;
    const dependent = isObject(schema.dependentRequired) ? Object.values(schema.dependentRequired).flat() : [];
    const required = new Set([...(Array.isArray(schema.required) ? schema.required : []), ...dependent]);
    const found: [string, DocumentValue][] = [];
    for (const [name, of] of Object.entries(isObject(schema.properties) ? schema.properties : {})) {
      if (!required.has(name) && (found.length >= most || depth >= DEEPEST || this.#below(2) === 0)) continue;
      const value = this.of(of, depth + 1);
      if (value !== undefined) found.push([name, value]);
      else if (required.has(name)) return undefined;
    }
    if (found.length === 0 && isObject(schema.additionalProperties)) {
      const value = this.of(schema.additionalProperties, depth + 1);
      if (value !== undefined) found.push(['key one', value]);
    }
    return Object.fromEntries(found);
  }

  #array(schema: JsonObject, depth: number): DocumentValue {
    const least = typeof schema.minItems === 'number' ? schema.minItems : 0;
    const most = typeof schema.maxItems === 'number' ? schema.maxItems : Number.POSITIVE_INFINITY;
    const length = Math.min(most, Math.max(least, depth > DEEPEST ? 0 : 1 + this.#below(2)));
    const items = Array.from({ length }, () => this.of(schema.items ?? true, depth + 1));
    const given = items.filter((item) => item !== undefined);
    return schema.uniqueItems === true
      ? given.filter(
          (one, index) => given.findIndex((other) => JSON.stringify(other) === JSON.stringify(one)) === index,
        )
      : given;
  }

  #text(schema: JsonObject): string | undefined {
    const least = typeof schema.minLength === 'number' ? schema.minLength : 1;
    const most = typeof schema.maxLength === 'number' ? schema.maxLength : Math.max(24, least);
    if (schema.contentEncoding === 'base64') return Buffer.from([0, 255, this.#below(256)]).toString('base64');
    // The library makes no texts for patterns that look around; these are not checked either.
    if (typeof schema.pattern === 'string' && !/\(\?<?[=!]/.test(schema.pattern)) {
      const strings = fc
        .stringMatching(new RegExp(schema.pattern))
        .filter((text) => text.length >= least && text.length <= most && !/[\r\n\0]/.test(text));
      return fc.sample(strings, { seed: this.#below(1_000_000), numRuns: 1 })[0];
    }
    const formatted = typeof schema.format === 'string' ? FORMATS.get(schema.format) : undefined;
    if (
      formatted !== undefined &&
      formatted.length >= least &&
      (schema.maxLength === undefined || formatted.length <= most)
    )
      return formatted;
    const letters = ['a', 'B', '7', ' ', '/', '?', '&', '=', '#', '%', '+', ',', ';', '"', 'ü', '[', '_'];
    // Neither blanks at the ends, which headers lose, nor dots alone.
    const middle = Array.from(
      { length: Math.min(most, least + this.#below(8)) },
      () => letters[this.#below(letters.length)],
    ).join('');
    return most < 3
      ? 'x'.repeat(Math.max(least, 1))
      : `x${middle}`
          .slice(0, most - 1)
          .concat('z')
          .padEnd(least, 'z');
  }

  #number(schema: JsonObject): number {
    const low = typeof schema.exclusiveMinimum === 'number' ? schema.exclusiveMinimum + 1 : schema.minimum;
    const least = typeof low === 'number' ? low : 1;
    const most = typeof schema.maximum === 'number' ? schema.maximum : least + 1000;
    const step = typeof schema.multipleOf === 'number' ? schema.multipleOf : 1;
    const value = Math.ceil(least / step) * step + step * this.#below(5);
    return value > most ? least : value;
  }

  /** A linear congruential generator (Numerical Recipes): fixed seeds give fixed tests. */
  #below(bound: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * bound);
  }
}

function without(schema: JsonObject, keyword: string): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => name !== keyword));
}

function merged(schemas: readonly DocumentValue[]): JsonObject {
  let all: JsonObject = {};
  for (const one of schemas.filter(isObject)) {
    const properties = {
      ...(isObject(all.properties) ? all.properties : {}),
      ...(isObject(one.properties) ? one.properties : {}),
    };
    const required = [
      ...(Array.isArray(all.required) ? all.required : []),
      ...(Array.isArray(one.required) ? one.required : []),
    ];
    all = {
      ...all,
      ...one,
      ...(Object.keys(properties).length > 0 ? { properties } : {}),
      ...(required.length > 0 ? { required } : {}),
    };
  }
  return all;
}
