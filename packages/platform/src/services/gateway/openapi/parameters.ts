import type { DocumentValue } from '@agentplatform/contract';
import { isReservedHeader, isToken } from '../http-tools/header-rules.ts';
import type { CredentialPlace, HttpParameter, ParameterPlace, ParameterStyle } from '../http-tools/http-tool.ts';
import { isObject, pointerTo } from '../tools/json-pointer.ts';
import type { JsonObject } from '../tools/tool.ts';
import { BrokenPartError, type Files, type Found, type Place } from './files.ts';

/** A parameter as the document has it, before it has a name among the arguments. */
export interface DeclaredParameter extends Omit<HttpParameter, 'argument'> {
  required: boolean;
  description?: string;
  deprecated: boolean;
  schema: Found;
}

const STYLES: { [place in ParameterPlace]: readonly ParameterStyle[] } = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
  cookie: ['form'],
};
const PLACES: readonly ParameterPlace[] = ['path', 'query', 'header', 'cookie'];

export interface ParameterDeps {
  files: Files;
  /** The places of credentials, which no argument may set. */
  credentials: readonly CredentialPlace[];
  warn(message: string, place: Place): void;
}

/**
 * The parameters of an operation, those of its path among them unless it has the same itself; without those that carry credentials or
 * belong to the connection. In the order of their places, so that names among the arguments do not depend on who was written first.
 */
export function declaredParameters(lists: readonly Found[], deps: ParameterDeps): DeclaredParameter[] {
  const byName = new Map<string, DeclaredParameter>();
  for (const { value, place } of lists) {
    if (value === null) continue;
    if (!Array.isArray(value)) throw new BrokenPartError('The parameters are no list.', place);
    for (const [index, one] of value.entries()) {
      const at = { ...place, pointer: pointerTo(place.pointer, index) };
      const declared = declaredParameter(deps.files.follow({ value: one, place: at }), deps);
      if (declared) byName.set(`${declared.in} ${declared.name}`, declared);
    }
  }
  return [...byName.values()].sort((a, b) => PLACES.indexOf(a.in) - PLACES.indexOf(b.in));
}

function declaredParameter({ value, place }: Found, deps: ParameterDeps): DeclaredParameter | undefined {
  if (!isObject(value)) throw new BrokenPartError('A parameter is not an object.', place);
  const { name, in: given } = value;
  const where = PLACES.find((one) => one === given);
  if (typeof name !== 'string' || name === '' || where === undefined)
    throw new BrokenPartError('A parameter has no name, or is in none of path, query, header and cookie.', place);
  if (isWithheld(where, name, deps.credentials)) return undefined;
  if ((where === 'header' || where === 'cookie') && !isToken(name))
    throw new BrokenPartError(`No ${where} can have the name ${JSON.stringify(name.slice(0, 100))}.`, place);
  const style = styleOf(value, where, place, deps);
  return {
    name,
    in: where,
    style,
    explode: typeof value.explode === 'boolean' ? value.explode : style === 'form' || style === 'deepObject',
    ...(value.allowReserved === true ? { allowReserved: true } : {}),
    required: value.required === true || where === 'path',
    ...(typeof value.description === 'string' ? { description: value.description } : {}),
    deprecated: value.deprecated === true,
    ...content(value, place),
  };
}

/** OpenAPI itself has the headers `Accept`, `Content-Type` and `Authorization` ignored. */
function isWithheld(place: ParameterPlace, name: string, credentials: readonly CredentialPlace[]): boolean {
  if (place === 'header' && isReservedHeader(name)) return true;
  const small = name.toLowerCase();
  return credentials.some(
    (one) => one.in === place && (place === 'header' ? one.name.toLowerCase() === small : one.name === name),
  );
}

function styleOf({ style }: JsonObject, where: ParameterPlace, place: Place, { warn }: ParameterDeps): ParameterStyle {
  const [usual = 'form'] = STYLES[where];
  if (style === undefined) return usual;
  const known = STYLES[where].find((one) => one === style);
  if (known === undefined)
    warn(
      `A parameter in the ${where} cannot have the style ${JSON.stringify(style).slice(0, 50)}; it is written as ${usual}.`,
      place,
    );
  return known ?? usual;
}

/** Its schema, and its media type where the value as a whole has one. */
function content(parameter: JsonObject, place: Place): { schema: Found; content?: string } {
  const at = (pointer: string, ...tokens: string[]): Place => ({
    ...place,
    pointer: tokens.reduce(pointerTo, pointer),
  });
  if (isObject(parameter.content)) {
    const [first] = Object.entries(parameter.content);
    if (!first) throw new BrokenPartError('The content of a parameter names no media type.', place);
    const [mediaType, of] = first;
    return {
      content: mediaType.toLowerCase(),
      schema: { value: schemaIn(of), place: at(place.pointer, 'content', mediaType, 'schema') },
    };
  }
  return { schema: { value: schemaIn(parameter, { type: 'string' }), place: at(place.pointer, 'schema') } };
}

function schemaIn(holder: DocumentValue | undefined, otherwise: DocumentValue = true): DocumentValue {
  return isObject(holder) && holder.schema !== undefined ? holder.schema : otherwise;
}
