import type { DocumentValue } from '@agentplatform/contract';
import type { BodyField, BodyKind, HttpBody, ParameterStyle } from '../http-tools/http-tool.ts';
import { isObject, own, pointerTo } from '../tools/json-pointer.ts';
import type { JsonObject, JsonSchema } from '../tools/tool.ts';
import type { ArgumentNames } from './argument-names.ts';
import { BrokenPartError, type Files, type Found } from './files.ts';
import type { SchemaConverter } from './schemas.ts';

/** Arguments that make the body, and how they do. */
export interface CompiledBody {
  body: HttpBody;
  properties: { [argument: string]: JsonSchema };
  required: string[];
  /** Arguments that must be there if others are: the fields that an optional body requires. */
  dependentRequired?: { [argument: string]: string[] };
  uses: Set<string>;
}

export interface BodyDeps {
  files: Files;
  input: SchemaConverter;
  names: ArgumentNames;
  is30: boolean;
}

/** What may stand in a body's schema whose properties become arguments of their own; with anything else, the body is one argument. */
const PLAIN = new Set([
  'type',
  'properties',
  'required',
  'title',
  'description',
  'example',
  'examples',
  'default',
  'deprecated',
  'externalDocs',
  'xml',
]);
const STYLES: readonly ParameterStyle[] = ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'];
const BASE64: JsonObject = { type: 'string', contentEncoding: 'base64' };

/** The body of an operation, of the media type that says most. Throws `BrokenPartError` for one that cannot be sent. */
export function compileBody(found: Found, deps: BodyDeps): CompiledBody {
  const { value, place } = deps.files.follow(found);
  if (!isObject(value) || !isObject(value.content))
    throw new BrokenPartError('The request body names no content.', place);
  const [best] = Object.entries(value.content)
    .map(([mediaType, media]) => ({ mediaType, media, ...kindOf(mediaType) }))
    .sort((a, b) => a.rank - b.rank);
  if (!best) throw new BrokenPartError('The request body names no media type.', place);
  const { mediaType, media, kind } = best;
  const pointer = ['content', mediaType, 'schema'].reduce(pointerTo, place.pointer);
  const given = isObject(media) && media.schema !== undefined ? media.schema : true;
  const schema: Found = { value: given, place: { ...place, pointer } };
  const encodings = isObject(media) && isObject(media.encoding) ? media.encoding : {};
  const about = { kind, mediaType: sentAs(mediaType, kind), required: value.required === true, encodings };
  const flat = kind === 'binary' || kind === 'text' ? undefined : flatObject(schema, deps);
  return flat
    ? ofFields(flat, about, deps)
    : asWhole(schema, about, typeof value.description === 'string' ? value.description : undefined, deps);
}

interface About {
  kind: BodyKind;
  mediaType: string;
  required: boolean;
  encodings: JsonObject;
}

/** How a media type is written; the lower the rank, the more an argument's structure survives. */
function kindOf(given: string): { kind: BodyKind; rank: number } {
  const mediaType = given.toLowerCase().split(';')[0]?.trim() ?? '';
  if (mediaType === 'application/json') return { kind: 'json', rank: 0 };
  if (mediaType.endsWith('+json') || mediaType === 'text/json') return { kind: 'json', rank: 1 };
  if (mediaType === '*/*' || mediaType === 'application/*') return { kind: 'json', rank: 2 };
  if (mediaType === 'application/x-www-form-urlencoded') return { kind: 'form', rank: 3 };
  if (mediaType === 'multipart/form-data') return { kind: 'multipart', rank: 4 };
  if (mediaType.startsWith('text/') || mediaType.endsWith('xml') || mediaType.endsWith('yaml'))
    return { kind: 'text', rank: 5 };
  return { kind: 'binary', rank: 6 };
}

function sentAs(mediaType: string, kind: BodyKind): string {
  if (!/^[\x20-\x7e]{1,200}$/.test(mediaType) || mediaType.includes('*')) {
    if (kind === 'json') return 'application/json';
    return kind === 'text' ? 'text/plain; charset=utf-8' : 'application/octet-stream';
  }
  if (kind === 'multipart') return 'multipart/form-data';
  return kind === 'text' && !mediaType.includes('charset') ? `${mediaType}; charset=utf-8` : mediaType;
}

/** The schema of an object that says nothing but what its properties are; undefined for any other. */
function flatObject(schema: Found, { files, is30 }: BodyDeps): { value: JsonObject; found: Found } | undefined {
  const found =
    is30 || (isObject(schema.value) && Object.keys(schema.value).length === 1) ? files.follow(schema) : schema;
  const { value } = found;
  if (!isObject(value) || !isObject(value.properties) || Object.keys(value.properties).length === 0) return undefined;
  if (value.type !== undefined && value.type !== 'object') return undefined;
  const plain = Object.entries(value).every(
    ([keyword, of]) =>
      PLAIN.has(keyword) || keyword.startsWith('x-') || (keyword === 'additionalProperties' && of === false),
  );
  return plain ? { value, found } : undefined;
}

