import type { DocumentValue } from '@agentplatform/contract';
import type { HttpTemplate } from '../http-tools/http-tool.ts';
import { isObject, own, pointerTo } from '../tools/json-pointer.ts';
import type { JsonObject, JsonObjectSchema, JsonSchema } from '../tools/tool.ts';
import type { Files, Found } from './files.ts';
import type { SchemaConverter } from './schemas.ts';

export interface CompiledAnswer {
  answer: HttpTemplate['answer'];
  outputSchema?: JsonObjectSchema;
  /** It would be larger than it may be. */
  tooLarge: boolean;
}

export interface AnswerDeps {
  files: Files;
  output: SchemaConverter;
  mostBytes: number;
}

/** What an operation answers when all goes well. Throws `BrokenPartError`. */
export function compileAnswer(responses: Found, deps: AnswerDeps): CompiledAnswer {
  const found = successOf(responses, deps.files);
  const content = found && isObject(found.value) && isObject(found.value.content) ? found.value.content : {};
  const mediaTypes = Object.keys(content);
  const json = mediaTypes.find(isJson) ?? mediaTypes.find((one) => one.includes('*'));
  const accept = acceptOf(mediaTypes);
  const media = json === undefined ? undefined : own(content, json);
  if (!found || json === undefined || !isObject(media) || media.schema === undefined)
    return { answer: { accept }, tooLarge: false };
  const pointer = ['content', json, 'schema'].reduce(pointerTo, found.place.pointer);
  const made = outputSchema({ value: media.schema, place: { ...found.place, pointer } }, deps);
  if (!made) return { answer: { accept }, tooLarge: true };
  return { answer: { accept, ...(made.wrapped ? { wrapped: true } : {}) }, outputSchema: made.schema, tooLarge: false };
}

function successOf({ value, place }: Found, files: Files): Found | undefined {
  if (!isObject(value)) return undefined;
  const codes = Object.keys(value).filter((code) => /^2(?:\d\d|XX)$/i.test(code));
  const [code] = codes.sort((a, b) => (a.toUpperCase() < b.toUpperCase() ? -1 : 1));
  if (code === undefined) return undefined;
  return files.follow({
    value: own(value, code) ?? null,
    place: { ...place, pointer: pointerTo(place.pointer, code) },
  });
}

const isJson = (mediaType: string): boolean =>
  /^(?:application\/|text\/)?(?:[\w.-]+\+)?json(?:$|;)/i.test(
    mediaType.replace(/\s/g, '').replace(/^application\/([\w.-]+\+json)/i, '$1'),
  );

/** What the document knows, JSON before all else, and anything in the end. */
function acceptOf(mediaTypes: readonly string[]): string {
  const known = mediaTypes.filter((one) => /^[\w.+-]+\/[\w.+*-]+$/.test(one)).slice(0, 8);
  const sorted = known.sort((a, b) => Number(isJson(b)) - Number(isJson(a)));
  return sorted.length === 0 ? '*/*' : [...sorted, '*/*;q=0.1'].join(', ');
}

/** MCP's structured results are objects: anything else is put under `result`. Undefined for a schema that is too large. */
function outputSchema(
  found: Found,
  { output, mostBytes }: AnswerDeps,
): { schema: JsonObjectSchema; wrapped: boolean } | undefined {
  const { schema, uses } = output.convert(found);
  const reached = output.definitions(uses, mostBytes);
  if (!reached) return undefined;
  const { $defs } = reached;
  const root = inlined(schema, $defs);
  const isPlain = isObjectSchema(root, $defs, 0);
  const made: JsonObjectSchema =
    isPlain && isObject(root) ? { ...root, type: 'object' } : { type: 'object', properties: { result: schema } };
  const full = Object.keys($defs).length > 0 ? { ...made, $defs } : made;
  return JSON.stringify(full).length > mostBytes ? undefined : { schema: full, wrapped: !isPlain };
}

/** The definition itself, where a schema is nothing but a reference to it. */
function inlined(schema: JsonSchema, $defs: { [name: string]: JsonSchema }): JsonSchema {
  const target = isObject(schema) && Object.keys(schema).length === 1 ? definitionOf(schema, $defs) : undefined;
  return target === undefined ? schema : inlinedOnce(target, schema);
}

const inlinedOnce = (target: JsonSchema, schema: JsonSchema): JsonSchema =>
  isObject(target) && target.$ref === undefined ? target : schema;

function definitionOf({ $ref }: JsonObject, $defs: { [name: string]: JsonSchema }): JsonSchema | undefined {
  return typeof $ref === 'string' ? $defs[$ref.slice('#/$defs/'.length)] : undefined;
}

/** Whether all that conforms to it (and is not null) is an object. */
function isObjectSchema(
  schema: DocumentValue | undefined,
  $defs: { [name: string]: JsonSchema },
  hops: number,
): boolean {
  if (!isObject(schema) || hops > 8) return false;
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter(
    (type) => type !== 'null' && type !== undefined,
  );
  if (types.length > 0) return types.every((type) => type === 'object');
  if (schema.$ref !== undefined) return isObjectSchema(definitionOf(schema, $defs), $defs, hops + 1);
  if (Array.isArray(schema.allOf)) return schema.allOf.some((one) => isObjectSchema(one, $defs, hops + 1));
  const alternatives = Array.isArray(schema.anyOf) ? schema.anyOf : [];
  if (alternatives.length > 0)
    return alternatives.length <= 50 && alternatives.every((one) => isObjectSchema(one, $defs, hops + 1));
  return isObject(schema.properties);
}
