import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  bodyRule,
  type DocumentValue,
  decodeRequest,
  encodeError,
  encodeResponse,
  isErrorCode,
  matchRoute,
  type OperationName,
  type Outputs,
  operations,
  ServiceError,
  type WireResponse,
} from '../../packages/contract/src/index.ts';
import { contractModel } from '../../packages/contract/src/model.ts';
import { comparable } from '../../packages/contract/test/comparable.ts';
import { generatedCases, settled } from '../support/generated-cases.ts';
import { testPython } from '../support/python.ts';

const script = fileURLToPath(new URL('../support/boto3_exchange.py', import.meta.url));
const seed = 20261121;
/** Cases per operation, each of them an input and an output. */
const runs = 3;

const names = Object.keys(operations) as OperationName[];
const cases = generatedCases(contractModel().planes);
const services = { data: 'bedrock-agentcore', control: 'bedrock-agentcore-control', models: 'bedrock-runtime' };

interface PythonResult {
  output?: Record<string, unknown>;
  error?: { class: string; response: Record<string, unknown> };
  request: { method: string; url: string; headers: Record<string, string>; body: string };
}

/** boto3 sends whole seconds, and its JSON has no NaN: what it cannot say is not generated for it. */
function sayable(value: unknown): unknown {
  if (value instanceof Date) return new Date(Math.floor(value.getTime() / 1000) * 1000);
  if (typeof value === 'number') return Number.isFinite(value) ? value : 0;
  if (Array.isArray(value)) return value.map(sayable);
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, sayable(member)]));
}

function tag(value: unknown): unknown {
  if (value instanceof Date) return { $date: value.getTime() };
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString('base64') };
  if (Array.isArray(value)) return value.map(tag);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, tag(member)]));
}

function untag(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(untag);
  if (typeof value !== 'object' || value === null) return value;
  if ('$date' in value) return new Date(Number(value.$date));
  if ('$bytes' in value) return Buffer.from(String(value.$bytes), 'base64');
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, untag(member)]));
}

async function spelledOut({ status, headers, body }: WireResponse): Promise<object> {
  const parts: Uint8Array[] = [];
  if (typeof body === 'string') parts.push(Buffer.from(body));
  else if (body instanceof Uint8Array) parts.push(body);
  else if (body !== undefined) for await (const part of body) parts.push(part);
  return { status, headers, body: Buffer.concat(parts).toString('base64') };
}

async function received({ request }: PythonResult): Promise<{ operation: OperationName; input: unknown }> {
  const url = new URL(request.url);
  const route = matchRoute(request.method, url.pathname);
  assert.ok(route !== undefined, `no route for ${request.method} ${url.pathname}`);
  const headers = Object.fromEntries(Object.entries(request.headers).map(([key, value]) => [key.toLowerCase(), value]));
  const body = Buffer.from(request.body, 'base64');
  const input = decodeRequest(route.operation, { labels: route.labels, query: url.search.slice(1), headers, body });
  return { operation: route.operation, input: await settled(input as unknown as Record<string, unknown>) };
}

const python = await testPython();

describe.skipIf(python === undefined)('codec against boto3', () => {
  const generated = names.flatMap((name) => {
    const pairs = fc.sample(fc.tuple(cases.input(name), cases.output(name)), { numRuns: runs, seed });
    return pairs.map(([input, output]) => ({
      name,
      input: sayable(input) as Record<string, unknown>,
      output: sayable(output) as Record<string, unknown>,
    }));
  });
  const failures = names.flatMap((name) => operations[name].errors.slice(0, 20).map((code) => ({ name, code })));
  let results: PythonResult[] = [];
  let errorResults: PythonResult[] = [];

  beforeAll(async () => {
    const calls = generated.map(async ({ name, input, output }) => ({
      service: services[operations[name].plane],
      operation: name,
      input: tag(input),
      response: await spelledOut(encodeResponse(name, cases.streamed(name, output) as unknown as Outputs[typeof name])),
    }));
    const failing = failures.map(async ({ name, code }) => ({
      service: services[operations[name].plane],
      operation: name,
      input: tag(sayable(fc.sample(cases.input(name), { numRuns: 1, seed })[0])),
      response: await spelledOut(encodeError(errorOf(name, code))),
    }));
    const all = (await python?.run(script, { cases: await Promise.all([...calls, ...failing]) })) as PythonResult[];
    results = all.slice(0, calls.length);
    errorResults = all.slice(calls.length);
  }, 400_000);

  function errorOf(name: OperationName, code: string): ServiceError {
    assert.ok(isErrorCode(code));
    const [members] = fc.sample(cases.shape(operations[name].plane, code), { numRuns: 1, seed });
    const { message: _, ...rest } = members as Record<string, DocumentValue>;
    return new ServiceError(code, `No ${name} today.`, { members: rest, remedy: 'Try tomorrow.' });
  }

  it(`decodes what boto3 sends, in ${generated.length} calls of all operations`, async () => {
    expect(results).toHaveLength(generated.length);
    for (const [index, { name, input }] of generated.entries()) {
      const result = results[index];
      assert.ok(result !== undefined);
      assert.deepStrictEqual(await received(result), { operation: name, input: comparable(input) }, name);
    }
  });

  it('encodes what boto3 reads', async () => {
    for (const [index, { name, output }] of generated.entries()) {
      const expected = await settled({ ...cases.streamed(name, output), ...cases.status(name) });
      assert.deepStrictEqual(comparable(untag(results[index]?.output)), expected, name);
    }
  });

  it(`makes boto3 raise its own class for each of the ${failures.length} errors of the operations`, () => {
    for (const [index, { name, code }] of failures.entries()) {
      const { members } = errorOf(name, code);
      const { error } = errorResults[index] ?? {};
      assert.equal(error?.class, code, `${name} ${code}`);
      expect(error?.response).toMatchObject({
        Error: { Code: code, Message: `No ${name} today. Try tomorrow.` },
        ...members,
      });
    }
  });

  it('keeps bodies that stream apart from those that are collected', () => {
    expect(names.filter((name) => bodyRule(name).streams)).toEqual([
      'InvokeAgentRuntime',
      'InvokeModel',
      'InvokeModelWithResponseStream',
    ]);
  });
});
