import { createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '@agentplatform/contract';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { type Authenticated, createAuthenticator, type SignedRequest } from './sigv4.ts';
import { isSignable } from './sigv4-canonical.ts';

const MODEL = join(import.meta.dirname, '../../../../contract/src/generated/model.json');

/** As much of the published model as tells which headers operations take. */
interface Model {
  planes: Record<
    string,
    {
      operations: Record<string, { input?: string }>;
      shapes: Record<string, { members?: Record<string, { location?: string; locationName?: string }> }>;
    }
  >;
}

const NOW = Date.UTC(2026, 10, 21, 15, 30, 0);
const PRINCIPAL = {
  kind: 'iam',
  accountId: '111122223333',
  arn: 'arn:aws:iam::111122223333:user/a',
  tags: {},
} as const;
const SECRETS: Record<string, { secret: string; token?: string }> = {
  AKIAONE: { secret: 'one/secret+' },
  AKIATWO: { secret: 'another' },
  ASIAONE: { secret: 'short', token: 'the-token==' },
};

class Sha256 {
  #hash;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret as string);
  }
  update(data: string | Uint8Array): void {
    this.#hash.update(data);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {}
}

const clock = new FakeClock(NOW);
const authenticator = createAuthenticator({
  clock,
  region: 'eu-test-1',
  keys: {
    find(accessKeyId, token) {
      const known = SECRETS[accessKeyId];
      if (!known || known.token !== token) return undefined;
      return { secretAccessKey: known.secret, principal: { ...PRINCIPAL, accessKeyId } };
    },
  },
});

interface Plan {
  method?: string;
  path?: string;
  query?: Record<string, string | string[]>;
  headers?: Record<string, string>;
  body?: string;
  service?: string;
  region?: string;
  key?: string;
  at?: number;
  declare?: boolean;
  presign?: number;
}

const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

/** Signs with the official signer and writes the request down as it would arrive. */
async function signed(plan: Plan = {}): Promise<SignedRequest & { body: string }> {
  const { body = '', service = 'bedrock-agentcore', key = 'AKIAONE' } = plan;
  const known = SECRETS[key];
  const signer = new SignatureV4({
    service,
    region: plan.region ?? 'eu-test-1',
    credentials: { accessKeyId: key, secretAccessKey: known?.secret ?? '', sessionToken: known?.token },
    sha256: Sha256,
    uriEscapePath: service !== 's3',
    applyChecksum: plan.declare ?? true,
  });
  const s3Presigned = service === 's3' && plan.presign !== undefined;
  const request = {
    method: plan.method ?? 'POST',
    protocol: 'http:',
    hostname: '127.0.0.1',
    path: plan.path ?? '/runtimes/arn%3Aaws%3Ax/invocations',
    query: plan.query ?? {},
    headers: {
      host: '127.0.0.1:4100',
      ...(body === '' ? {} : { 'content-length': `${body.length}` }),
      // As the S3 presigner of the SDK does.
      ...(s3Presigned ? { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } : {}),
      ...plan.headers,
    },
    body,
  };
  const options = { signingDate: new Date(plan.at ?? NOW) };
  const out =
    plan.presign === undefined
      ? await signer.sign(request, options)
      : await signer.presign(request, { ...options, expiresIn: plan.presign });
  const query = Object.entries(out.query ?? {})
    .flatMap(([name, value]) => [value].flat().map((one) => `${encode(name)}=${encode(one ?? '')}`))
    .join('&');
  return {
    method: out.method,
    rawUrl: out.path + (query === '' ? '' : `?${query}`),
    rawHeaders: Object.entries(out.headers).flat(),
    service,
    body,
  };
}

const sha = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Authenticates with the body; answers the principal's key or the error's code. */
function outcome(request: SignedRequest & { body?: string }): string {
  try {
    const result = authenticator.authenticate(request) as Authenticated;
    const { body } = result;
    const hash = sha(request.body ?? '');
    const good =
      body.kind === 'declared' ? body.sha256 === hash : body.kind === 'undeclared' ? body.verify(hash) : true;
    return good ? result.principal.accessKeyId : 'body refused';
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

const setHeader = (request: SignedRequest, name: string, value: string | undefined): string[] =>
  request.rawHeaders.flatMap((_, i, all) =>
    i % 2 === 1 ? [] : all[i] !== name ? [all[i] ?? '', all[i + 1] ?? ''] : value === undefined ? [] : [name, value],
  );
const header = (request: SignedRequest, name: string): string =>
  request.rawHeaders[request.rawHeaders.indexOf(name) + 1] ?? '';

describe('a request signed by the official signer', () => {
  it.each<[string, Plan]>([
    ['with a declared body', { body: '{"prompt":"hi"}' }],
    ['with an undeclared body', { body: '{"prompt":"hi"}', declare: false }],
    ['without a body', { method: 'GET', declare: false }],
    ['with a session token', { key: 'ASIAONE', body: 'x' }],
    ['with a query', { query: { b: ['2', '1'], a: '', 'a-b': '+ &=/', 'a=': 'é😀' } }],
    ['with a folded header', { headers: { 'x-amzn-custom': '  a   b \t c  ' } }],
    ['with an encoded path', { path: `/memories/${encode("a/b c!'()*%é")}/` }],
    ['presigned', { method: 'GET', presign: 60 }],
    ['presigned with a session token', { method: 'GET', presign: 60, key: 'ASIAONE', query: { shellId: 's' } }],
    ['presigned with a body', { presign: 60, body: 'x' }],
    ['of s3', { service: 's3', method: 'PUT', path: '/bucket/a//b/../c%20d', body: 'x' }],
    ['of s3, presigned', { service: 's3', method: 'PUT', path: '/bucket/a', body: 'x', presign: 604_800 }],
    [
      'of sts, signed for us-east-1',
      { service: 'sts', region: 'us-east-1', path: '/', body: 'Action=x', declare: false },
    ],
    ['whose payload is unsigned', { body: 'x', headers: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }],
  ])('%s is authenticated', async (_, plan) => {
    expect(outcome(await signed(plan))).toBe(plan.key ?? 'AKIAONE');
  });

  it('says how its body is bound', async () => {
    const kind = async (plan: Plan): Promise<unknown> =>
      ((await authenticator.authenticate(await signed(plan))) as Authenticated).body;
    expect(await kind({ body: 'x' })).toEqual({ kind: 'declared', sha256: sha('x') });
    expect(await kind({ body: 'x', declare: false })).toMatchObject({ kind: 'undeclared' });
    expect(await kind({ method: 'GET', declare: false })).toEqual({ kind: 'declared', sha256: sha('') });
    const chunked = { service: 's3', path: '/b/k', body: 'x' };
    const streaming = (text: string): Plan => ({
      ...chunked,
      headers: { 'x-amz-content-sha256': `STREAMING-${text}` },
    });
    expect(await kind(streaming('UNSIGNED-PAYLOAD-TRAILER'))).toEqual({
      kind: 'chunked',
      signing: undefined,
      trailer: true,
    });
    expect(await kind(streaming('AWS4-HMAC-SHA256-PAYLOAD'))).toMatchObject({ trailer: false, signing: {} });
    expect(outcome(await signed({ ...streaming('UNSIGNED-PAYLOAD-TRAILER'), service: undefined }))).toBe(
      'IncompleteSignatureException',
    );
  });

  it('whatever its path, query, headers and body', async () => {
    const segment = fc.string({ unit: 'grapheme', minLength: 1 }).filter((s) => s !== '.' && s !== '..');
    const text = fc.string({ unit: 'grapheme', maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          method: fc.constantFrom('GET', 'PUT', 'POST', 'PATCH', 'DELETE'),
          path: fc.array(segment, { maxLength: 4 }).map((all) => `/${all.map(encode).join('/')}`),
          query: fc.dictionary(
            // The signer signs a parameter named __proto__ as "[object Object]".
            text.filter((s) => s !== '' && s !== '__proto__' && !/^x-amz-/i.test(s)),
            fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 3 })),
            { maxKeys: 4 },
          ),
          headers: fc.dictionary(fc.stringMatching(/^x-[a-z0-9]{1,8}$/), fc.stringMatching(/^[ -~]{0,20}$/), {
            maxKeys: 4,
          }),
          body: text,
          key: fc.constantFrom('AKIAONE', 'AKIATWO', 'ASIAONE'),
          service: fc.constantFrom('bedrock-agentcore', 's3', 'iam'),
          declare: fc.boolean(),
          presign: fc.option(fc.integer({ min: 1, max: 604_800 }), { nil: undefined }),
        }),
        async (plan) => {
          const request = await signed(plan);
          expect(outcome(request)).toBe(plan.key);
          const other = plan.method === 'GET' ? 'PUT' : 'GET';
          expect(outcome({ ...request, method: other })).not.toBe(plan.key);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('one changed part', () => {
  const plan: Plan = {
    key: 'ASIAONE',
    body: '{"prompt":"hi"}',
    query: { qualifier: 'DEFAULT', accountId: '111122223333' },
    headers: { 'content-type': 'application/json', 'X-Amzn-Session-Id': 'session-1' },
  };

  it('of the request is refused, for every signed part', async () => {
    for (const declare of [true, false]) {
      const request = await signed({ ...plan, declare });
      expect(outcome(request)).toBe('ASIAONE');
      const altered: Record<string, SignedRequest & { body: string }> = {
        method: { ...request, method: 'PUT' },
        path: { ...request, rawUrl: request.rawUrl.replace('invocations', 'invocation') },
        'path case': { ...request, rawUrl: request.rawUrl.replace('%3A', '%3a') },
        'path decoded': { ...request, rawUrl: request.rawUrl.replace('%3A', ':') },
        'path slash': { ...request, rawUrl: request.rawUrl.replace('/invocations', '//invocations') },
        'path dots': { ...request, rawUrl: request.rawUrl.replace('/invocations', '/x/../invocations') },
        'query value': { ...request, rawUrl: request.rawUrl.replace('DEFAULT', 'OTHER') },
        'query name': { ...request, rawUrl: request.rawUrl.replace('qualifier', 'qualifie') },
        'query added': { ...request, rawUrl: `${request.rawUrl}&x=1` },
        'query removed': { ...request, rawUrl: request.rawUrl.replace('qualifier=DEFAULT&', '') },
        body: { ...request, body: request.body.replace('hi', 'ho') },
        service: { ...request, service: 's3' },
      };
      for (let i = 0; i < request.rawHeaders.length; i += 2) {
        const name = request.rawHeaders[i] ?? '';
        if (name === 'authorization') continue;
        const value = request.rawHeaders[i + 1] ?? '';
        const last = value.at(-1) === '1' ? '2' : '1';
        altered[`${name} changed`] = { ...request, rawHeaders: setHeader(request, name, value.slice(0, -1) + last) };
        altered[`${name} gone`] = { ...request, rawHeaders: setHeader(request, name, undefined) };
        altered[`${name} twice`] = { ...request, rawHeaders: [...request.rawHeaders, name, value] };
      }
      altered['x-amz-* added'] = { ...request, rawHeaders: [...request.rawHeaders, 'x-amz-target', 'x'] };
      for (const [part, request] of Object.entries(altered)) expect(outcome(request), part).not.toBe('ASIAONE');
    }
  });

  it('is refused where it is a header that steers: every one of the model, but those that signers leave out', async () => {
    const { planes } = JSON.parse(readFileSync(MODEL, 'utf8')) as Model;
    const steering = Object.values(planes).flatMap(({ operations, shapes }) =>
      Object.values(operations).flatMap(({ input = '' }) =>
        Object.values(shapes[input]?.members ?? {}).flatMap(({ location, locationName = '' }) =>
          location === 'header' ? locationName.toLowerCase() : [],
        ),
      ),
    );
    const left = [...new Set(steering)].filter((name) => isSignable(name));
    expect(left).toEqual(expect.arrayContaining(['mcp-session-id', 'x-amzn-code-interpreter-session-id']));
    const request = await signed(plan);
    for (const name of [...left, 'x-amzn-bedrock-agentcore-runtime-custom-tenant', 'a2a-extensions']) {
      expect(outcome(await signed({ ...plan, headers: { [name]: 'a' } })), name).toBe('ASIAONE');
      const added = { ...request, rawHeaders: [...request.rawHeaders, name, 'a'] };
      expect(() => authenticator.authenticate(added), name).toThrow(`The header "${name}" must be signed.`);
    }
    const unsigned = ['user-agent', 'traceparent', 'baggage', 'x-amzn-trace-id', 'accept', 'sec-fetch-mode', 'via'];
    for (const name of unsigned)
      expect(outcome({ ...request, rawHeaders: [...request.rawHeaders, name, 'a'] }), name).toBe('ASIAONE');
  });

  it('of the Authorization header is refused', async () => {
    const request = await signed(plan);
    const auth = header(request, 'authorization');
    const swap = (from: string | RegExp, to: string): string => {
      const changed = auth.replace(from, to);
      expect(changed).not.toBe(auth);
      return outcome({ ...request, rawHeaders: setHeader(request, 'authorization', changed) });
    };
    expect(swap('ASIAONE', 'AKIAONE')).toBe('UnrecognizedClientException');
    expect(swap('ASIAONE', 'NOBODY')).toBe('UnrecognizedClientException');
    expect(swap('20261121', '20261120')).toBe('InvalidSignatureException');
    expect(swap('eu-test-1', 'us-east-1')).toBe('InvalidSignatureException');
    expect(swap('bedrock-agentcore', 's3')).toBe('InvalidSignatureException');
    expect(swap('aws4_request', 'aws5_request')).toBe('IncompleteSignatureException');
    expect(swap('content-length;', '')).toBe('InvalidSignatureException');
    expect(swap('host;', '')).toBe('InvalidSignatureException');
    expect(swap('x-amz-date;', '')).toBe('InvalidSignatureException');
    expect(swap('content-length;content-type', 'content-type;content-length')).toBe('InvalidSignatureException');
    expect(swap(/Signature=./, 'Signature=g')).toBe('IncompleteSignatureException');
    expect(swap(/.$/, auth.endsWith('0') ? '1' : '0')).toBe('InvalidSignatureException');
    expect(swap('AWS4-HMAC-SHA256', 'AWS4-HMAC-SHA1')).toBe('IncompleteSignatureException');
    expect(swap(/, Signature=.*/, '')).toBe('IncompleteSignatureException');
    expect(outcome({ ...request, rawHeaders: setHeader(request, 'authorization', undefined) })).toBe(
      'MissingAuthenticationTokenException',
    );
  });

  it('that two sides read differently, of a header beyond ASCII, is named', async () => {
    const name = 'x-amzn-bedrock-agentcore-runtime-session-id';
    const request = await signed({ headers: { [name]: 'é'.repeat(40) } });
    // As Node sends it.
    expect(outcome(request)).toBe('AKIAONE');
    // As botocore sends it, and Node gives it to the server.
    const utf8 = Buffer.from(header(request, name)).toString('latin1');
    const sent = { ...request, rawHeaders: setHeader(request, name, utf8) };
    expect(() => authenticator.authenticate(sent)).toThrow(`The header ${name} must be of printable ASCII characters.`);
    expect(outcome(sent)).toBe('ValidationException');
    const authorization = header(request, 'authorization').replace('AKIAONE', 'NOBODY');
    expect(outcome({ ...sent, rawHeaders: setHeader(sent, 'authorization', authorization) })).toBe(
      'UnrecognizedClientException',
    );
  });

  it('of a presigned URL is refused', async () => {
    const request = await signed({ method: 'GET', presign: 300, key: 'ASIAONE', query: { shellId: 'one' } });
    expect(outcome(request)).toBe('ASIAONE');
    const url = request.rawUrl;
    for (const [from, to] of [
      ['Expires=300', 'Expires=301'],
      ['Expires=300', 'Expires=604801'],
      ['Expires=300', 'Expires=-1'],
      ['shellId=one', 'shellId=two'],
      ['Date=20261121', 'Date=20261120'],
      ['the-token', 'a-token'],
      ['SignedHeaders=host', 'SignedHeaders=date'],
      ['eu-test-1', 'eu-test-2'],
      ['ASIAONE', 'AKIAONE'],
      ['Signature=', 'Signature=0'],
    ] as const) {
      expect(url).toContain(from);
      expect(outcome({ ...request, rawUrl: url.replace(from, to) }), to).not.toBe('ASIAONE');
    }
    expect(outcome({ ...request, rawUrl: `${url}&X-Amz-Expires=300` })).toBe('IncompleteSignatureException');
    const both = [...request.rawHeaders, 'authorization', 'AWS4-HMAC-SHA256 x'];
    expect(outcome({ ...request, rawHeaders: both })).toBe('IncompleteSignatureException');
  });
});

/** A signer that follows no rule but the arithmetic, for what the official one refuses to sign. */
function handSigned(plan: {
  headers: string[];
  signedHeaders: string;
  hash?: string;
  timestamp?: string;
  scopeDate?: string;
  rawUrl?: string;
  canonicalQuery?: string;
  /** What is signed for a name, where that is not what the headers say. */
  values?: Record<string, string>;
}): SignedRequest {
  const { headers, signedHeaders, hash = sha(''), timestamp = '20261121T153000Z', rawUrl = '/x' } = plan;
  const value = (name: string): string =>
    headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === name).join(',');
  const lines = signedHeaders.split(';').map((name) => `${name}:${plan.values?.[name] ?? value(name)}\n`);
  const path = rawUrl.split('?')[0];
  const canonical = `GET\n${path}\n${plan.canonicalQuery ?? ''}\n${lines.join('')}\n${signedHeaders}\n${hash}`;
  const scope = `${plan.scopeDate ?? timestamp.slice(0, 8)}/eu-test-1/bedrock-agentcore/aws4_request`;
  const key = scope
    .split('/')
    .reduce<string | Buffer>((k, part) => createHmac('sha256', k).update(part).digest(), 'AWS4one/secret+');
  const text = `AWS4-HMAC-SHA256\n${timestamp}\n${scope}\n${sha(canonical)}`;
  const signature = createHmac('sha256', key).update(text).digest('hex');
  const authorization = `AWS4-HMAC-SHA256 Credential=AKIAONE/${scope},SignedHeaders=${signedHeaders},Signature=${signature}`;
  return {
    method: 'GET',
    rawUrl,
    rawHeaders: [...headers, 'Authorization', authorization],
    service: 'bedrock-agentcore',
  };
}

describe('a signature that is right as arithmetic', () => {
  const date = ['X-Amz-Date', '20261121T153000Z'];
  const host = ['Host', 'h'];
  const httpDate = ['Date', new Date(NOW).toUTCString()];
  const refused = (plan: Parameters<typeof handSigned>[0]): string => outcome(handSigned(plan));

  it('is accepted when it follows the rules', () => {
    expect(refused({ headers: [...date, ...host], signedHeaders: 'host;x-amz-date' })).toBe('AKIAONE');
    expect(refused({ headers: [...httpDate, ...host], signedHeaders: 'date;host' })).toBe('AKIAONE');
  });

  it('may name the host as HTTP/2 does', () => {
    const authority = { headers: [...date, ...host], signedHeaders: ':authority;x-amz-date' };
    expect(refused({ ...authority, values: { ':authority': 'h' } })).toBe('AKIAONE');
    expect(refused({ ...authority, values: { ':authority': 'another' } })).toBe('InvalidSignatureException');
  });

  it('is refused when it leaves out the host or a date, or lists names in disorder', () => {
    expect(refused({ headers: [...date, ...host], signedHeaders: 'x-amz-date' })).toBe('InvalidSignatureException');
    expect(refused({ headers: [...date, ...host], signedHeaders: 'host' })).toBe('InvalidSignatureException');
    expect(refused({ headers: [...httpDate, ...host], signedHeaders: 'host' })).toBe('IncompleteSignatureException');
    const disorder = { headers: [...date, ...host], signedHeaders: 'x-amz-date;host' };
    expect(refused(disorder)).toBe('InvalidSignatureException');
    expect(refused({ ...disorder, signedHeaders: 'host;host;x-amz-date' })).toBe('InvalidSignatureException');
  });

  it('is refused when a header that decides is there twice', () => {
    const twice = { headers: [...date, ...host, ...host], signedHeaders: 'host;x-amz-date' };
    expect(refused(twice)).toBe('IncompleteSignatureException');
    const other = { headers: [...date, ...host, 'x-a', '1', 'x-a', '2'], signedHeaders: 'host;x-a;x-amz-date' };
    expect(refused(other)).toBe('AKIAONE');
  });

  it('is refused when its key is of another day than its date', () => {
    const plan = { headers: [...date, ...host], signedHeaders: 'host;x-amz-date', scopeDate: '20261120' };
    expect(refused(plan)).toBe('InvalidSignatureException');
  });

  it('is refused beside a second signature in the query', () => {
    const plan = { headers: [...date, ...host], signedHeaders: 'host;x-amz-date' };
    expect(refused({ ...plan, rawUrl: '/x?X-Amz-Signature=0' })).toBe('IncompleteSignatureException');
    expect(refused({ ...plan, rawUrl: '/x?a=0', canonicalQuery: 'a=0' })).toBe('AKIAONE');
  });

  it('is refused when it declares a body and none comes', () => {
    const headers = [...date, ...host, 'x-amz-content-sha256', sha('x')];
    const plan = { headers, signedHeaders: 'host;x-amz-content-sha256;x-amz-date', hash: sha('x') };
    expect(refused(plan)).toBe('InvalidSignatureException');
    expect(outcome({ ...handSigned({ ...plan, headers: [...headers, 'content-length', '1'] }), body: 'x' })).toBe(
      'AKIAONE',
    );
  });

  it('says so when its path has segments that signers drop', () => {
    for (const rawUrl of ['//x', '/x/', '/a//b', '/a/./b', '/a/../b', '/..']) {
      const request = handSigned({ headers: [...date, ...host], signedHeaders: 'host;x-amz-date', rawUrl });
      if (rawUrl === '/x/') expect(outcome(request)).toBe('AKIAONE');
      else expect(() => authenticator.authenticate(request)).toThrow(/must have no empty, "\." or "\.\." segment/);
    }
  });
});

describe('a plus sign in a query', () => {
  it('serves neither a signed plus nor a signed space', async () => {
    for (const value of ['a+b', 'a b']) {
      const request = await signed({ query: { value } });
      expect(outcome(request)).toBe('AKIAONE');
      const altered = { ...request, rawUrl: request.rawUrl.replace(/a%2Bb|a%20b/, 'a+b') };
      expect(altered.rawUrl).toContain('a+b');
      expect(outcome(altered)).toBe('InvalidSignatureException');
    }
  });
});

describe('time', () => {
  const minutes = (n: number): number => NOW + n * 60_000;

  it('allows five minutes either way', async () => {
    for (const n of [-5, 0, 5]) expect(outcome(await signed({ at: minutes(n) }))).toBe('AKIAONE');
    for (const n of [-5.1, 5.1, -24 * 60]) {
      expect(outcome(await signed({ at: minutes(n) }))).toBe('InvalidSignatureException');
    }
  });

  it('of a presigned URL runs from its date, at most 15 minutes ahead, for its own span', async () => {
    const get = async (at: number, presign: number) =>
      outcome(await signed({ method: 'GET', presign, at: minutes(at) }));
    expect(await get(15, 60)).toBe('AKIAONE');
    expect(await get(15.1, 60)).toBe('InvalidSignatureException');
    expect(await get(-60, 3600)).toBe('AKIAONE');
    expect(await get(-60, 3599)).toBe('InvalidSignatureException');
  });

  it('that is no date is refused', async () => {
    const request = await signed();
    for (const date of ['', '20260231T000000Z', '2026-11-21', '20261121T153000', `${'9'.repeat(8)}T000000Z`]) {
      expect(outcome({ ...request, rawHeaders: setHeader(request, 'x-amz-date', date) })).toMatch(/Signature/);
    }
  });
});

describe('parsers', () => {
  it('answer anything with a ServiceError', async () => {
    const request = await signed();
    const words = fc.constantFrom(
      'AWS4-HMAC-SHA256 ',
      'Credential=',
      'SignedHeaders=',
      'Signature=',
      'host',
      ';',
      ',',
      '=',
      '/',
      'aws4_request',
      'AKIAONE',
      '20261121',
      'eu-test-1',
      'bedrock-agentcore',
      'constructor',
      '__proto__',
      ' ',
    );
    const text = fc
      .array(fc.oneof({ weight: 4, arbitrary: words }, { weight: 1, arbitrary: fc.string() }))
      .map((a) => a.join(''));
    fc.assert(
      fc.property(text, text, fc.boolean(), (first, second, inQuery) => {
        const altered = inQuery
          ? {
              ...request,
              rawUrl: `/?X-Amz-Signature=${first}&X-Amz-Credential=${second}&%=%zz&X-Amz-Algorithm=AWS4-HMAC-SHA256`,
            }
          : { ...request, rawHeaders: setHeader(request, 'authorization', `AWS4-HMAC-SHA256 ${first}`) };
        expect(outcome(altered)).toMatch(/Exception$/);
      }),
      { numRuns: 2_000 },
    );
  });
});
