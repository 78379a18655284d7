import { type JsonObject, type JsonObjectSchema, type Problem, prefixedName, type Tool } from '../../tools/index.ts';
import { isObject } from '../../tools/json-pointer.ts';
import { plainSchema } from '../../tools/plain-schema.ts';
import { plainText } from '../../tools/plain-text.ts';
import { isPlain } from '../../tools/plain-value.ts';
import type { Prompt, Resource, ResourceTemplate } from '../offers.ts';

/** Names of tools, as the protocol allows them. */
const NAME = /^[A-Za-z0-9_.-]+$/;
/** Prompts are named more freely: visible ASCII and spaces. */
const PROMPT_NAME = /^[\x20-\x7e]+$/;
const LONGEST_NAME = 128;
const LONGEST_EVERYWHERE = 64;
const LONGEST_URI = 2048;
/** An RFC 3986 URI or a template of one, without what is not visible. */
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[\x21-\x7e]*$/;
/** Limit of a title or a description. */
const LONGEST_TEXT = 32 * 1024;
/** Limit of one offer, as JSON. */
const MAX_CHARACTERS = 256 * 1024;

/** What could be read of a list, and what was left out and why. */
export interface Read<Offer> {
  offers: Offer[];
  problems: Problem[];
}

/** Tools as an MCP server lists them; names are kept as they are, and a tool that cannot keep its name is left out. */
export function readTools(listed: readonly unknown[], target: string): Read<Tool> {
  return readAll(listed, 'tool', (raw) => {
    const { name } = raw;
    if (typeof name !== 'string') return 'has no name';
    const unfit = unfitName(name, NAME, target);
    if (unfit) return unfit;
    const { inputSchema = { type: 'object' }, outputSchema, title, description } = raw;
    if (!isObjectSchema(inputSchema)) return 'has an inputSchema that is not a schema of an object';
    // Newer servers may answer with any value: what is no object is passed on, without a schema.
    const output = isObjectSchema(outputSchema) ? { outputSchema: plainSchema(outputSchema, LONGEST_TEXT) } : {};
    const shown = textOr(title) ?? (isObject(raw.annotations) ? textOr(raw.annotations.title) : undefined);
    return {
      name,
      ...(shown !== undefined && { title: shown }),
      description: textOr(description) ?? '',
      inputSchema: plainSchema(inputSchema, LONGEST_TEXT),
      ...output,
      hints: hintsOf(raw),
    };
  });
}

/** Warnings about names that some providers of models refuse. */
export function longNames(tools: readonly Tool[], target: string): Problem[] {
  const long = tools.filter(({ name }) => prefixedName(target, name).length > LONGEST_EVERYWHERE);
  return long.map(({ name }) => ({
    severity: 'warning',
    where: name,
    message: `With its target's name it has more than ${LONGEST_EVERYWHERE} characters, which some model providers do not take.`,
  }));
}

export function readPrompts(listed: readonly unknown[], target: string): Read<Prompt> {
  return readAll(listed, 'prompt', (raw) => {
    const { name } = raw;
    if (typeof name !== 'string') return 'has no name';
    const unfit = unfitName(name, PROMPT_NAME, target);
    if (unfit) return unfit;
    const given = Array.isArray(raw.arguments) ? raw.arguments.filter(isObject) : [];
    const parameters = given.flatMap((one) =>
      typeof one.name === 'string'
        ? { name: one.name, ...texts(one, 'title', 'description'), required: one.required === true }
        : [],
    );
    return { name, ...texts(raw, 'title', 'description'), ...(parameters.length > 0 && { arguments: parameters }) };
  });
}

export function readResources(listed: readonly unknown[]): Read<Resource> {
  return readAll(listed, 'resource', (raw) => {
    const { uri, name, size } = raw;
    if (typeof uri !== 'string' || !isUri(uri)) return 'has no URI that can be kept';
    return {
      uri,
      name: textOr(name) ?? uri,
      ...texts(raw, 'title', 'description', 'mimeType'),
      ...(typeof size === 'number' && { size }),
    };
  });
}

