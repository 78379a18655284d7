import type { HttpBody, HttpParameter, HttpTemplate, HttpTool } from '../http-tools/http-tool.ts';
import { hintsOf } from '../http-tools/method-hints.ts';
import { isObject } from '../tools/json-pointer.ts';
import type { JsonObjectSchema, JsonSchema, ToolHints } from '../tools/tool.ts';
import { type Bindings, bindingsOf } from './bindings.ts';
import { textOfHtml } from './html.ts';
import { BrokenModelError, localName, type Member, type Model, type ModelShape, targetOf } from './model.ts';
import type { Protocol } from './protocols.ts';
import { isRequired, type SmithySchemas } from './schemas.ts';
import { WireShapes } from './wire-shapes.ts';

export interface SmithyOperationDeps {
  model: Model;
  service: ModelShape;
  protocol: Protocol;
  /** Address of the service, without a closing slash. */
  endpoint: string;
  /** Name of the service in AWS signatures. */
  signingName: string | undefined;
  input: SmithySchemas;
  output: SmithySchemas;
  limits: { inputSchemaBytes: number; outputSchemaBytes: number; description: number };
}

/** Makes a tool of an operation. Throws `BrokenModelError` for one that cannot be called. */
export function compileSmithyOperation(id: string, deps: SmithyOperationDeps): Omit<HttpTool, 'name'> {
  const operation = deps.model.shape(id);
  if (operation.type !== 'operation') throw new BrokenModelError('It is not an operation.');
  const input = structureOf(operation, 'input', deps.model);
  const output = structureOf(operation, 'output', deps.model);
  refuseStreams(input, output, deps.model);
  const { documentation } = operation.traits;
  const { method, path, query } = routeOf(operation, deps.protocol);
  const isRest = deps.protocol.name.startsWith('rest');
  const bindings = isRest ? bindingsOf(input, greedyLabels(path), deps.model) : { bound: [], body: input.members };
  const shapes = new WireShapes(deps.model, deps.service, deps.protocol.name === 'awsQuery');
  const { schema, parameters, body } = inputOf(operation, input, bindings, shapes, deps);
  const answered = answerOf(operation, output, shapes, deps);
  const http: HttpTemplate = {
    method,
    server: withHostPrefix(deps.endpoint, operation),
    path: path.replaceAll('+}', '}'),
    parameters,
    ...(deps.signingName === undefined ? {} : { service: deps.signingName }),
    ...(query.length > 0 ? { query } : {}),
    ...(deps.protocol.name === 'awsJson' ? { headers: rpcHeaders(id, deps.service) } : {}),
    ...(body ? { body } : {}),
    ...(body && needsChecksum(operation) ? { checksum: 'content-md5' } : {}),
    answer: answered.answer,
    ...(Object.keys(shapes.table).length > 0 ? { shapes: shapes.table } : {}),
  };
  return {
    title: localName(id),
    description: typeof documentation === 'string' ? textOfHtml(documentation, deps.limits.description) : localName(id),
    inputSchema: schema,
    ...(answered.outputSchema ? { outputSchema: answered.outputSchema } : {}),
    hints: hints(operation, method, isRest),
    http,
  };
}

/** Which operation it is, and that the client understands what a service of awsQuery answers, where it was one before. */
function rpcHeaders(id: string, service: ModelShape): { [name: string]: string } {
  const wasQuery = service.traits['aws.protocols#awsQueryCompatible'] !== undefined;
  return {
    'x-amz-target': `${localName(service.id)}.${localName(id)}`,
    ...(wasQuery ? { 'x-amzn-query-mode': 'true' } : {}),
  };
}

/** Whether the service takes no request without a checksum of its body; Content-MD5 is the one that all take. */
function needsChecksum({ traits }: ModelShape): boolean {
  const checksum = traits['aws.protocols#httpChecksum'];
  return traits.httpChecksumRequired !== undefined || (isObject(checksum) && checksum.requestChecksumRequired === true);
}

function structureOf(operation: ModelShape, name: 'input' | 'output', model: Model): ModelShape {
  const target = targetOf(operation.raw[name]);
  const shape = model.shape(target === '' ? 'smithy.api#Unit' : target);
  if (shape.type !== 'structure') throw new BrokenModelError(`Its ${name} is not a structure.`);
  return shape;
}

/** A call has one request and one answer. */
function refuseStreams(input: ModelShape, output: ModelShape, model: Model): void {
  for (const member of [...input.members, ...output.members]) {
    const target = model.shape(member.target);
    if (target.type === 'union' && (target.traits.streaming !== undefined || member.traits.streaming !== undefined))
      throw new BrokenModelError('It streams events, which a call of a tool does not.');
  }
}

