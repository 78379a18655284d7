import { describe, expect, it } from 'vitest';
import type { TraceContext } from '../../../kernel/telemetry/index.ts';
import { answeredHeaders, sentHeaders } from './endpoint-headers.ts';

const signedInHeader = { authorization: 'AWS4-HMAC-SHA256 …' };

function sent(headers: Record<string, string>, trace?: TraceContext): Record<string, string> {
  const rawHeaders = Object.entries(headers).flat();
  const list = sentHeaders({ headers, rawHeaders }, { sessionId: 'the-session', port: 9000, trace });
  return Object.fromEntries(Array.from({ length: list.length / 2 }, (_, i) => list.slice(2 * i, 2 * i + 2)));
}

describe('what a server in a session is sent', () => {
  it('is what the caller has sent, in his own writing', () => {
    expect(sent({ ...signedInHeader, Accept: 'text/html', 'X-Mine': 'ä', 'x-amzn-trace-id': 'Root=1' })).toEqual({
      host: 'localhost:9000',
      'x-amzn-bedrock-agentcore-runtime-session-id': 'the-session',
      Accept: 'text/html',
      'X-Mine': 'ä',
      'x-amzn-trace-id': 'Root=1',
    });
  });

  it('is told anew what the request is a part of where that is traced', () => {
    const theirs = { ...signedInHeader, Traceparent: '00-a', tracestate: 'a=1', 'X-Amzn-Trace-Id': 'Root=1' };
    const trace = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), sampled: true };
    expect(sent(theirs, trace)).toEqual({
      host: 'localhost:9000',
      'x-amzn-bedrock-agentcore-runtime-session-id': 'the-session',
      traceparent: `00-${trace.traceId}-${trace.spanId}-01`,
      'x-amzn-trace-id': `Root=1-11111111-${'1'.repeat(24)};Parent=${trace.spanId};Sampled=1`,
    });
  });

  it.each([
    'authorization',
    'Host',
    'x-amz-date',
    'X-Amz-Security-Token',
    'x-amzn-bedrock-agentcore-runtime-user-id',
    'x-amzn-bedrock-agentcore-runtime-session-id',
    'amz-sdk-request',
    'x-agentplatform-peer',
    'workloadaccesstoken',
    'proxy-authorization',
    'transfer-encoding',
    'keep-alive',
    'te',
    'expect',
    'upgrade',
  ])('is not: %s', (name) => {
    expect(Object.values(sent({ ...signedInHeader, [name]: 'of theirs' }))).not.toContain('of theirs');
  });

  it('is not what the connection alone is told, nor a cookie of the platform', () => {
    const headers = { ...signedInHeader, connection: 'close, X-Hop', 'x-hop': '1' };
    expect(sent(headers)).not.toHaveProperty('x-hop');
    const cookie = 'a=1; agentplatform=2; __Host-agentplatform-session=3; b=4';
    expect(sent({ ...signedInHeader, cookie }).cookie).toBe('a=1; b=4');
    expect(sent({ ...signedInHeader, cookie: 'agentplatform=2' })).not.toHaveProperty('cookie');
    expect(sent({ cookie: 'a=1' })).not.toHaveProperty('cookie');
  });
});

describe('what a caller is answered', () => {
  const page = {
    'content-type': 'text/html',
    'content-length': '3',
    'set-cookie': ['a=1', '__Secure-agentplatform=2'],
    'alt-svc': 'h3',
    'service-worker-allowed': '/',
    'x-amzn-errortype': 'AccessDeniedException',
    connection: 'keep-alive, x-hop',
    'x-hop': '1',
    vary: 'accept',
  };

  it('is the page as it is, when a program has asked', () => {
    expect(answeredHeaders({ headers: page }, { headers: signedInHeader })).toEqual({
      'content-type': 'text/html',
      'content-length': '3',
      'set-cookie': ['a=1'],
      vary: ['accept', 'authorization'],
    });
  });

  it.each(['text/html', 'image/svg+xml', undefined])(
    'runs nothing and stays nowhere, when a browser may have: %s',
    (type) => {
      const answered = answeredHeaders({ headers: { ...page, 'content-type': type } }, { headers: {} });
      expect(answered).toMatchObject({
        'content-security-policy': "default-src 'none'; sandbox",
        'x-content-type-options': 'nosniff',
      });
      expect(answered).not.toHaveProperty('set-cookie');
    },
  );
});
