import type { DocumentValue } from '@agentplatform/contract';
import { isObject } from './json-pointer.ts';
import { plainText } from './plain-text.ts';
import type { JsonObject } from './tool.ts';

/** What a schema says to whoever reads it. */
const TEXTS = ['title', 'description', '$comment'];
/** Members that are schemas, lists of schemas, or schemas by name (JSON Schema 2020-12, and the older words that are still written). */
const SCHEMAS = ['items', 'additionalItems', 'additionalProperties', 'unevaluatedItems', 'unevaluatedProperties']
  .concat(['contains', 'propertyNames', 'contentSchema', 'not', 'if', 'then', 'else', 'prefixItems'])
  .concat(['allOf', 'anyOf', 'oneOf']);
const SCHEMAS_BY_NAME = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'];

/** A schema with its texts as people and models are to see them, at every depth; names and values are kept. `longest` is of one text, characters. */
export function plainSchema<Schema extends JsonObject>(schema: Schema, longest: number): Schema {
  const plain: JsonObject = { ...schema };
  for (const name of TEXTS) {
    const text = plain[name];
    if (typeof text === 'string') plain[name] = plainText(text, longest);
  }
  for (const name of SCHEMAS) if (name in plain) plain[name] = inside(plain[name], longest);
  for (const name of SCHEMAS_BY_NAME) {
    const named = plain[name];
    if (isObject(named))
      plain[name] = Object.fromEntries(Object.entries(named).map(([key, one]) => [key, inside(one, longest)]));
  }
  return plain as Schema;
}

function inside(value: DocumentValue | undefined, longest: number): DocumentValue | undefined {
  if (Array.isArray(value)) return value.map((one) => inside(one, longest) ?? null);
  return isObject(value) ? (plainSchema(value, longest) as DocumentValue) : value;
}