function ofFields({ value, found }: { value: JsonObject; found: Found }, about: About, deps: BodyDeps): CompiledBody {
  const { kind, mediaType, required, encodings } = about;
  const declared = isObject(value.properties) ? value.properties : {};
  const pointer = pointerTo(found.place.pointer, 'properties');
  const needed = new Set(Array.isArray(value.required) ? value.required : []);
  const properties: { [argument: string]: JsonSchema } = {};
  const uses = new Set<string>();
  const fields: (BodyField & { needed: boolean })[] = [];
  for (const [name, property] of Object.entries(declared)) {
    if (deps.input.isLeftOut(property)) continue;
    const at: Found = { value: property ?? true, place: { ...found.place, pointer: pointerTo(pointer, name) } };
    const field = fieldOf(at, about.kind, own(encodings, name), deps);
    const argument = deps.names.claim(name, 'body');
    fields.push({ argument, name, ...field, needed: needed.has(name) });
    properties[argument] = field.binary === true ? binarySchema(at.value) : converted(at, deps, uses);
  }
  const must = fields.filter((field) => field.needed).map(({ argument }) => argument);
  const body: HttpBody = {
    kind,
    mediaType,
    fields: fields.map(({ needed: _, ...field }) => field),
    ...(required ? { always: true } : {}),
  };
  if (required || must.length === 0) return { body, properties, required: required ? must : [], uses };
  const dependentRequired = Object.fromEntries(
    fields.map(({ argument }) => [argument, must.filter((one) => one !== argument)]),
  );
  return { body, properties, required: [], dependentRequired, uses };
}

function asWhole(schema: Found, about: About, description: string | undefined, deps: BodyDeps): CompiledBody {
  const { kind, mediaType, required, encodings } = about;
  const uses = new Set<string>();
  const whole = deps.names.claim('body', 'body');
  const shape =
    kind === 'binary' ? BASE64 : kind === 'text' ? textSchema(schema, deps, uses) : converted(schema, deps, uses);
  const described: JsonSchema =
    description !== undefined && isObject(shape) && shape.description === undefined ? { ...shape, description } : shape;
  const fields = kind === 'form' || kind === 'multipart' ? wholeFields(schema, about.kind, encodings, deps) : [];
  const body: HttpBody = { kind, mediaType, whole, ...(fields.length > 0 ? { fields } : {}) };
  return { body, properties: Object.fromEntries([[whole, described]]), required: required ? [whole] : [], uses };
}

/** A text, unless the document has something else written as text (XML, say), of which only the text can be sent. */
function textSchema(schema: Found, deps: BodyDeps, uses: Set<string>): JsonSchema {
  const made = converted(schema, deps, uses);
  if (isObject(made) && made.type === 'string') return made;
  uses.clear();
  return { type: 'string' };
}

function wholeFields(schema: Found, kind: BodyKind, encodings: JsonObject, deps: BodyDeps): BodyField[] {
  const { value, place } = deps.files.follow(schema);
  const declared = isObject(value) && isObject(value.properties) ? value.properties : {};
  return Object.entries(declared).map(([name, property]) => ({
    argument: name,
    name,
    ...fieldOf({ value: property ?? true, place }, kind, own(encodings, name), deps),
  }));
}

function converted(found: Found, { input }: BodyDeps, uses: Set<string>): JsonSchema {
  const { schema, uses: those } = input.convert(found);
  for (const one of those) uses.add(one);
  return schema;
}

function fieldOf(
  found: Found,
  kind: BodyKind,
  encoding: DocumentValue | undefined,
  deps: BodyDeps,
): Omit<BodyField, 'argument' | 'name'> {
  if (kind !== 'form' && kind !== 'multipart') return {};
  const given = isObject(encoding) ? encoding : {};
  const style = STYLES.find((one) => one === given.style);
  // One media type of several, and none that would break the line of a part's header.
  const content = typeof given.contentType === 'string' ? given.contentType.split(',')[0]?.trim() : undefined;
  const sent =
    content !== undefined && /^[\w.+-]+\/[\w.+-]+(?:; ?[\w-]+=[\w.-]+)?$/.test(content)
      ? content.toLowerCase()
      : undefined;
  return {
    ...(style === undefined ? {} : { style }),
    ...(typeof given.explode === 'boolean'
      ? { explode: given.explode }
      : style === undefined || style === 'form'
        ? {}
        : { explode: style === 'deepObject' }),
    ...(given.allowReserved === true ? { allowReserved: true } : {}),
    ...(sent === undefined ? {} : { content: sent }),
    ...(kind === 'multipart' && isBinary(found, sent, deps) ? { binary: true } : {}),
  };
}

/** Bytes in a part of a form: `format: binary` of 3.0; in 3.1 a media type without an encoding, or no type at all. */
function isBinary(
  found: Found,
  content: string | undefined,
  { files, is30 }: Pick<BodyDeps, 'files' | 'is30'>,
): boolean {
  const { value } = files.follow(found);
  if (!isObject(value)) return value === true && !is30;
  if (value.type === 'array' && value.items !== undefined)
    return isBinary({ value: value.items, place: found.place }, content, { files, is30 });
  if (value.format === 'binary') return true;
  if (is30 || value.contentEncoding !== undefined) return false;
  if (typeof value.contentMediaType === 'string') return kindOf(value.contentMediaType).kind === 'binary';
  return value.type === undefined && content !== undefined && kindOf(content).kind === 'binary';
}

function binarySchema(value: DocumentValue): JsonSchema {
  const description =
    isObject(value) && typeof value.description === 'string' ? { description: value.description } : {};
  if (isObject(value) && value.type === 'array') return { type: 'array', items: BASE64, ...description };
  return { ...BASE64, ...description };
}
