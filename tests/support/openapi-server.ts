import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { DocumentValue } from '@agentplatform/contract';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { Samples } from '../../packages/platform/src/services/gateway/openapi/testing/sample-arguments.ts';
import { atPointer, isObject, own } from '../../packages/platform/src/services/gateway/tools/json-pointer.ts';

type JsonObject = { [key: string]: DocumentValue | undefined };

/** One request as the document judges it. */
export interface Judged {
  operationId: string;
  /** What the document does not allow; empty for a request that it does. */
  problems: string[];
  /** What of it was not held against the document: cookies, and bodies that are neither JSON nor a form. */
  unjudged: string[];
}

export interface OpenApiServer {
  url: string;
  /** Of all requests so far. */
  judged: Judged[];
  [Symbol.asyncDispose](): Promise<void>;
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

interface Parameter {
  name: string;
  in: string;
  required: boolean;
  style: string;
  explode: boolean;
  schema: DocumentValue | undefined;
  /** Where it stands, as a JSON pointer. */
  pointer: string;
  json: boolean;
}

interface Operation {
  id: string;
  method: string;
  path: RegExp;
  names: string[];
  /** More of its path is fixed. */
  literals: number;
  parameters: Parameter[];
  body: { required: boolean; media: Map<string, string> } | undefined;
  answer: { status: number; schema: DocumentValue | undefined; type: string | undefined };
}

/**
 * A server that an OpenAPI document describes: it holds each request against the document, with Ajv and readings of its own, and answers with what
 * the document says of a success. It shares no code with what made the request.
 */
export async function startOpenApiServer(document: JsonObject): Promise<OpenApiServer> {
  const read = new Document(document);
  const judged: Judged[] = [];
  const server = createServer(async (req, res) => {
    const body = await buffer(req);
    const operation = read.operationOf(req);
    if (!operation) {
      judged.push({ operationId: '', problems: [`no operation is at ${req.method} ${req.url}`], unjudged: [] });
      return void res.writeHead(404).end();
    }
    const [problems, unjudged] = [await read.judge(operation, req, body), unjudgedOf(operation, req, body)];
    judged.push({ operationId: operation.id, problems, unjudged });
    const { status, schema, type } = operation.answer;
    if (type === undefined) return void res.writeHead(status).end();
    const value = /json/.test(type) ? JSON.stringify(new Samples(document, judged.length).of(schema) ?? {}) : 'text';
    res.writeHead(status, { 'content-type': type }).end(value);
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    judged,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

function unjudgedOf({ parameters }: Operation, { headers }: IncomingMessage, body: Buffer): string[] {
  const cookies = parameters.filter((one) => one.in === 'cookie').map(({ name }) => `the cookie ${name}`);
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  return [...cookies, ...(body.length === 0 || /json|urlencoded/.test(type) ? [] : [`a body of ${type}`])];
}

class Document {
  readonly #root: JsonObject;
  readonly #operations: Operation[];
  /** Texts of a request become what a schema asks for. */
  readonly #texts: Ajv2020;
  readonly #values: Ajv2020;

  constructor(root: JsonObject) {
    this.#root = root;
    const options = {
      strict: false,
      validateFormats: false,
      validateSchema: false,
      allErrors: true,
      logger: false,
    } as const;
    this.#texts = new Ajv2020({ ...options, coerceTypes: 'array' });
    this.#values = new Ajv2020(options);
    for (const ajv of [this.#texts, this.#values]) ajv.addSchema(withNumberBounds(root) as object, 'document');
    this.#operations = this.#read();
  }

  operationOf({ method = '', url = '' }: IncomingMessage): Operation | undefined {
    const [path = ''] = url.split('?');
    return this.#operations
      .filter((one) => one.method === method && one.path.test(path))
      .sort((a, b) => b.literals - a.literals)[0];
  }

  async judge(operation: Operation, req: IncomingMessage, body: Buffer): Promise<string[]> {
    const [path = '', query = ''] = (req.url ?? '').split('?');
    const inPath = operation.path.exec(path) ?? [];
    const pairs = pairsOf(query);
    const problems: string[] = [];
    const taken = new Set<string>();
    for (const parameter of operation.parameters) {
      const { name, in: place, required, pointer, json } = parameter;
      const value =
        place === 'path'
          ? this.#single(parameter, decodeURIComponent(inPath[operation.names.indexOf(name) + 1] ?? ''))
          : place === 'query'
            ? this.#ofQuery(parameter, pairs, taken)
            : place === 'header'
              ? this.#single(parameter, req.headers[name.toLowerCase()]?.toString())
              : undefined;
      if (value === undefined && required && place !== 'cookie') problems.push(`${place} ${name} is missing`);
      if (value === undefined || parameter.schema === undefined) continue;
      problems.push(...this.#fits(json ? this.#values : this.#texts, pointer, value, `${place} ${name}`));
    }
    for (const [name] of pairs)
      if (!taken.has(name)) problems.push(`the query has ${name}, which the document has not`);
    return [...problems, ...(await this.#judgeBody(operation, req, body))];
  }

  async #judgeBody({ body: declared }: Operation, req: IncomingMessage, body: Buffer): Promise<string[]> {
    if (!declared) return body.length > 0 ? ['there is a body, and the document has none'] : [];
    if (body.length === 0) return declared.required ? ['the body is missing'] : [];
    const type = (req.headers['content-type'] ?? '').split(';')[0] ?? '';
    const [name, pointer] = [...declared.media].find(([one]) => one.split(';')[0] === type || one.includes('*')) ?? [];
    if (name === undefined || pointer === undefined) return [`the body is ${type}, which the document has not`];
    if (type.includes('json')) return this.#fits(this.#values, pointer, JSON.parse(body.toString()), 'the body');
    if (type.includes('urlencoded'))
      return this.#fits(this.#texts, pointer, nested(pairsOf(body.toString())), 'the body');
    return [];
  }

  #fits(ajv: Ajv2020, pointer: string, value: unknown, what: string): string[] {
    // Two schemas of the document may be one: what is coerced is a copy.
    const check: ValidateFunction = ajv.compile({
      type: 'object',
      properties: { value: { $ref: `document#${pointer}` } },
    });
    if (check({ value: structuredClone(value) })) return [];
    return (check.errors ?? []).map(({ instancePath, message }) => `${what}${instancePath} ${message}`);
  }

  #single({ schema, json }: Parameter, text: string | undefined): unknown {
    if (text === undefined) return undefined;
    if (json) return JSON.parse(text);
    return this.#isArray(schema) ? text.split(',') : text;
  }

  #ofQuery(parameter: Parameter, pairs: readonly [string, string][], taken: Set<string>): unknown {
    const { name, style, explode, schema, json } = parameter;
    if (style === 'deepObject' || this.#hasBrackets(name, pairs)) {
      const own = pairs.filter(([one]) => one === name || one.startsWith(`${name}[`));
      for (const [one] of own) taken.add(one);
      return own.length === 0 ? undefined : (nested(own) as Record<string, unknown>)[name];
    }
    if (explode && this.#isObject(schema)) {
      const properties = Object.keys(this.#propertiesOf(schema));
      const own = pairs.filter(([one]) => properties.includes(one));
      for (const [one] of own) taken.add(one);
      return own.length === 0 ? undefined : Object.fromEntries(own);
    }
    const values = pairs.filter(([one]) => one === name).map(([, value]) => value);
    if (values.length === 0) return undefined;
    taken.add(name);
    if (json) return JSON.parse(values[0] ?? '');
    if (!this.#isArray(schema)) return values[0];
    return explode ? values : (values[0] ?? '').split(',');
  }

  #hasBrackets(name: string, pairs: readonly [string, string][]): boolean {
    return pairs.some(([one]) => one.startsWith(`${name}[`)) && !pairs.some(([one]) => one === name);
  }

  #typesOf(schema: DocumentValue | undefined): unknown[] {
    const followed = this.#follow(schema);
    const { type } = followed;
    const parts = ['oneOf', 'anyOf', 'allOf'].flatMap((keyword) => followed[keyword] ?? []);
    return [...(Array.isArray(type) ? type : [type]), ...parts.flatMap((one) => this.#typesOf(one as DocumentValue))];
  }

  #isArray(schema: DocumentValue | undefined): boolean {
    const types = this.#typesOf(schema).filter((type) => type !== undefined);
    return types.length > 0 && types.every((type) => type === 'array' || type === 'null');
  }

  #isObject(schema: DocumentValue | undefined): boolean {
    return this.#typesOf(schema).includes('object');
  }

  #propertiesOf(schema: DocumentValue | undefined): JsonObject {
    const { properties } = this.#follow(schema);
    return isObject(properties) ? properties : {};
  }

  #follow(value: DocumentValue | undefined): JsonObject {
    if (!isObject(value)) return {};
    return typeof value.$ref === 'string' ? this.#follow(atPointer(this.#root, value.$ref.slice(1))) : value;
  }

  /** Where something stands once references are followed. */
  #pointer(value: DocumentValue | undefined, pointer: string): string {
    return isObject(value) && typeof value.$ref === 'string'
      ? this.#pointer(atPointer(this.#root, value.$ref.slice(1)), value.$ref.slice(1))
      : pointer;
  }

  #read(): Operation[] {
    const paths = isObject(this.#root.paths) ? this.#root.paths : {};
    return Object.entries(paths).flatMap(([template, raw]) => {
      const item = this.#follow(raw);
      const at = this.#pointer(raw, `/paths/${escaped(template)}`);
      return METHODS.flatMap((method) => {
        const operation = own(item, method);
        return isObject(operation) ? [this.#operation({ template, item, at, method, operation })] : [];
      });
    });
  }

  #operation({
    template,
    item,
    at,
    method,
    operation,
  }: {
    template: string;
    item: JsonObject;
    at: string;
    method: string;
    operation: JsonObject;
  }): Operation {
    const names: string[] = [];
    const source = template
      .split(/(\{[^{}]+\})/)
      .map((part) => {
        if (!part.startsWith('{')) return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
        names.push(part.slice(1, -1));
        return '([^/]+?)';
      })
      .join('');
    const parameters = new Map<string, Parameter>();
    for (const [list, from] of [
      [item.parameters, `${at}/parameters`],
      [operation.parameters, `${at}/${method}/parameters`],
    ] as const)
      for (const [index, one] of (Array.isArray(list) ? list : []).entries()) {
        const parameter = this.#parameter(one, `${from}/${index}`);
        parameters.set(`${parameter.in} ${parameter.name}`, parameter);
      }
    return {
      ...{ id: String(operation.operationId), method: method.toUpperCase(), names },
      path: new RegExp(`^${source}$`),
      literals: template.replace(/\{[^{}]+\}/g, '').length,
      parameters: [...parameters.values()],
      body: this.#body(operation.requestBody, `${at}/${method}/requestBody`),
      answer: this.#answer(operation.responses),
    };
  }

  #parameter(raw: DocumentValue, pointer: string): Parameter {
    const { name, in: place, required, schema, content, style, explode } = this.#follow(raw);
    const at = this.#pointer(raw, pointer);
    const [media] = Object.keys(isObject(content) ? content : {});
    const written = typeof style === 'string' ? style : place === 'query' || place === 'cookie' ? 'form' : 'simple';
    const inside = media === undefined ? undefined : this.#follow(own(content as JsonObject, media)).schema;
    return {
      ...{ name: String(name), in: String(place), required: required === true, style: written },
      explode: typeof explode === 'boolean' ? explode : written === 'form',
      schema: schema ?? inside,
      pointer: media === undefined ? `${at}/schema` : `${at}/content/${escaped(media)}/schema`,
      json: media?.includes('json') ?? false,
    };
  }

