import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HOP_BY_HOP } from '../../../kernel/hop-by-hop.ts';
import { buildRequest } from './build-request.ts';
import { isReservedHeader } from './header-rules.ts';
import type { HttpBody, HttpParameter, HttpTemplate } from './http-tool.ts';

const parameter = (name: string, place: HttpParameter['in'], more: Partial<HttpParameter> = {}): HttpParameter => ({
  argument: name,
  name,
  in: place,
  style: place === 'query' || place === 'cookie' ? 'form' : 'simple',
  explode: false,
  ...more,
});
const template = (more: Partial<HttpTemplate>): HttpTemplate => ({
  method: 'GET',
  server: 'https://api.example/v1',
  path: '/pets',
  parameters: [],
  answer: {},
  ...more,
});
const byPath = (path = '/pets/{id}/photos', more: Partial<HttpParameter> = {}): HttpTemplate =>
  template({
    path,
    parameters: [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => parameter(name, 'path', more)),
  });
const text = (body: HttpBody, args: Record<string, never> | { [name: string]: string | number | object }): string =>
  Buffer.from(buildRequest(template({ method: 'POST', body }), JSON.parse(JSON.stringify(args))).body ?? []).toString();

describe('the path of a request', () => {
  it('has values as one segment each', () => {
    const { url } = buildRequest(byPath(), { id: 'a b/c?d#e%f&ü' });
    expect(url.href).toBe('https://api.example/v1/pets/a%20b%2Fc%3Fd%23e%25f%26%C3%BC/photos');
    expect(buildRequest(byPath(), { id: '...' }).url.pathname).toBe('/v1/pets/.../photos');
    expect(buildRequest(byPath(), { id: 'v1..2' }).url.pathname).toBe('/v1/pets/v1..2/photos');
  });

  it('keeps slashes where they are meant (a greedy label), and still does not climb', () => {
    const greedy = byPath('/files/{id}', { greedy: true });
    expect(buildRequest(greedy, { id: 'a/b c/d' }).url.pathname).toBe('/v1/files/a/b%20c/d');
    expect(() => buildRequest(greedy, { id: 'a/../../admin' })).toThrow('another path');
  });

  const climbing = [
    '..',
    '.',
    '../admin',
    'a/../../admin',
    '..%2Fadmin',
    '%2e%2e',
    '%2e%2e%2fadmin',
    '%252e%252e%252f',
    '..\\admin',
    '..;/admin',
    '．．／admin',
    '%ef%bc%8e%ef%bc%8e/x',
    '%c0%ae%c0%ae/x',
    'a/./b',
  ];
  it.each(climbing)('is not left by %s', (id) => {
    expect(() => buildRequest(byPath(), { id })).toThrow('another path');
  });

  it('is not left by parameters that only together say so', () => {
    expect(() => buildRequest(byPath('/pets/{a}{b}', { style: 'label' }), { a: '', b: '' })).toThrow('another path');
    expect(() => buildRequest(byPath('/pets/{a}', { style: 'label' }), { a: '' })).toThrow('another path');
    expect(buildRequest(byPath('/pets/{a}', { style: 'label' }), { a: 'b' }).url.pathname).toBe('/v1/pets/.b');
  });

  it('does not lose a segment to an empty value, a control character or half a character', () => {
    expect(() => buildRequest(byPath('/users/{id}'), { id: '' })).toThrow('must not be empty');
    expect(() => buildRequest(byPath(), { id: 'a\0b' })).toThrow('control characters');
    expect(() => buildRequest(byPath(), { id: 'a\ud800' })).toThrow('half a character');
    expect(() => buildRequest(byPath(), {})).toThrow('missing');
  });

  it('stays under the server whatever the value, or the value is refused', () => {
    let sent = 0;
    const value = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc
        .array(fc.constantFrom('.', '/', '%2e', '%2f', '\\', '@', ':', '#', '?', 'a', '%', '；', '．', '\t'))
        .map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(value, (id) => {
        let url: URL;
        try {
          url = buildRequest(byPath(), { id }).url;
        } catch (error) {
          expect(error).toHaveProperty('name', 'RefusedArgumentError');
          return;
        }
        sent += 1;
        expect(url.origin).toBe('https://api.example');
        expect(url.pathname.split('/')).toEqual(['', 'v1', 'pets', expect.any(String), 'photos']);
        expect(decodeURIComponent(url.pathname.split('/')[3] ?? '')).toBe(id);
        expect(url.search + url.hash + url.username).toBe('');
      }),
      { seed: 5, numRuns: 2000 },
    );
    expect(sent).toBeGreaterThan(500);
  });
});

