import type { control, DocumentValue } from '@agentplatform/contract';
import { errors } from '@agentplatform/contract';
import { pino } from 'pino';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { FunctionCaller } from '../../functions/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { JsonObject } from '../tools/index.ts';
import { Interceptors } from './interceptors.ts';

const ACCOUNT = '111122223333';
const ROLE = `arn:aws:iam::${ACCOUNT}:role/gateway`;
const ARN = (name: string): string => `arn:aws:lambda:us-east-1:${ACCOUNT}:function:${name}`;
type Configuration = control.GatewayInterceptorConfiguration;
const at = (points: Configuration['interceptionPoints'], inputConfiguration?: Configuration['inputConfiguration']) => ({
  ...{ interceptor: { lambda: { arn: ARN(points.join('-').toLowerCase()) } }, interceptionPoints: points },
  ...(inputConfiguration && { inputConfiguration }),
});
const gateway = (interceptorConfigurations: Configuration[], exceptionLevel?: 'DEBUG'): Gateway => ({
  ...{ arn: 'gateway', accountId: ACCOUNT, id: 'one', name: 'one', createdAt: 0, updatedAt: 0 },
  definition: { roleArn: ROLE, authorizerType: 'AWS_IAM', interceptorConfigurations, exceptionLevel },
});
const body = { jsonrpc: '2.0', id: 4, method: 'tools/list' };
const message = {
  ...{ body, rawBody: '{ "as": "it came" }', path: '/gateways/one/mcp', signal: new AbortController().signal },
  caller: {
    principal: { kind: 'anonymous' as const, accountId: ACCOUNT, acceptedBy: 'gateway', address: undefined },
    ...{ requestId: 'request', query: new URLSearchParams() },
    headers: { authorization: 'Bearer t', 'mcp-session-id': 's', 'x-agentplatform-peer': 'secret' },
  },
};
/** Nested deeper than can be written as JSON. */
const DEEP = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
const RESULT = { jsonrpc: '2.0', id: 4, result: { tools: [] } };

const invoke = vi.fn<FunctionCaller['invoke']>();
const roleMay = vi.fn((_role: string, _action: string, _resource: string) => true);
const serve = vi.fn(async (_body: JsonObject, _headers: Record<string, string>) => Response.json(RESULT));
const interceptors = new Interceptors({ functions: { invoke }, roleMay, log: pino({ level: 'silent' }) });
const around = (one: Gateway): Promise<Response> => interceptors.around(one, message, serve);
const says = (mcp: DocumentValue, more: object = { interceptorOutputVersion: '1.0' }): void =>
  void invoke.mockResolvedValueOnce({ outcome: 'returned', value: { ...more, mcp } });
const given = (): unknown => invoke.mock.calls.at(-1)?.[0].payload;

beforeEach(() => {
  for (const one of [invoke, roleMay, serve]) one.mockClear();
});

describe('an interceptor of requests', () => {
  it('is given the message, in the name of the gateway’s role, and headers only where it is to see them', async () => {
    says({});
    await around(gateway([at(['REQUEST'])]));
    const gatewayRequest = { path: '/gateways/one/mcp', httpMethod: 'POST', body };
    const event = {
      interceptorInputVersion: '1.0',
      mcp: { rawGatewayRequest: { body: message.rawBody }, gatewayRequest },
    };
    expect(given()).toEqual(event);
    const [{ arn, caller } = { arn: '' }] = invoke.mock.calls[0] ?? [];
    expect(arn).toBe(ARN('request'));
    await caller?.require('lambda:InvokeFunction', arn);
    expect(roleMay).toHaveBeenCalledWith(ROLE, 'lambda:InvokeFunction', arn, []);
    says({});
    await around(gateway([at(['REQUEST'], { passRequestHeaders: true })]));
    const headers = { Authorization: 'Bearer t', 'Mcp-Session-Id': 's' };
    expect(given()).toEqual({ ...event, mcp: { ...event.mcp, gatewayRequest: { ...gatewayRequest, headers } } });
  });

  it('changes the message and its headers', async () => {
    const other = { ...body, method: 'prompts/list' };
    const headers = { 'X-Tenant': 'a', 'bad name': 'a', 'x-bad': 'a\r\nb', 'X-Agentplatform-Peer': 'a', 'x-number': 1 };
    says({ transformedGatewayRequest: { body: other, headers } });
    expect(await (await around(gateway([at(['REQUEST'])]))).json()).toEqual(RESULT);
    expect(serve).toHaveBeenCalledWith(other, { 'x-tenant': 'a' });
  });

  it('answers in the place of the targets, and its answer wins over its message', async () => {
    const denied = { jsonrpc: '2.0', id: 4, error: { code: -32000, message: 'no' } };
    says({
      transformedGatewayRequest: { body },
      transformedGatewayResponse: {
        statusCode: 403,
        body: denied,
        headers: { 'X-Why': 'because', 'Set-Cookie': 'a=b' },
      },
    });
    const answer = await around(gateway([at(['REQUEST'])]));
    expect(answer.status).toBe(403);
    expect(await answer.json()).toEqual(denied);
    expect(answer.headers.get('x-why')).toBe('because');
    expect(serve).not.toHaveBeenCalled();
  });
});