function routeOf(
  { traits }: ModelShape,
  { name }: Protocol,
): { method: string; path: string; query: [string, string][] } {
  if (name === 'awsJson' || name === 'awsQuery') return { method: 'POST', path: '/', query: [] };
  const { http } = traits;
  if (
    !isObject(http) ||
    typeof http.method !== 'string' ||
    typeof http.uri !== 'string' ||
    !/^[A-Z]{1,20}$/.test(http.method)
  )
    throw new BrokenModelError('It has no trait "http", which says how it is called.');
  const [path = '', search = ''] = http.uri.split('?', 2);
  if (
    !path.startsWith('/') ||
    /[\\#]/.test(path) ||
    path.split('/').some((segment) => segment === '.' || segment === '..')
  )
    throw new BrokenModelError(`Its URI ${http.uri.slice(0, 200)} is not a path.`);
  const query = search.split('&').flatMap((pair): [string, string][] => {
    const [key = '', value = ''] = pair.split('=', 2);
    return key === '' ? [] : [[key, value]];
  });
  return { method: http.method, path, query };
}

function greedyLabels(path: string): Set<string> {
  return new Set([...path.matchAll(/\{([^{}+]+)\+\}/g)].map(([, name = '']) => name));
}

/** A prefix of the host that the model fixes; one that arguments would choose is not for a tool. */
function withHostPrefix(endpoint: string, { traits: { endpoint: trait } }: ModelShape): string {
  const prefix = isObject(trait) ? trait.hostPrefix : undefined;
  if (typeof prefix !== 'string') return endpoint;
  if (!/^[A-Za-z0-9.-]+$/.test(prefix)) throw new BrokenModelError('Its arguments would choose a part of the host.');
  const url = new URL(endpoint);
  return `${url.protocol}//${prefix}${url.host}${url.pathname === '/' ? '' : url.pathname}`;
}

interface CompiledInput {
  schema: JsonObjectSchema;
  parameters: HttpParameter[];
  body?: HttpBody;
}

function inputOf(
  operation: ModelShape,
  input: ModelShape,
  { bound, payload, body: members }: Bindings,
  shapes: WireShapes,
  deps: SmithyOperationDeps,
): CompiledInput {
  const uses = new Set<string>();
  const fields = deps.input.properties(members, uses);
  const single = [
    ...bound.map(({ member, timestamps }) => ({ member, timestamps })),
    ...(payload ? [{ member: payload, timestamps: deps.protocol.timestamps }] : []),
  ];
  const properties: [string, JsonSchema][] = single.map(({ member, timestamps }) => [
    member.name,
    deps.input.member(member, timestamps, uses),
  ]);
  const required = single
    .filter(({ member: { traits } }) => isRequired(traits) || traits.httpLabel !== undefined)
    .map(({ member }) => member.name);
  const names = members.map((member) => ({ member, argument: freeName(deps.input.nameOf(member), properties) }));
  properties.push(
    ...names.map(({ member, argument }): [string, JsonSchema] => [
      argument,
      fields.properties[deps.input.nameOf(member)] ?? true,
    ]),
  );
  required.push(...names.filter(({ member }) => isRequired(member.traits)).map(({ argument }) => argument));
  const $defs = deps.input.definitions(uses, deps.limits.inputSchemaBytes);
  if (!$defs)
    throw new BrokenModelError(`The schema of its arguments is larger than ${deps.limits.inputSchemaBytes} bytes.`);
  const schema: JsonObjectSchema = {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required: [...new Set(required)] } : {}),
    additionalProperties: false,
    ...(Object.keys($defs).length > 0 ? { $defs } : {}),
  };
  const body = payload ? payloadBody(payload, shapes, deps) : fieldsBody(operation, input, names, shapes, deps);
  return { schema, parameters: bound.map(({ parameter }) => parameter), ...(body ? { body } : {}) };
}

/** A field of the body that is called like a parameter beside it (by its `jsonName`). */
function freeName(wanted: string, taken: readonly [string, JsonSchema][]): string {
  return taken.some(([name]) => name === wanted) ? `${wanted}_body` : wanted;
}