describe('headers and cookies', () => {
  const withHeader = (name: string): HttpTemplate => template({ parameters: [parameter(name, 'header')] });

  it('carry what is printable', () => {
    expect(buildRequest(withHeader('X-Trace'), { 'X-Trace': ' a, b ' }).headers).toEqual({ 'x-trace': 'a, b' });
  });

  it.each(['a\r\nx-admin: 1', 'a\nb', 'a\0b', 'a\u2028b', '日本'])('are not split by %j', (value) => {
    expect(() => buildRequest(withHeader('X-Trace'), { 'X-Trace': value })).toThrow('line breaks');
  });

  it.each([
    'Authorization',
    'authorization',
    'Cookie',
    'Host',
    'Content-Length',
    'Transfer-Encoding',
    'Connection',
    'Proxy-Authorization',
    'X-Forwarded-For',
    'X-HTTP-Method-Override',
    'X-Amz-Security-Token',
  ])('of the connection and of credentials are not for arguments: %s', (name) => {
    expect(() => buildRequest(withHeader(name), { [name]: 'x' })).toThrow('not for arguments to set');
  });

  it('of the connection are all those that the kernel knows', () => {
    expect(HOP_BY_HOP.size).toBeGreaterThan(8);
    for (const name of HOP_BY_HOP) expect(isReservedHeader(name), name).toBe(true);
    expect(isReservedHeader('x-request-id')).toBe(false);
  });

  it('and query parameters that carry the credential are not for arguments, also by names that callers choose', () => {
    const credentials = [
      { in: 'header', name: 'X-Api-Key' } as const,
      { in: 'query', name: 'key' } as const,
      { in: 'cookie', name: 'sid' } as const,
    ];
    const parameters = [
      parameter('x-api-key', 'header'),
      parameter('key', 'query'),
      parameter('sid', 'cookie'),
      parameter('other', 'query'),
    ];
    for (const name of ['x-api-key', 'key', 'sid'])
      expect(() => buildRequest(template({ parameters, credentials }), { [name]: 'x' })).toThrow(
        'not for arguments to set',
      );
    expect(buildRequest(template({ parameters, credentials }), { other: 'x' }).url.search).toBe('?other=x');
    const free = template({
      credentials,
      parameters: [
        parameter('', 'query', { argument: 'all', each: 'named' }),
        parameter('x-', 'header', { argument: 'heads', each: 'prefixed' }),
      ],
    });
    expect(() => buildRequest(free, { all: { key: 'x' } })).toThrow('not for arguments to set');
    expect(() => buildRequest(free, { heads: { 'api-key': 'x' } })).toThrow('not for arguments to set');
    expect(() => buildRequest(free, { heads: { 'a\r\nb': 'x' } })).toThrow('cannot be');
    expect(buildRequest(free, { all: { a: '1' }, heads: { b: '2' } })).toMatchObject({ headers: { 'x-b': '2' } });
  });
});

describe('the query', () => {
  it('keeps reserved characters where the document allows them, but none that ends the value', () => {
    const reserved = template({ parameters: [parameter('q', 'query', { allowReserved: true })] });
    expect(buildRequest(reserved, { q: "a/b:c?d=e,f;'g'&admin=1#x+y%41" }).url.search).toBe(
      "?q=a/b:c?d=e,f;'g'%26admin=1%23x%2By%2541".replaceAll("'", '%27'),
    );
  });

  it('has a value with a media type as that', () => {
    const json = template({ parameters: [parameter('filter', 'query', { content: 'application/json' })] });
    expect(buildRequest(json, { filter: { a: [1] } }).url.searchParams.get('filter')).toBe('{"a":[1]}');
  });

  it('has those of the template first, and nothing for what is null or not given', () => {
    const fixed = template({
      query: [['x-id', 'a b']],
      parameters: [parameter('a', 'query'), parameter('b', 'query')],
    });
    expect(buildRequest(fixed, { a: null }).url.search).toBe('?x-id=a%20b');
  });
});

