import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import type { TraceContext } from '../../kernel/telemetry/index.ts';
import { allowlistProblem, containerHeaders } from './container-headers.ts';

function passed(
  headers: Record<string, string>,
  allowlist: string[] = [],
  bearer = false,
  callbackUrl: string | undefined = undefined,
  trace: TraceContext | undefined = undefined,
): Record<string, string> {
  const ids = { sessionId: 'the-session', requestId: 'the-request', workloadToken: 'the-token', callbackUrl };
  const list = containerHeaders({ headers, ...ids, allowlist, bearer, trace });
  const pairs = Array.from({ length: list.length / 2 }, (_, i): [string, string] => [
    list[2 * i] ?? '',
    list[2 * i + 1] ?? '',
  ]);
  // Never twice: an agent might believe the other one.
  expect(pairs.filter(([name]) => name === 'workloadaccesstoken' || name.endsWith('-wat'))).toHaveLength(2);
  return Object.fromEntries(pairs);
}

describe('container headers', () => {
  it('always carry session and request id, the workload access token by both of its names, and the content and trace headers', () => {
    expect(
      passed({
        'content-type': 'application/json',
        traceparent: '00-a',
        'a2a-version': '1.0',
        cookie: 'secret',
        'x-forwarded-for': '1.2.3.4',
      }),
    ).toEqual({
      'x-amzn-bedrock-agentcore-runtime-session-id': 'the-session',
      'x-amzn-bedrock-agentcore-runtime-request-id': 'the-request',
      workloadaccesstoken: 'the-token',
      'x-amz-bedrock-agentcore-identity-wat': 'the-token',
      'content-type': 'application/json',
      'a2a-version': '1.0',
      traceparent: '00-a',
    });
  });

  it('say once what the request is a part of: anew where it is traced, whatever the allowlist names', () => {
    const theirs = { traceparent: '00-a', tracestate: 'a=1', baggage: 'b=2', 'x-amzn-trace-id': 'Root=1' };
    const trace = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), sampled: true, baggage: 'kept=1' };
    const names = Object.keys(theirs);
    expect(passed(theirs, names)).toMatchObject(theirs);
    const sent = passed(theirs, names, false, undefined, trace);
    expect(sent).toMatchObject({ traceparent: `00-${trace.traceId}-${trace.spanId}-01`, baggage: 'kept=1' });
    expect(sent).not.toHaveProperty('tracestate');
    expect(sent['x-amzn-trace-id']).toBe(`Root=1-11111111-${'1'.repeat(24)};Parent=${trace.spanId};Sampled=1`);
  });

  it('have one bound together, with which a server of Node takes them, and are refused beyond it', async () => {
    const name = 'x-amzn-bedrock-agentcore-runtime-custom-a';
    const list = (length: number) =>
      containerHeaders({
        headers: { [name]: 'a'.repeat(length) },
        ...{ sessionId: 's', requestId: 'r', workloadToken: 't'.repeat(7168), callbackUrl: undefined },
        ...{ allowlist: [], bearer: false },
      });
    const bytesOf = (all: string[]) => all.reduce((sum, text) => sum + text.length + 2, 0);
    const most = 15_872 - bytesOf(list(0));
    expect(() => list(most + 1)).toThrow(/headers for the agent have 15873 bytes/);
    const server = createServer((_, res) => res.end());
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    const { statusCode, body } = await request(`http://127.0.0.1:${port}/${'p'.repeat(200)}`, { headers: list(most) });
    await body.dump();
    server.close();
    expect(statusCode).toBe(200);
  });

  it("carry the platform's own callback address, and no caller's", () => {
    const sent = { oauth2callbackurl: 'https://mallory.example' };
    expect(passed(sent, ['OAuth2CallbackUrl'])).not.toHaveProperty('oauth2callbackurl');
    const own = 'https://app.example/back';
    expect(passed(sent, ['OAuth2CallbackUrl'], false, own)).toMatchObject({ oauth2callbackurl: own });
  });

  it('carry custom headers, and others only when the allowlist names them', () => {
    const headers = { 'x-amzn-bedrock-agentcore-runtime-custom-team': 'red', 'x-tenant': 'blue' };
    expect(passed(headers)).toMatchObject({ 'x-amzn-bedrock-agentcore-runtime-custom-team': 'red' });
    expect(passed(headers)).not.toHaveProperty('x-tenant');
    expect(passed(headers, ['X-Tenant'])).toMatchObject({ 'x-tenant': 'blue' });
  });

  it('never carry the signature; a bearer token only when the allowlist names it', () => {
    const headers = { authorization: 'the-credential', 'x-amz-security-token': 't', 'x-amz-date': 'd' };
    const everything = ['Authorization', 'X-Amz-Security-Token', 'X-Amz-Date', 'Host'];
    expect(passed({ ...headers, host: 'h' }, everything)).not.toHaveProperty('authorization');
    expect(passed(headers, everything, true)).toMatchObject({ authorization: 'the-credential' });
    expect(passed(headers, everything, true)).not.toHaveProperty('x-amz-security-token');
    expect(passed(headers, [], true)).not.toHaveProperty('authorization');
  });

  it('carry nothing of AWS or of the connection, whatever is sent and allowed', () => {
    // The sealed policy session of a gateway's caller is a header of the platform's own.
    const tokens = { workloadaccesstoken: 'the-token', 'x-amz-bedrock-agentcore-identity-wat': 'the-token' };
    const own = ['x-amzn-bedrock-agentcore-runtime-', 'x-amzn-trace-id', ...Object.keys(tokens)];
    const name = fc.oneof(
      fc.constantFrom('authorization', 'host', 'x-amz-date', 'x-amz-security-token', 'x-amzn-x', 'amz-sdk-request'),
      fc.constantFrom('workloadaccesstoken', 'oauth2callbackurl', 'x-amz-bedrock-agentcore-identity-wat', 'cookie'),
      fc.constant('x-agentplatform-policy-session'),
      fc.string({ unit: fc.constantFrom('x', '-', 'a', 'm', 'z', 'n'), minLength: 1, maxLength: 12 }),
    );
    fc.assert(
      fc.property(fc.array(name), fc.array(name), (sent, allowed) => {
        const reached = passed(Object.fromEntries(sent.map((one) => [one, 'v'])), allowed);
        expect(reached).toMatchObject(tokens);
        for (const one of Object.keys(reached).filter((header) => !own.some((prefix) => header.startsWith(prefix)))) {
          expect(one).not.toMatch(
            /^(x-amzn?-|amz-sdk-|authorization$|host$|workloadaccesstoken$|oauth2callbackurl$|x-agentplatform-)/,
          );
          expect(allowed).toContain(one);
        }
      }),
    );
  });

  it('refuse names in an allowlist that could never pass', () => {
    expect(allowlistProblem('X-Amz-Date')).toMatch(/signature/);
    expect(allowlistProblem('X-Amzn-Other')).toMatch(/belongs to AWS/);
    expect(allowlistProblem('Amz-Sdk-Request')).toMatch(/belongs to AWS/);
    expect(allowlistProblem('WorkloadAccessToken')).toMatch(/no caller may set/);
    expect(allowlistProblem('Host')).toMatch(/connection/);
    expect(allowlistProblem('Authorization')).toBeUndefined();
    expect(allowlistProblem('X-Amzn-Bedrock-AgentCore-Runtime-Custom-Team')).toBeUndefined();
    expect(allowlistProblem('X-Tenant')).toBeUndefined();
  });
});
