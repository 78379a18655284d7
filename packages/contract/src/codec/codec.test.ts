import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FieldProblem, ServiceError } from '../errors.ts';
import { operations } from '../generated/operations.ts';
import type { Inputs, OperationName } from '../generated/types.ts';
import { bodyRule, checkInput, decodeRequest, encodeResponse, outputProblems } from './codec.ts';
import type { WireRequest } from './wire-request.ts';

const names = Object.keys(operations) as OperationName[];

function problems(name: OperationName, request: Partial<WireRequest>): FieldProblem[] {
  try {
    decodeRequest(name, { labels: {}, query: '', headers: {}, ...request });
  } catch (error) {
    if (error instanceof ServiceError) return (error.members.fieldList ?? []) as unknown as FieldProblem[];
    throw error;
  }
  return [];
}

const event = (body: string): FieldProblem[] =>
  problems('CreateEvent', { labels: { memoryId: 'memory-a1b2c3d4e5' }, body: Buffer.from(body) });

const goodEvent = (payload: string): string => `{"actorId":"a","eventTimestamp":1,"payload":[{"blob":${payload}}]}`;

describe('decoding bad input', () => {
  it.each([
    ['{', 'is not JSON: it goes wrong at position 1 (line 1 column 2)'],
    ['', undefined],
    ['nul', 'is not JSON'],
    ['{"a":1}garbage-secret', 'is not JSON: it goes wrong at position 7 (line 1 column 8)'],
    ['\ufeff{}', undefined],
  ])('body %j', (body, message) => {
    const found = event(body).filter((problem) => problem.name === 'body');
    expect(found).toEqual(message === undefined ? [] : [{ name: 'body', message }]);
  });

  it('tells nothing of what the body held', () => {
    const body = Buffer.from('{"apiKey": hunter2}');
    expect(() => decodeRequest('CreateApiKeyCredentialProvider', { labels: {}, query: '', headers: {}, body })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
    );
  });

  it('refuses a body that is not UTF-8', () => {
    const body = Buffer.concat([Buffer.from('{"actorId":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    expect(problems('CreateEvent', { body })).toContainEqual({ name: 'body', message: 'is not UTF-8 text' });
  });

  it.each(['null', '[]', '"text"', '7', 'true'])('refuses the body %s where an object belongs', (body) => {
    const message = body === 'null' ? 'is required' : 'must be an object';
    expect(
      event(body)
        .map((p) => p.message)
        .join(),
    ).toContain(message);
  });

  it('leaves out members that are null and members that it does not know', () => {
    const body = Buffer.from(
      goodEvent('1').replace('{', '{"sessionId":null,"unknown":{"x":[]},"__proto__":{"admin":true},'),
    );
    const labels = { memoryId: 'memory-a1b2c3d4e5' };
    const input = decodeRequest('CreateEvent', { labels, query: '', headers: {}, body });
    expect(Object.keys(input).sort()).toEqual(['actorId', 'eventTimestamp', 'memoryId', 'payload']);
    expect(Object.getPrototypeOf(input)).toBe(Object.prototype);
    expect('admin' in input).toBe(false);
  });

  it('refuses members that it does not know where they, or what they stand in, confine', () => {
    const known = { agentRuntimeName: 'a', roleArn: 'arn:aws:iam::123456789012:role/r' };
    const runtime = (more: object) =>
      problems('CreateAgentRuntime', { body: Buffer.from(JSON.stringify({ ...known, ...more })) })
        .filter(({ message }) => message.startsWith('is not known here (botocore '))
        .map(({ name }) => name);
    const authorizer = { discoveryUrl: 'https://x/.well-known/openid-configuration', requiredDevice: 'phone' };
    expect(runtime({ authorizerConfiguration: { customJWTAuthorizer: authorizer } })).toEqual([
      'authorizerConfiguration.customJWTAuthorizer.requiredDevice',
    ]);
    expect(runtime({ networkConfiguration: { networkMode: 'PUBLIC', mode: {} } })).toEqual([
      'networkConfiguration.mode',
    ]);
    expect(runtime({ egressPolicy: {}, maxLimit: 1, deniedTools: [], kmsKeyArn: 'k' })).toEqual([
      'egressPolicy',
      'maxLimit',
      'deniedTools',
      'kmsKeyArn',
    ]);
    // Whoever sends these is given less than he asked for, and nobody else anything.
    expect(runtime({ colour: 'blue', warmth: {}, theAuthor: 'x', policy: null })).toEqual([]);
    expect(runtime({ lifecycleConfiguration: { colour: 1 } })).toEqual([]);
  });

  it('refuses keys that would change a prototype behind it', () => {
    // The control: what an assignment of such a parsed value does.
    const merged = Object.assign({}, JSON.parse('{"__proto__":{"admin":true}}'));
    expect('admin' in merged).toBe(true);
    const message = 'must not have a key named __proto__';
    expect(event(goodEvent('{"a":[{"__proto__":{"admin":true}}]}'))).toEqual([{ name: 'payload[0].blob', message }]);
    const tags = Buffer.from('{"name":"x","tags":{"__proto__":"x"}}');
    expect(problems('CreateMemory', { body: tags })).toContainEqual({
      name: 'tags.__proto__',
      message: 'is not allowed as a key',
    });
  });

  it('refuses depth that would break what recurses, in documents and in recursive shapes', () => {
    const deep = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    expect(event(goodEvent(deep(50)))).toEqual([]);
    expect(event(goodEvent(deep(200)))[0]?.message).toBe('is nested deeper than 100 levels');
    expect(event(goodEvent(deep(100_000)))[0]?.message).toBe('is nested deeper than 100 levels');
    const schema = (depth: number): string =>
      `${'{"type":"object","items":'.repeat(depth)}{"type":"string"}${'}'.repeat(depth)}`;
    const target = (depth: number): FieldProblem[] =>
      problems('CreateGatewayTarget', {
        labels: { gatewayIdentifier: 'tools-a1b2c3d4e5' },
        body: Buffer.from(
          `{"name":"t","targetConfiguration":{"mcp":{"lambda":{"lambdaArn":"arn:aws:lambda:us-east-1:123456789012:function:f","toolSchema":{"inlinePayload":[{"name":"n","description":"d","inputSchema":${schema(depth)}}]}}}}}`,
        ),
      });
    expect(target(20)).toEqual([]);
    expect(target(50_000).map((p) => p.message)).toEqual(['is nested deeper than 100 levels']);
  });

  it('refuses numbers that JSON cannot carry and text that is not Unicode', () => {
    expect(event(goodEvent('[1e400]'))[0]?.message).toBe('holds a number that is too large');
    expect(event(goodEvent('"\\ud800"'))[0]?.message).toBe('holds text that is not well-formed Unicode');
    expect(event(goodEvent('1').replace('"a"', '"\\udc00"'))[0]).toEqual({
      name: 'actorId',
      message: 'must be well-formed Unicode',
    });
  });

  it('says no more of a hostile request than helps', () => {
    const payload = `[${Array.from({ length: 3000 }, () => '7').join()}]`;
    const found = event(`{"actorId":"a","eventTimestamp":1,"payload":${payload}}`);
    expect(found.length).toBeLessThanOrEqual(50);
    const tooMany = `{"actorId":"a","eventTimestamp":1,"payload":[${Array.from({ length: 101 }, () => '{}').join()}]}`;
    expect(event(tooMany)).toEqual([{ name: 'payload', message: 'must have at most 100 elements, not 101' }]);
  });

  it('refuses a parameter that is given twice, and broken percent-encoding', () => {
    const get = (query: string, memoryId = 'memory-a1b2c3d4e5'): FieldProblem[] =>
      problems('GetMemory', { labels: { memoryId }, query });
    expect(get('')).toEqual([]);
    expect(get('view=full&view=without_decryption')).toEqual([{ name: 'view', message: 'is given more than once' }]);
    expect(get('view=%E0%A4%A')[0]?.name).toBe('query');
    expect(get('', 'memory%')).toEqual([{ name: 'memoryId', message: 'has a broken percent-encoding' }]);
  });

  it('counts characters as code points', () => {
    const create = (description: string): FieldProblem[] =>
      problems('CreateMemory', {
        body: Buffer.from(JSON.stringify({ name: 'm', eventExpiryDuration: 7, description })),
      });
    const max = 4096;
    expect(create('😀'.repeat(max)).filter((p) => p.name === 'description')).toEqual([]);
    expect(create('😀'.repeat(max + 1))).toContainEqual({
      name: 'description',
      message: `must have at most ${max} characters, not ${max + 1}`,
    });
  });

  it('never throws anything but a ServiceError, whatever comes', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('', '%', '%zz', '__proto__', 'arn:aws:x', 'true', '-1', 'NaN'),
    );
    const json = fc.json().map((value) => Buffer.from(value));
    const request = fc.record({
      labels: fc.dictionary(text, text),
      query: fc.oneof(
        text,
        fc.array(fc.tuple(text, text)).map((pairs) => pairs.map((pair) => pair.join('=')).join('&')),
      ),
      headers: fc.dictionary(text, fc.oneof(text, fc.array(text))),
      body: fc.oneof(fc.uint8Array({ maxLength: 200 }), json, fc.constant(undefined)),
    });
    fc.assert(
      fc.property(fc.constantFrom(...names), request, (name, sent) => {
        problems(name, sent);
      }),
      { numRuns: 3000, seed: 1 },
    );
  });

  it('never throws anything but a ServiceError on JSON of nearly the right shape', () => {
    const bodies = names.map((name) => ({ name, members: Object.keys(wordsOf(name)) }));
    const value = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(
        fc
          .constantFrom(...bodies)
          .chain(({ name, members }) =>
            fc.tuple(fc.constant(name), fc.dictionary(fc.constantFrom(...members, 'x'), value)),
          ),
        ([name, body]) => {
          problems(name, { body: Buffer.from(JSON.stringify(body)) });
        },
      ),
      { numRuns: 3000, seed: 1 },
    );
  });
});

