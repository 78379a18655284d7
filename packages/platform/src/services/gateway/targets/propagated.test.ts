import { describe, expect, it } from 'vitest';
import { createMask } from '../http-tools/index.ts';
import { passedBack, propagated, unpassable } from './propagated.ts';

const caller = {
  principal: { kind: 'anonymous' as const, accountId: '111122223333', acceptedBy: 'arn', address: undefined },
  requestId: 'r',
  headers: { 'x-tenant': 'a', 'x-other': 'b', authorization: 'Bearer secret', cookie: 'c=1', 'x-many': ['1', '2'] },
  query: new URLSearchParams('page=1&page=2&secret=s'),
};

describe('what of the caller’s request goes on', () => {
  it('is what the lists name, in whatever letters, and nothing else', () => {
    const lists = { allowedRequestHeaders: ['X-Tenant', 'x-many', 'x-absent'], allowedQueryParameters: ['page'] };
    expect(propagated(lists, caller)).toEqual({
      headers: { 'x-tenant': 'a', 'x-many': '1, 2' },
      query: [
        ['page', '1'],
        ['page', '2'],
      ],
    });
    expect(propagated(undefined, caller)).toEqual({ headers: {}, query: [] });
  });

  it.each([
    'Authorization',
    'Cookie',
    'Host',
    'Content-Length',
    'X-Amz-Security-Token',
    'Mcp-Session-Id',
    'Proxy-Authorization',
  ])('is never %s, and a list that names it is refused', (name) => {
    const lists = { allowedRequestHeaders: ['x-tenant', name] };
    expect(unpassable(lists)).toEqual({ list: 'allowedRequestHeaders', name });
    expect(Object.keys(propagated(lists, caller).headers)).toEqual(['x-tenant']);
  });

  it('is nothing that belongs to the connection, as its caller says', () => {
    const lists = { allowedRequestHeaders: ['X-Tenant', 'X-Other'] };
    const { headers } = propagated(lists, { ...caller, headers: { ...caller.headers, connection: 'close, X-Other' } });
    expect(headers).toEqual({ 'x-tenant': 'a' });
    const answer = { connection: 'x-other', 'x-tenant': 'a', 'x-other': 'b' };
    const back = { allowedResponseHeaders: ['X-Tenant', 'X-Other'] };
    expect(passedBack(back, answer, createMask([]))).toEqual({ 'x-tenant': 'a' });
  });

  it('is never a part of a signature in the query', () => {
    const lists = { allowedQueryParameters: ['page', 'X-Amz-Signature'] };
    expect(unpassable(lists)).toEqual({ list: 'allowedQueryParameters', name: 'X-Amz-Signature' });
    const signed = { ...caller, query: new URLSearchParams('page=1&X-Amz-Signature=s') };
    expect(propagated(lists, signed).query).toEqual([['page', '1']]);
  });

  it('is any other header that a list names', () => {
    expect(unpassable({ allowedRequestHeaders: ['x-tenant', 'accept-language'] })).toBeUndefined();
  });
});

describe('what of a target’s answer goes back', () => {
  const mask = createMask(['hidden']);
  const answered = {
    'x-quota': '7',
    'x-many': ['a', 'b'],
    'x-token': 'is hidden',
    'x-other': '8',
    'set-cookie': ['a=b'],
  };

  it('is what the list names, without what a credential is part of', () => {
    const lists = { allowedResponseHeaders: ['X-Quota', 'x-many', 'x-token', 'x-none'] };
    expect(passedBack(lists, answered, mask)).toEqual({
      ...{ 'x-quota': '7', 'x-many': 'a, b' },
      'x-token': expect.not.stringContaining('hidden'),
    });
    expect(passedBack(undefined, answered, mask)).toEqual({});
  });

  it.each([
    ...['Set-Cookie', 'Content-Type', 'Mcp-Session-Id', 'Connection', 'TE', 'Access-Control-Allow-Origin', 'Refresh'],
    ...['NEL', 'Report-To', 'Reporting-Endpoints', 'Accept-CH', 'Public-Key-Pins', 'Expect-CT', 'Location', 'Expect'],
    ...['Service-Worker-Allowed', 'Origin-Agent-Cluster', 'HTTP2-Settings', 'Cross-Origin-Opener-Policy'],
  ])('is never %s, and a list that names it is refused', (name) => {
    const lists = { allowedResponseHeaders: ['x-quota', name] };
    expect(unpassable(lists)).toEqual({ list: 'allowedResponseHeaders', name });
    const all = { ...answered, [name.toLowerCase()]: 'a' };
    expect(passedBack(lists, all, mask)).toEqual({ 'x-quota': '7' });
  });
});
