import { readFileSync } from 'node:fs';
import type { DocumentValue } from '@agentplatform/contract';
import { type Dispatcher, request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  buildRequest,
  type HttpTool,
  readAnswer,
} from '../../packages/platform/src/services/gateway/http-tools/index.ts';
import { compileOpenApi } from '../../packages/platform/src/services/gateway/openapi/index.ts';
import {
  brackets,
  decodedPairs,
  type Received,
  startBackend,
} from '../../packages/platform/src/services/gateway/openapi/testing/backend.ts';
import { Samples } from '../../packages/platform/src/services/gateway/openapi/testing/sample-arguments.ts';
import { compileArguments, type JsonObject } from '../../packages/platform/src/services/gateway/tools/index.ts';
import { atPointer, isObject, own } from '../../packages/platform/src/services/gateway/tools/json-pointer.ts';
import { type DocumentPath, publicDocument } from '../support/public-documents.ts';

const SOURCES: [name: string, path: DocumentPath, operations: number][] = [
  ['GitHub', 'generated/api.github.com.json', 1223],
  ['Stripe', 'api/stripe.com.json', 452],
  ['Kubernetes', 'api/kubernetes.io.json', 845],
  ['Jira', 'api/atlassian.com/jira.json', 499],
  ['Twilio', 'api/twilio.com/api.json', 195],
];

const DOCUMENTS: [name: string, file: string, operations: number][] = [];
for (const [name, path, operations] of SOURCES) {
  const published = await publicDocument(path);
  if (published) DOCUMENTS.push([name, published.file, operations]);
}
const figma = await publicDocument('openapi/openapi.yaml');

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];
const CALLED = 100;

/** An operation as the document itself has it, found by its method and path. */
interface Declared {
  parameters: { name: string; in: string; style?: string; explode?: boolean }[];
  mediaTypes: string[];
  encoding: JsonObject;
}

function declaredIn(document: DocumentValue, method: string, path: string): Declared {
  const follow = (value: DocumentValue | undefined): JsonObject => {
    const target = isObject(value) && typeof value.$ref === 'string' ? atPointer(document, value.$ref.slice(1)) : value;
    return isObject(target) ? target : {};
  };
  const paths = isObject(document) && isObject(document.paths) ? document.paths : {};
  const item = follow(own(paths, path));
  const operation = follow(own(item, method.toLowerCase()));
  const lists = [item.parameters, operation.parameters].map((list) => (Array.isArray(list) ? list : []));
  const parameters = new Map(
    lists
      .flat()
      .map(follow)
      .map((one) => [`${one.in} ${one.name}`, one]),
  );
  const content = follow(follow(operation.requestBody).content);
  const [media] = Object.values(content);
  return {
    parameters: [...parameters.values()].map(({ name, in: place, style, explode }) => ({
      name: String(name),
      in: String(place),
      ...(typeof style === 'string' ? { style } : {}),
      ...(typeof explode === 'boolean' ? { explode } : {}),
    })),
    mediaTypes: Object.keys(content),
    encoding: follow(follow(media).encoding),
  };
}

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Names and values that a query must have, by what the document says of its parameters. */
function expectedQuery({ parameters }: Declared, values: Map<string, unknown>): [string, string][] {
  return parameters.flatMap(({ name, in: place, style = 'form', explode = style === 'form' }): [string, string][] => {
    const value = values.get(`${place} ${name}`);
    if (place !== 'query' || value === undefined || value === null) return [];
    if (style === 'deepObject') return brackets(name, value);
    if (Array.isArray(value))
      return explode ? value.map((item) => [name, text(item)]) : [[name, value.map(text).join(',')]];
    if (isObject(value)) return Object.entries(value).map(([key, item]) => [key, text(item)]);
    return [[name, text(value)]];
  });
}

function expectPath(received: Received, path: string, values: Map<string, unknown>): void {
  const sent = (received.target.split('?')[0] ?? '').split('/').map(decodeURIComponent);
  // Segments are decoded one by one: a slash in a value has to be in its own.
  const wanted = path
    .split('/')
    .map((segment) => segment.replace(/\{([^{}]+)\}/g, (_, name: string) => text(values.get(`path ${name}`))));
  expect(sent).toEqual(wanted);
}

async function expectBody(received: Received, declared: Declared, tool: HttpTool, args: JsonObject): Promise<void> {
  const { body } = tool.http;
  if (!body) return expect(received.body).toHaveLength(0);
  const given = (body.fields ?? []).flatMap(({ argument, name }): [string, DocumentValue][] => {
    const value = own(args, argument);
    return value === undefined ? [] : [[name, value]];
  });
  const value: unknown = body.whole === undefined ? Object.fromEntries(given) : own(args, body.whole);
  if (value === undefined || (isObject(value) && Object.keys(value).length === 0 && received.body.length === 0)) return;
  const type = received.headers['content-type'] ?? '';
  expect(declared.mediaTypes.some((one) => one.includes('*') || type.startsWith(one.split(';')[0] ?? ''))).toBe(true);
  if (type.includes('json')) expect(JSON.parse(received.body.toString())).toEqual(value);
  else if (type.includes('urlencoded'))
    expect(decodedPairs(received.body.toString())).toEqual(expectedForm(declared, value));
  else if (type.includes('multipart')) await expectParts(received, value);
  else if (body.kind === 'binary') expect(received.body.toString('base64')).toBe(value);
  else expect(received.body.toString()).toBe(text(value));
}