describe('an interceptor of answers', () => {
  it('is given the answer beside the message, and changes it', async () => {
    says({ transformedGatewayResponse: { statusCode: 201, body: { changed: true } } });
    const answer = await around(gateway([at(['RESPONSE'])]));
    const headers = { 'content-type': 'application/json' };
    expect(given()).toMatchObject({
      mcp: { gatewayRequest: { body }, gatewayResponse: { statusCode: 200, headers, body: RESULT } },
    });
    expect([answer.status, await answer.json()]).toEqual([201, { changed: true }]);
  });

  it.each(['REQUEST' as const, 'RESPONSE' as const])('sets nothing at the client by headers: %s', async (point) => {
    const kept = { 'set-cookie': 'a=b', location: 'https://a.example', 'access-control-allow-origin': '*', nel: 'a' };
    const own = { 'content-encoding': 'gzip', 'x-amzn-errortype': 'a', 'mcp-session-id': 'a', 'http2-settings': 'a' };
    says({ transformedGatewayResponse: { statusCode: 302, body, headers: { 'X-Why': 'because', ...kept, ...own } } });
    const answer = await around(gateway([at([point])]));
    expect(answer.status).toBe(302);
    expect(Object.fromEntries(answer.headers)).toEqual({ 'content-type': 'application/json', 'x-why': 'because' });
  });

  it.each([204, 205, 304])('may say that there is nothing to say: %s', async (statusCode) => {
    for (const point of ['REQUEST', 'RESPONSE'] as const) {
      says({ transformedGatewayResponse: { statusCode, body: { a: 'b' } } });
      const answer = await around(gateway([at([point])]));
      expect([answer.status, await answer.text()]).toEqual([statusCode, '']);
    }
  });

  it('keeps what it does not speak of, and what it is not to see', async () => {
    const hides = { passRequestHeaders: false, payloadFilter: { exclude: [{ field: 'RESPONSE_BODY' as const }] } };
    says({ transformedGatewayResponse: { body: null, headers: { 'x-a': 'b' } } });
    const answer = await around(gateway([at(['RESPONSE'], hides)]));
    expect(given()).toMatchObject({ mcp: { gatewayResponse: { body: null } } });
    expect([answer.status, answer.headers.get('x-a'), await answer.json()]).toEqual([200, 'b', RESULT]);
  });

  it('sees the answer that the other one gives, and of a stream the message that answers', async () => {
    says({ transformedGatewayResponse: { body: { mine: true } } });
    says({ transformedGatewayResponse: { body: { seen: true } } });
    const answer = await around(gateway([at(['REQUEST']), at(['RESPONSE'])]));
    expect(given()).toMatchObject({ mcp: { gatewayResponse: { statusCode: 200, body: { mine: true } } } });
    expect(await answer.json()).toEqual({ seen: true });
    const told = { jsonrpc: '2.0', method: 'notifications/progress' };
    const stream = `data: ${JSON.stringify(told)}\n\ndata: ${JSON.stringify(RESULT)}\n\n`;
    serve.mockResolvedValueOnce(new Response(stream, { headers: { 'content-type': 'text/event-stream' } }));
    says({});
    expect(await (await around(gateway([at(['RESPONSE'])]))).json()).toEqual(RESULT);
  });

  it('is not asked where there is no answer, nor for streams of changes', async () => {
    serve.mockResolvedValueOnce(new Response(null, { status: 202 }));
    expect((await around(gateway([at(['RESPONSE'])]))).status).toBe(202);
    expect(invoke).not.toHaveBeenCalled();
  });
});