function payloadBody(payload: Member, shapes: WireShapes, { model, protocol }: SmithyOperationDeps): HttpBody {
  const target = model.shape(payload.target);
  const { mediaType } = { ...target.traits, ...payload.traits };
  const given = typeof mediaType === 'string' && /^[\w.+-]+\/[\w.+-]+$/.test(mediaType) ? mediaType : undefined;
  const whole = payload.name;
  if (target.type === 'blob') return { kind: 'binary', mediaType: given ?? 'application/octet-stream', whole };
  if (target.type === 'string' || target.type === 'enum')
    return { kind: 'text', mediaType: given ?? 'text/plain', whole };
  if (protocol.name !== 'restXml')
    return {
      ...{ kind: 'json', mediaType: protocol.mediaType, whole },
      ...(target.type === 'structure' ? { always: true } : {}),
    };
  return {
    kind: 'xml',
    mediaType: protocol.mediaType,
    whole,
    shape: shapes.structure('body', rootName(target, payload), target, target.members),
  };
}

function rootName(shape: ModelShape, member?: Member): string {
  const named = member?.traits.xmlName ?? shape.traits.xmlName;
  return typeof named === 'string' ? named : localName(shape.id);
}

function fieldsBody(
  operation: ModelShape,
  input: ModelShape,
  names: readonly { member: Member; argument: string }[],
  shapes: WireShapes,
  { protocol, service, input: schemas }: SmithyOperationDeps,
): HttpBody | undefined {
  const isRpc = !protocol.name.startsWith('rest');
  if (names.length === 0 && !isRpc) return undefined;
  const { mediaType } = protocol;
  if (protocol.name === 'restJson' || protocol.name === 'awsJson')
    return {
      kind: 'json',
      mediaType,
      always: true,
      fields: names.map(({ member, argument }) => ({ argument, name: schemas.nameOf(member) })),
    };
  const fields = names.map(({ member, argument }) => ({ argument, name: member.name }));
  const shape = shapes.structure(
    'body',
    rootName(input),
    input,
    names.map(({ member }) => member),
  );
  if (protocol.name === 'restXml') return { kind: 'xml', mediaType, always: true, fields, shape };
  const { version } = service.raw;
  const constants = { Action: localName(operation.id), Version: typeof version === 'string' ? version : '' };
  return { kind: 'aws-query', mediaType, fields, shape, constants };
}

interface CompiledAnswer {
  answer: HttpTemplate['answer'];
  outputSchema?: JsonObjectSchema;
}

/** The body of the answer; what the model puts into its headers is not in the result. */
function answerOf(
  operation: ModelShape,
  output: ModelShape,
  shapes: WireShapes,
  deps: SmithyOperationDeps,
): CompiledAnswer {
  const { protocol, model, limits } = deps;
  const isRest = protocol.name.startsWith('rest');
  const inHeaders = ['httpHeader', 'httpPrefixHeaders', 'httpResponseCode'];
  const payload = isRest ? output.members.find(({ traits }) => traits.httpPayload !== undefined) : undefined;
  const target = payload ? model.shape(payload.target) : output;
  const answer = { accept: '*/*' };
  if (target.type !== 'structure' && target.type !== 'union') return { answer };
  const members =
    payload || !isRest
      ? target.members
      : target.members.filter(({ traits }) => inHeaders.every((one) => traits[one] === undefined));
  if (members.length === 0) return { answer };
  const uses = new Set<string>();
  const { properties } = deps.output.properties(members, uses);
  const $defs = deps.output.definitions(uses, limits.outputSchemaBytes);
  const schema: JsonObjectSchema = {
    type: 'object',
    properties,
    ...($defs && Object.keys($defs).length > 0 ? { $defs } : {}),
  };
  const fits = $defs !== undefined && JSON.stringify(schema).length <= limits.outputSchemaBytes;
  const isXml = protocol.name === 'restXml' || protocol.name === 'awsQuery';
  const name = localName(operation.id);
  return {
    answer: {
      ...answer,
      ...(isXml ? { shape: shapes.structure('answer', rootName(target, payload), target, members) } : {}),
      ...(protocol.name === 'awsQuery' ? { within: [`${name}Response`, `${name}Result`] } : {}),
      ...(operation.traits['aws.customizations#s3UnwrappedXmlOutput'] === undefined ? {} : { unwrapped: true }),
    },
    ...(fits ? { outputSchema: schema } : {}),
  };
}

function hints({ traits }: ModelShape, method: string, isRest: boolean): ToolHints {
  const byMethod = hintsOf(isRest ? method : 'POST');
  const readOnly = traits.readonly !== undefined || byMethod.readOnly;
  return {
    readOnly,
    destructive: !readOnly,
    idempotent: readOnly || traits.idempotent !== undefined || byMethod.idempotent,
  };
}