function expectedForm({ encoding }: Declared, value: unknown): [string, string][] {
  return Object.entries(isObject(value) ? value : {}).flatMap(([name, one]): [string, string][] => {
    const said = own(encoding, name);
    if (isObject(said) && said.style === 'deepObject') return brackets(name, one);
    if (Array.isArray(one)) return one.map((item) => [name, text(item)]);
    return [[name, one === null ? '' : text(one)]];
  });
}

async function expectParts(received: Received, value: unknown): Promise<void> {
  const form = await new Response(new Uint8Array(received.body), {
    headers: { 'content-type': received.headers['content-type'] ?? '' },
  }).formData();
  for (const [name, one] of Object.entries(isObject(value) ? value : {})) {
    const parts = await Promise.all(
      form
        .getAll(name)
        .map(async (part) =>
          typeof part === 'string' ? part : Buffer.from(await part.arrayBuffer()).toString('base64'),
        ),
    );
    const wanted = (Array.isArray(one) ? one : [one]).map(text);
    expect(parts).toEqual(wanted);
  }
}

let backend: Awaited<ReturnType<typeof startBackend>>;
beforeAll(async () => {
  backend = await startBackend();
});
afterAll(async () => await backend[Symbol.asyncDispose]());

const methodOf = (method: string): Dispatcher.HttpMethod => {
  const known: Dispatcher.HttpMethod[] = ['GET', 'PUT', 'POST', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH'];
  const found = known.find((one) => one === method);
  if (found === undefined) throw new Error(`No method ${method}`);
  return found;
};

async function call(tool: HttpTool, args: JsonObject): Promise<void> {
  const { method, url, headers, body } = buildRequest(
    { ...tool.http, server: `${backend.url}${new URL(tool.http.server).pathname.replace(/\/$/, '')}` },
    args,
  );
  const answer = await request(url, { method: methodOf(method), headers, body: body ? Buffer.from(body) : null });
  const result = await readAnswer(
    tool,
    { status: answer.statusCode, headers: answer.headers, body: answer.body },
    { maxBytes: 1_000_000, mask: [] },
  );
  if (result.isError) expect(tool.http.answer.wrapped).toBe(true);
}

describe.each(DOCUMENTS)('the document of %s', (_, file, count) => {
  const source = readFileSync(file, 'utf8');
  const document: DocumentValue = JSON.parse(source);
  const compiled = compileOpenApi({ text: source }, { target: 'target' });

  it('is accounted for, operation by operation', async () => {
    const { tools, leftOut, operations } = await compiled;
    const paths = isObject(document) && isObject(document.paths) ? Object.values(document.paths) : [];
    const inDocument = paths.filter(isObject).flatMap((item) => METHODS.filter((method) => item[method] !== undefined));
    expect(operations).toBe(count);
    expect(inDocument).toHaveLength(count);
    expect(tools.length + leftOut.length).toBe(count);
    expect(leftOut).toEqual([]);
    expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length);
  });

  it('has schemas that stay inside themselves', async () => {
    for (const { inputSchema, outputSchema = true } of (await compiled).tools)
      for (const schema of [inputSchema, outputSchema])
        for (const [, name = ''] of JSON.stringify(schema).matchAll(/"\$ref":"#\/\$defs\/([^"]+)"/g))
          expect(isObject(schema) && isObject(schema.$defs) && Object.hasOwn(schema.$defs, name)).toBe(true);
  });

  it(`is what a server sees of ${CALLED} calls at random`, async () => {
    const { tools } = await compiled;
    const chosen = tools
      .map((tool, index) => ({ tool, at: Math.imul(index + 1, 2654435761) >>> 0 }))
      .sort((a, b) => a.at - b.at)
      .slice(0, CALLED);
    let called = 0;
    for (const [index, { tool }] of chosen.entries()) {
      const args = new Samples(tool.inputSchema, index).of(tool.inputSchema);
      if (!isObject(args)) throw new Error(`No arguments for ${tool.name}`);
      expect(compileArguments(tool.inputSchema)(args), `${tool.name} ${JSON.stringify(args)}`).toEqual([]);
      await call(tool, args);
      const received = backend.last();
      const path = decodeURI(tool.http.path);
      const declared = declaredIn(document, tool.http.method, path);
      const values = new Map(
        tool.http.parameters.map(({ argument, name, in: place }) => [`${place} ${name}`, own(args, argument)]),
      );
      expect(received.method).toBe(tool.http.method);
      const prefix = new URL(tool.http.server).pathname.replace(/\/$/, '');
      expectPath({ ...received, target: received.target.slice(prefix.length) }, path, values);
      expect(decodedPairs(received.target.split('?')[1] ?? '')).toEqual(expectedQuery(declared, values));
      for (const { name, in: place } of declared.parameters) {
        const value = values.get(`${place} ${name}`);
        if (place === 'header' && value !== undefined) expect(received.headers[name.toLowerCase()]).toBe(text(value));
      }
      await expectBody(received, declared, tool, args);
      called += 1;
    }
    expect(called).toBe(CALLED);
  });
});

it('no document is left out: each of them could be had', () => {
  const there = [...DOCUMENTS.map(([name]) => name), ...(figma ? ['Figma'] : [])];
  expect([...SOURCES.map(([name]) => name), 'Figma'].filter((name) => !there.includes(name))).toEqual([]);
});

it.skipIf(!figma)('the document of Figma, which is YAML and OpenAPI 3.1, is accounted for', async () => {
  const source = readFileSync(figma?.file ?? '', 'utf8');
  const { tools, leftOut, operations } = await compileOpenApi({ text: source }, { target: 'figma' });
  expect(operations).toBe(54);
  expect(tools.length + leftOut.length).toBe(54);
  expect(leftOut).toEqual([]);
});
