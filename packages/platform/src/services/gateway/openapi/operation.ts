import type { DocumentValue } from '@agentplatform/contract';
import type { CredentialPlace, HttpParameter, HttpTemplate, HttpTool } from '../http-tools/http-tool.ts';
import { hintsOf } from '../http-tools/method-hints.ts';
import { isObject, pointerTo } from '../tools/json-pointer.ts';
import { plainText } from '../tools/plain-text.ts';
import type { JsonObject, JsonObjectSchema, JsonSchema } from '../tools/tool.ts';
import { compileAnswer } from './answers.ts';
import { ArgumentNames } from './argument-names.ts';
import { BrokenPartError, type Files, type Found, type Place } from './files.ts';
import type { CompileLimits } from './limits.ts';
import { type DeclaredParameter, declaredParameters } from './parameters.ts';
import { type CompiledBody, compileBody } from './request-body.ts';
import type { SchemaConverter } from './schemas.ts';
import type { SecurityScheme } from './security.ts';
import type { OperationName, ToolOverride, ToolSelection } from './selection.ts';
import { serverOf } from './servers.ts';

export interface OperationDeps {
  files: Files;
  input: SchemaConverter;
  output: SchemaConverter;
  is30: boolean;
  limits: CompileLimits;
  baseUrl?: string;
  root: JsonObject;
  /** The places of credentials, by the document or by the target. */
  credentials: readonly CredentialPlace[];
  schemes: readonly SecurityScheme[];
  /** There, for an exported REST API. */
  selection?: ToolSelection;
  warn(message: string, place: Place): void;
}

/** An operation with its path and where it stands. */
export interface OperationSource extends OperationName {
  operation: DocumentValue;
  place: Place;
  item: { value: JsonObject; place: Place };
}

/** An operation's tool, which has no name yet. */
export interface CompiledOperation extends OperationName {
  key: string;
  wantedName: string;
  tool: Omit<HttpTool, 'name'>;
  /** Size of its schemas. */
  bytes: number;
  outputTooLarge: boolean;
}

/** Makes a tool of an operation. Throws `BrokenPartError` for one that cannot be called. */
export function compileOperation(
  source: OperationSource,
  deps: OperationDeps,
  override?: ToolOverride,
): CompiledOperation {
  const { method, path, operation, place, item } = source;
  if (!isObject(operation)) throw new BrokenPartError('The operation is not an object.', place);
  const at = (token: string, from = place): Place => ({ ...from, pointer: pointerTo(from.pointer, token) });
  const wantedName = override?.name ?? operation.operationId;
  if (typeof wantedName !== 'string' || wantedName === '')
    throw new BrokenPartError('It has no operationId, which is what a tool is named by.', place);
  if (method === 'TRACE') throw new BrokenPartError('Requests with the method TRACE are not sent.', place);
  refuseSignedWithKey(operation, deps, place);
  const server = serverFor(source, operation, deps);
  const parameters = declaredParameters(
    [
      { value: item.value.parameters ?? null, place: at('parameters', item.place) },
      { value: operation.parameters ?? null, place: at('parameters') },
    ],
    deps,
  );
  checkPath(path, parameters, place, deps);
  const body = operation.requestBody ?? null;
  const input = inputOf(
    parameters,
    mayHaveBody(method, body, deps, at('requestBody')) ? { value: body, place: at('requestBody') } : undefined,
    deps,
    place,
  );
  const answer = answerOf({ value: operation.responses ?? null, place: at('responses') }, deps);
  const http: HttpTemplate = {
    method,
    server,
    path: encodedPath(path),
    parameters: input.parameters,
    ...(input.body ? { body: input.body } : {}),
    ...(deps.credentials.length > 0 ? { credentials: [...deps.credentials] } : {}),
    answer: answer.answer,
  };
  const tool = {
    ...(typeof operation.summary === 'string' && operation.summary !== ''
      ? { title: plainText(operation.summary, 200) }
      : {}),
    description: descriptionOf(source, operation, deps, override),
    inputSchema: input.schema,
    ...(answer.outputSchema ? { outputSchema: answer.outputSchema } : {}),
    hints: hintsOf(method),
    http,
  };
  const bytes = input.bytes + (answer.outputSchema ? JSON.stringify(answer.outputSchema).length : 0);
  return { method, path, key: `${method} ${path}`, wantedName, tool, bytes, outputTooLarge: answer.tooLarge };
}

/** An API of the gateway product asks for a signature and for a key in the same request, which no single credential gives. */
function refuseSignedWithKey({ security }: JsonObject, { schemes, selection }: OperationDeps, place: Place): void {
  if (!selection || !Array.isArray(security) || security.length === 0) return;
  const each = security.map((one) => schemes.filter(({ scheme }) => isObject(one) && one[scheme] !== undefined));
  if (
    each.every((those) => those.some(({ signed }) => signed) && those.some(({ apiKey, signed }) => apiKey && !signed))
  )
    throw new BrokenPartError('It asks for a signature and an API key at once.', place);
}

function serverFor(
  { place, item }: OperationSource,
  operation: JsonObject,
  { root, baseUrl, warn }: OperationDeps,
): string {
  const servers = operation.servers ?? item.value.servers ?? root.servers;
  const server = serverOf(servers, baseUrl, {
    ...place,
    pointer: operation.servers ? pointerTo(place.pointer, 'servers') : place.pointer,
  });
  if (servers !== root.servers && root.servers !== undefined) {
    const usual = serverOf(root.servers, baseUrl, place);
    if (new URL(usual).origin !== new URL(server).origin)
      warn(`Requests of this operation, and credentials with them, go to ${server}, not to ${usual}.`, place);
  }
  return server;
}