/** Names of an operation's body members, learned from what it says is required and from its model. */
function wordsOf(name: OperationName): Record<string, true> {
  const required = problems(name, {}).map((problem) => [problem.name, true] as const);
  return { clientToken: true, name: true, description: true, ...Object.fromEntries(required) };
}

describe('bodies', () => {
  it('stream for InvokeAgentRuntime untouched', () => {
    const body = Readable.from([Buffer.from('not json')]);
    const input = decodeRequest('InvokeAgentRuntime', {
      labels: { agentRuntimeArn: 'x' },
      query: '',
      headers: {},
      body,
    });
    expect(input.payload).toBe(body);
    expect(bodyRule('InvokeAgentRuntime')).toEqual({ streams: true, maxBytes: 100_000_000 });
  });

  it('are empty streams where nothing was sent', async () => {
    const input = decodeRequest('InvokeAgentRuntime', { labels: { agentRuntimeArn: 'x' }, query: '', headers: {} });
    const parts: Uint8Array[] = [];
    for await (const part of input.payload) parts.push(part);
    expect(parts).toEqual([]);
  });

  it('have to be collected for JSON, which is a mistake of ours and not of the client', () => {
    const body = Readable.from([Buffer.from('{}')]);
    expect(() => decodeRequest('CreateEvent', { labels: {}, query: '', headers: {}, body })).toThrow(TypeError);
  });

  it('have room for the largest field of their operation', () => {
    expect(bodyRule('GetMemory').maxBytes).toBe(16 * 1024 * 1024);
    expect(bodyRule('InvokeCodeInterpreter')).toEqual({ streams: false, maxBytes: 150_000_000 });
  });
});