export function readTemplates(listed: readonly unknown[]): Read<ResourceTemplate> {
  return readAll(listed, 'resource template', (raw) => {
    const { uriTemplate, name } = raw;
    if (typeof uriTemplate !== 'string' || !isUri(uriTemplate)) return 'has no URI template that can be kept';
    return { uriTemplate, name: textOr(name) ?? uriTemplate, ...texts(raw, 'title', 'description', 'mimeType') };
  });
}

/** Reads each; what cannot be read, or has the name of another, is left out with a warning. */
function readAll<Offer extends object>(
  listed: readonly unknown[],
  what: string,
  read: (raw: JsonObject) => Offer | string,
): Read<Offer> {
  const offers = new Map<string, Offer>();
  const problems: Problem[] = [];
  for (const [i, raw] of listed.entries()) {
    const offer = readOne(raw, read);
    const known = typeof offer === 'string' ? '' : keyOf(offer);
    const problem = typeof offer === 'string' ? offer : offers.has(known) ? 'has the name of another' : undefined;
    if (typeof offer !== 'string' && problem === undefined) offers.set(known, offer);
    else problems.push({ severity: 'warning', message: `The ${what} ${shown(raw, i)} is left out: it ${problem}.` });
  }
  return { offers: [...offers.values()], problems };
}

function readOne<Offer extends object>(raw: unknown, read: (raw: JsonObject) => Offer | string): Offer | string {
  if (!isObject(raw)) return 'is not an object';
  if (!isPlain(raw)) return 'is too deep, or has text that cannot be stored';
  if (JSON.stringify(raw).length > MAX_CHARACTERS) return `is larger than ${MAX_CHARACTERS} characters`;
  return read(raw);
}

function keyOf(offer: object): string {
  const { name, uri, uriTemplate } = offer as Partial<Record<'name' | 'uri' | 'uriTemplate', string>>;
  return uri ?? uriTemplate ?? name ?? '';
}

/** Its name with everything escaped that is not visible: nothing in it may pass as something else. */
function shown(raw: unknown, i: number): string {
  const name = isObject(raw) ? (raw.name ?? raw.uri ?? raw.uriTemplate) : undefined;
  if (typeof name !== 'string') return `number ${i + 1}`;
  const cut = name.length > 80 ? `${name.slice(0, 80)}…` : name;
  return JSON.stringify(cut).replace(
    /[^\x20-\x7e…]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function unfitName(name: string, letters: RegExp, target: string): string | undefined {
  const room = LONGEST_NAME - prefixedName(target, '').length;
  if (!letters.test(name)) return 'has a name with other letters than the protocol has';
  return name.length > room
    ? `has a name of more than the ${room} characters that are left by its target's`
    : undefined;
}

function isUri(uri: string): boolean {
  return uri.length <= LONGEST_URI && URI.test(uri);
}

function isObjectSchema(schema: unknown): schema is JsonObjectSchema {
  return isObject(schema) && schema.type === 'object';
}

/** The hints of a tool, with the protocol's defaults when the server gives none. */
function hintsOf({ annotations }: JsonObject): Tool['hints'] {
  const { readOnlyHint, destructiveHint, idempotentHint } = isObject(annotations) ? annotations : {};
  const readOnly = readOnlyHint === true;
  return {
    readOnly,
    destructive: !readOnly && destructiveHint !== false,
    idempotent: readOnly || idempotentHint === true,
  };
}

/** A text as people and models are to see it: instructions in characters that nobody sees are none. */
function textOr(value: unknown): string | undefined {
  return typeof value === 'string' ? plainText(value, LONGEST_TEXT) : undefined;
}

function texts<Name extends string>(raw: JsonObject, ...names: Name[]): Partial<Record<Name, string>> {
  const kept: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = textOr(raw[name]);
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}