  #body(raw: DocumentValue | undefined, pointer: string): Operation['body'] {
    if (!isObject(raw)) return undefined;
    const { content, required } = this.#follow(raw);
    const at = this.#pointer(raw, pointer);
    const media = Object.keys(isObject(content) ? content : {}).map((type): [string, string] => [
      type,
      `${at}/content/${escaped(type)}/schema`,
    ]);
    return { required: required === true, media: new Map(media) };
  }

  #answer(raw: DocumentValue | undefined): Operation['answer'] {
    const responses = isObject(raw) ? raw : {};
    const [status = '200', response] = Object.entries(responses).find(([code]) => /^2\d\d$/.test(code)) ?? [];
    const { content } = this.#follow(response);
    const types = Object.keys(isObject(content) ? content : {});
    const type = types.find((one) => one.includes('json')) ?? types[0];
    const schema = type === undefined ? undefined : this.#follow(own(content as JsonObject, type)).schema;
    return { status: Number(status), schema, type: type?.includes('*') ? 'application/json' : type };
  }
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function pairsOf(text: string): [string, string][] {
  if (text === '') return [];
  return text.split('&').map((pair) => {
    const [name = '', value = ''] = pair.split(/=(.*)/s).map((part) => decodeURIComponent(part.replaceAll('+', ' ')));
    return [name, value];
  });
}