const VARIABLE = /\{([^{}]*)\}/g;

function checkPath(
  path: string,
  parameters: readonly DeclaredParameter[],
  place: Place,
  { warn }: OperationDeps,
): void {
  if (!path.startsWith('/')) throw new BrokenPartError('The path does not begin with a slash.', place);
  const literal = path.replace(VARIABLE, '');
  if (/[{}?#\\]/.test(literal) || literal.split('/').some((segment) => segment === '..' || segment === '.'))
    throw new BrokenPartError('The path has a query, a fragment, an open brace, or steps to another path.', place);
  const variables = new Set([...path.matchAll(VARIABLE)].map(([, name = '']) => name));
  const declared = parameters.filter((one) => one.in === 'path').map(({ name }) => name);
  for (const name of variables)
    if (!declared.includes(name))
      throw new BrokenPartError(
        `The path has a variable {${name.slice(0, 100)}} for which there is no parameter.`,
        place,
      );
  for (const name of declared)
    if (!variables.has(name))
      warn(`The path has no variable for the parameter ${name.slice(0, 100)}, which is left out.`, place);
}

/** The literal parts as a URL has them; variables stay. */
function encodedPath(path: string): string {
  const parts = path.split(/(\{[^{}]*\})/);
  return parts.map((part, index) => (index % 2 === 1 ? part : new URL(`http://x/a${part}`).pathname.slice(2))).join('');
}

function mayHaveBody(method: string, body: DocumentValue, { warn }: OperationDeps, place: Place): boolean {
  if (body === null) return false;
  if (method !== 'GET' && method !== 'HEAD') return true;
  const content = isObject(body) && isObject(body.content) ? Object.values(body.content) : [];
  if (body !== null && (content.length === 0 || content.some(saysSomething)))
    warn(`A request with the method ${method} has no body; that of this operation is left out.`, place);
  return false;
}

/** Whether a media type's schema is more than an object without properties, which generators write where there is no body. */
function saysSomething(media: DocumentValue | undefined): boolean {
  const schema = isObject(media) ? media.schema : undefined;
  return !isObject(schema) || !isObject(schema.properties) || Object.keys(schema.properties).length > 0;
}

interface CompiledInput {
  schema: JsonObjectSchema;
  parameters: HttpParameter[];
  body?: CompiledBody['body'];
  bytes: number;
}

function inputOf(
  declared: readonly DeclaredParameter[],
  requestBody: Found | undefined,
  deps: OperationDeps,
  place: Place,
): CompiledInput {
  const names = new ArgumentNames();
  const uses = new Set<string>();
  const properties: [string, JsonSchema][] = [];
  const required: string[] = [];
  const parameters = declared.map(({ schema, required: must, description, deprecated, ...rest }): HttpParameter => {
    const argument = names.claim(rest.name, rest.in);
    const converted = deps.input.convert(schema);
    for (const one of converted.uses) uses.add(one);
    properties.push([argument, described(converted.schema, description, deprecated, deps.limits.description)]);
    if (must) required.push(argument);
    return { argument, ...rest };
  });
  const body = requestBody && compileBody(requestBody, { ...deps, names });
  for (const one of body?.uses ?? []) uses.add(one);
  properties.push(...Object.entries(body?.properties ?? {}));
  required.push(...(body?.required ?? []));
  const { inputSchemaBytes } = deps.limits;
  const reached = deps.input.definitions(uses, inputSchemaBytes);
  const schema: JsonObjectSchema = {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
    ...(body?.dependentRequired ? { dependentRequired: body.dependentRequired } : {}),
    additionalProperties: false,
  };
  const bytes = JSON.stringify(schema).length + (reached?.bytes ?? 0);
  if (!reached || bytes > inputSchemaBytes)
    throw new BrokenPartError(`The schema of its arguments is larger than ${inputSchemaBytes} bytes.`, place);
  const full = Object.keys(reached.$defs).length > 0 ? { ...schema, $defs: reached.$defs } : schema;
  return { schema: full, parameters, ...(body ? { body: body.body } : {}), bytes };
}

function described(
  schema: JsonSchema,
  description: string | undefined,
  deprecated: boolean,
  longest: number,
): JsonSchema {
  if (!isObject(schema) || (description === undefined && !deprecated)) return schema;
  return {
    ...schema,
    ...(description === undefined ? {} : { description: plainText(description, longest) }),
    ...(deprecated ? { deprecated } : {}),
  };
}

/** A broken answer costs the output schema, not the operation. */
function answerOf(responses: Found, { files, output, limits, warn }: OperationDeps): ReturnType<typeof compileAnswer> {
  try {
    return compileAnswer(responses, { files, output, mostBytes: limits.outputSchemaBytes });
  } catch (error) {
    if (!(error instanceof BrokenPartError)) throw error;
    warn(`An answer cannot be described: ${error.message}`, error.place);
    return { answer: { accept: '*/*' }, tooLarge: false };
  }
}

function descriptionOf(
  { method, path }: OperationSource,
  operation: JsonObject,
  { limits }: OperationDeps,
  override?: ToolOverride,
): string {
  const texts =
    override?.description === undefined ? [operation.summary, operation.description] : [override.description];
  const said = [...new Set(texts)].filter((text): text is string => typeof text === 'string' && text.trim() !== '');
  const whole = said.length > 0 ? said.join('\n\n') : `${method} ${path}`;
  return plainText(operation.deprecated === true ? `Deprecated. ${whole}` : whole, limits.description);
}
