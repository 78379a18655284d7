import type { DocumentValue } from '@agentplatform/contract';
import { isObject, own } from '../tools/json-pointer.ts';
import type { JsonObject } from '../tools/tool.ts';

/**
 * JSON Schema has no discriminator: each alternative of `made` (the converted `node`) that is a reference says by itself which values of the
 * property stand for it, unless its own schema says so already.
 */
export function discriminated(node: JsonObject, made: JsonObject, resolve: (ref: string) => DocumentValue): void {
  const { discriminator } = node;
  const property = isObject(discriminator) ? discriminator.propertyName : undefined;
  if (typeof property !== 'string') return;
  for (const keyword of ['oneOf', 'anyOf']) {
    const given = node[keyword];
    const converted = made[keyword];
    if (!Array.isArray(given) || !Array.isArray(converted)) continue;
    made[keyword] = converted.map((alternative, index) => {
      const source = given[index];
      const ref = isObject(source) ? source.$ref : undefined;
      if (typeof ref !== 'string' || !isObject(alternative) || saysItself(resolve(ref), property)) return alternative;
      const values = valuesOf(discriminator, ref);
      const value: JsonObject = values.length === 1 ? { const: values[0] ?? '' } : { enum: values };
      return { ...alternative, properties: Object.fromEntries([[property, value]]), required: [property] };
    });
  }
}

/** Also a schema that forbids the property: what the document says twice, and differently, its schema decides. */
function saysItself(schema: DocumentValue, property: string): boolean {
  const properties = isObject(schema) && isObject(schema.properties) ? schema.properties : {};
  const declared = own(properties, property);
  if (declared === undefined) return isObject(schema) && schema.additionalProperties === false;
  return isObject(declared) && (declared.enum !== undefined || declared.const !== undefined);
}

/** The values that are mapped to the reference, or the last part of it. */
function valuesOf(discriminator: DocumentValue | undefined, ref: string): string[] {
  const mapping = isObject(discriminator) && isObject(discriminator.mapping) ? discriminator.mapping : {};
  const name = ref.slice(ref.lastIndexOf('/') + 1);
  const mapped = Object.entries(mapping).flatMap(([value, to]) => (to === ref || to === name ? [value] : []));
  return mapped.length > 0 ? mapped : [name];
}