describe('bodies', () => {
  const fields = [
    { argument: 'id_body', name: 'id' },
    { argument: 'tags', name: 'tags' },
  ];

  it('are JSON of fields or of one argument', () => {
    expect(text({ kind: 'json', mediaType: 'application/json', fields }, { id_body: 1, tags: ['a'] })).toBe(
      '{"id":1,"tags":["a"]}',
    );
    expect(text({ kind: 'json', mediaType: 'application/json', whole: 'body' }, { body: [1] })).toBe('[1]');
    expect(
      buildRequest(template({ body: { kind: 'json', mediaType: 'application/json', fields } }), {}),
    ).not.toHaveProperty('body');
    expect(text({ kind: 'json', mediaType: 'application/json', fields, always: true }, {})).toBe('{}');
  });

  it('are forms', () => {
    const form: HttpBody = {
      kind: 'form',
      mediaType: 'application/x-www-form-urlencoded',
      fields: [
        ...fields,
        { argument: 'deep', name: 'deep', style: 'deepObject', explode: true },
        { argument: 'object', name: 'object' },
      ],
    };
    const sent = text(form, { id_body: 'a&b=c', tags: ['x', 'y'], deep: { a: [1] }, object: { k: 'v' } });
    expect([...new URLSearchParams(sent)]).toEqual([
      ['id', 'a&b=c'],
      ['tags', 'x'],
      ['tags', 'y'],
      ['deep[a][0]', '1'],
      ['object', '{"k":"v"}'],
    ]);
  });

  it('are multipart, as another implementation reads them', async () => {
    const bytes = Buffer.from([0, 255, 13, 10, 45, 45]);
    const multipart: HttpBody = {
      kind: 'multipart',
      mediaType: 'multipart/form-data',
      fields: [
        { argument: 'name', name: 'na"me\r\nx: y' },
        { argument: 'file', name: 'file', binary: true, content: 'image/png' },
        { argument: 'meta', name: 'meta' },
        { argument: 'list', name: 'list' },
      ],
    };
    const { body, headers } = buildRequest(template({ method: 'POST', body: multipart }), {
      name: 'ü\r\n--',
      file: bytes.toString('base64'),
      meta: { a: 1 },
      list: ['1', '2'],
    });
    const read = await new Response(new Uint8Array(body ?? []), {
      headers: { 'content-type': headers['content-type'] ?? '' },
    }).formData();
    const file = read.get('file');
    if (!(file instanceof File)) throw new Error('no file');
    expect(file.type).toBe('image/png');
    expect(Buffer.from(await file.arrayBuffer())).toEqual(bytes);
    expect([...read.keys()]).toEqual(['na"me\r\nx: y', 'file', 'meta', 'list', 'list']);
    expect(read.get('na"me\r\nx: y')).toBe('ü\r\n--');
    expect(read.getAll('list')).toEqual(['1', '2']);
    const meta = read.get('meta');
    expect(typeof meta === 'string' ? meta : await meta?.text()).toBe('{"a":1}');
  });

  it('are bytes and text', () => {
    expect(text({ kind: 'binary', mediaType: 'image/png', whole: 'body' }, { body: 'aGk=' })).toBe('hi');
    expect(() => text({ kind: 'binary', mediaType: 'image/png', whole: 'body' }, { body: 'no base64!' })).toThrow(
      'base64',
    );
    expect(text({ kind: 'text', mediaType: 'text/plain', whole: 'body' }, { body: 'hi' })).toBe('hi');
  });

  it('are no parameters of the query of a server that has some itself', () => {
    expect(buildRequest(template({ server: 'https://api.example' }), {}).url.href).toBe('https://api.example/pets');
  });
});