describe('a custom transformation', () => {
  const transformed = (interceptors: Configuration[]): Gateway => {
    const { definition, ...rest } = gateway(interceptors);
    return {
      ...rest,
      definition: { ...definition, customTransformConfiguration: { lambda: { arn: ARN('transform') } } },
    };
  };
  const asked = (): unknown[] => invoke.mock.calls.map(([{ arn }]) => arn);

  it('stands between the interceptors and the targets, both ways', async () => {
    const [first, second] = [
      { ...body, method: 'prompts/list' },
      { ...body, method: 'ping' },
    ];
    says({ transformedGatewayRequest: { body: first, headers: { 'x-a': '1', 'x-b': '1' } } });
    says({ transformedGatewayRequest: { body: second, headers: { 'x-b': '2' } } });
    says({ transformedGatewayResponse: { body: { inner: true } } });
    says({ transformedGatewayResponse: { body: { outer: true } } });
    const answer = await around(transformed([at(['REQUEST', 'RESPONSE'])]));
    expect(asked()).toEqual(['request-response', 'transform', 'transform', 'request-response'].map(ARN));
    expect(invoke.mock.calls[1]?.[0].payload).toMatchObject({ mcp: { gatewayRequest: { body: first } } });
    expect(serve).toHaveBeenCalledWith(second, { 'x-a': '1', 'x-b': '2' });
    expect(given()).toMatchObject({ mcp: { gatewayResponse: { body: { inner: true } } } });
    expect(await answer.json()).toEqual({ outer: true });
  });

  it('is asked without interceptors, too, and not what an interceptor has answered by itself on the way in', async () => {
    says({});
    says({});
    expect(await (await around(transformed([]))).json()).toEqual(RESULT);
    expect(asked()).toEqual([ARN('transform'), ARN('transform')]);
    invoke.mockClear();
    says({ transformedGatewayResponse: { body: { mine: true } } });
    says({});
    expect(await (await around(transformed([at(['REQUEST'])]))).json()).toEqual({ mine: true });
    expect(asked()).toEqual([ARN('request'), ARN('transform')]);
    expect(serve).toHaveBeenCalledTimes(1);
  });

  it('ends the request that it fails at', async () => {
    invoke.mockResolvedValueOnce({ outcome: 'failed', errorType: 'Error', errorMessage: 'secret' });
    expect((await around(transformed([]))).status).toBe(500);
    expect(serve).not.toHaveBeenCalled();
  });
});

describe.each<Configuration['interceptionPoints']>([['REQUEST'], ['RESPONSE']])(
  'what goes wrong in one at %s',
  (point) => {
    it.each<[string, () => unknown]>([
      [
        'it fails',
        () => invoke.mockResolvedValueOnce({ outcome: 'failed', errorType: 'Error', errorMessage: 'secret' }),
      ],
      ['it is not there', () => invoke.mockRejectedValueOnce(errors.resourceNotFound('secret'))],
      ['another version', () => says({}, { interceptorOutputVersion: '2.0' })],
      ['no version', () => says({}, {})],
      ['no member mcp', () => says('secret')],
      ['a message too deep', () => says({ transformedGatewayRequest: { body: { secret: DEEP } } })],
      ['an answer too deep', () => says({ transformedGatewayResponse: { body: DEEP } })],
      ['no status', () => says({ transformedGatewayResponse: { statusCode: 'secret' } })],
    ])('ends the request, which says why only to who debugs: %s', async (_, goesWrong) => {
      goesWrong();
      const answer = await around(gateway([at([point])]));
      expect(answer.status).toBe(500);
      const text = await answer.text();
      expect(JSON.parse(text)).toMatchObject({ id: 4, error: { code: -32603 } });
      expect(text).not.toContain('secret');
      if (point === 'REQUEST') expect(serve).not.toHaveBeenCalled();
      goesWrong();
      expect(await (await around(gateway([at([point])], 'DEBUG'))).text()).toMatch(/fails: \S/);
    });
  },
);

it.each(['REQUEST' as const, 'RESPONSE' as const])('one that is busy at %s is a reason to come back', async (point) => {
  invoke.mockRejectedValueOnce(errors.throttling('secret', { retryAfterSeconds: 1.5 }));
  const answer = await around(gateway([at([point])]));
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '2']);
  const text = await answer.text();
  expect(JSON.parse(text)).toMatchObject({ id: 4, error: { code: -32000, message: expect.stringContaining('busy') } });
  expect(text).not.toContain('secret');
});

it('a gateway without one asks none', async () => {
  expect(await (await around(gateway([]))).json()).toEqual(RESULT);
  expect(invoke).not.toHaveBeenCalled();
});