/** What names with brackets say: `a[b][0]=c` is `{ a: { b: ['c'] } }`. A name that comes again makes a list. */
function nested(pairs: readonly [string, string][]): unknown {
  const root: Record<string, unknown> = {};
  for (const [name, value] of pairs) {
    const keys = name.replace(/\]/g, '').split('[');
    let at = root;
    for (const key of keys.slice(0, -1)) {
      at[key] ??= {};
      at = at[key] as Record<string, unknown>;
    }
    const last = keys.at(-1) ?? '';
    if (Object.hasOwn(at, last)) at[last] = [at[last], value].flat();
    else at[last] = value;
  }
  return listed(root);
}

function listed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, one]): [string, unknown] => [key, listed(one)]);
  const isList = entries.length > 0 && entries.every(([key], at) => key === String(at));
  return isList ? entries.map(([, one]) => one) : Object.fromEntries(entries);
}

/** As Draft 2020-12 has bounds and null, of which OpenAPI 3.0 says it otherwise. */
function withNumberBounds(value: DocumentValue | undefined): unknown {
  if (Array.isArray(value)) return value.map(withNumberBounds);
  if (!isObject(value)) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withNumberBounds(one)]));
  for (const [exclusive, bound] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (typeof copy[exclusive] !== 'boolean') continue;
    if (copy[exclusive]) {
      copy[exclusive] = copy[bound];
      delete copy[bound];
    } else delete copy[exclusive];
  }
  return copy;
}