describe('encoding', () => {
  it('lets nothing out that the model does not have', () => {
    const row = { memoryId: 'm', passwordHash: 'hunter2', toJSON: () => 'x' };
    const { body } = encodeResponse('DeleteMemory', row as never);
    expect(JSON.parse(String(body))).toEqual({ memoryId: 'm' });
  });

  it('has no body with status 204', () => {
    expect(encodeResponse('TagResource', {})).toEqual({ status: 204, headers: {}, body: undefined });
  });

  it('refuses values of a wrong type instead of sending nonsense', () => {
    const bad = { memory: { createdAt: '2026-01-01', strategies: [] } };
    expect(() => encodeResponse('GetMemory', bad as never)).toThrow(TypeError);
  });

  it('checks outputs for tests', () => {
    expect(outputProblems('DeleteMemory', { memoryId: '!' } as never)).toContainEqual(
      expect.objectContaining({ name: 'memoryId' }),
    );
  });

  it('checks inputs that are built by hand', () => {
    const input = { memoryId: 'memory-a1b2c3d4e5' } satisfies Inputs['GetMemory'];
    expect(() => checkInput('GetMemory', input)).not.toThrow();
    expect(() => checkInput('GetMemory', { memoryId: 'short' })).toThrow('One field is not valid: memoryId');
  });
});
