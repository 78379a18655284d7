import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { signRequest, type UnsignedRequest } from './sign-request.ts';
import { createAuthenticator } from './sigv4.ts';

const NOW = Date.UTC(2026, 10, 21, 15, 30, 0);
const KEYS = { accessKeyId: 'ASIAONE', secretAccessKey: 'one/secret+', sessionToken: 'the-token==' };
const clock = new FakeClock(NOW);
const authenticator = createAuthenticator({
  ...{ clock, region: 'eu-test-1' },
  keys: {
    find: (accessKeyId, token) =>
      accessKeyId === KEYS.accessKeyId && token === KEYS.sessionToken
        ? {
            secretAccessKey: KEYS.secretAccessKey,
            principal: {
              kind: 'iam',
              accountId: '111122223333',
              arn: 'arn:aws:iam::111122223333:user/a',
              accessKeyId,
              tags: {},
            },
          }
        : undefined,
  },
});

interface Sent {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body: string | undefined;
}

async function sign(request: UnsignedRequest, service = 'bedrock-agentcore'): Promise<Sent> {
  const { url, headers } = await signRequest(request, KEYS, { service, region: 'eu-test-1', at: NOW });
  return { method: request.method, url, headers, body: request.body === undefined ? undefined : String(request.body) };
}

/** What the platform's own verifier, which shares nothing with the signer, says of it. */
async function accepts({ method, url, headers, body = '' }: Sent, service = 'bedrock-agentcore'): Promise<boolean> {
  const all = { ...headers, host: url.host, ...(body !== '' && { 'content-length': String(Buffer.byteLength(body)) }) };
  const rawHeaders = Object.entries(all).flat();
  const { body: how } = await authenticator.authenticate({
    method,
    rawUrl: url.pathname + url.search,
    rawHeaders,
    service,
  });
  return how.kind === 'declared' && how.sha256 === createHash('sha256').update(body).digest('hex');
}

const text = fc.string({ maxLength: 12, unit: fc.constantFrom(..."ab/?&=+ %20ä€!'()*~.:@".split('')) });

it('signs what the platform itself takes as signed, whatever the query, the headers and the body are', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        method: fc.constantFrom('GET', 'POST', 'DELETE'),
        segments: fc.array(fc.string({ minLength: 1, unit: fc.constantFrom(...'ab%:é '.split('')) }), { maxLength: 3 }),
        query: fc.array(fc.tuple(text, text), { maxLength: 4 }),
        body: fc.option(text, { nil: undefined }),
        service: fc.constantFrom('bedrock-agentcore', 's3', 'execute-api'),
      }),
      async ({ method, segments, query, body, service }) => {
        const url = new URL(`https://backend.example.com:8443/${segments.map(encodeURIComponent).join('/')}`);
        url.search = query.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
        const wanted = [...url.searchParams].sort();
        const sent = await sign(
          { method, url, headers: { 'x-custom': ' a  b ', 'content-type': 'text/plain' }, body },
          service,
        );
        expect(await accepts(sent, service)).toBe(true);
        expect([...sent.url.searchParams].sort()).toEqual(wanted);
      },
    ),
    { seed: 15, numRuns: 300 },
  );
});

it('is good for this request alone: another host, path, query, header or body is none', async () => {
  const url = new URL('https://backend.example.com/things?page=1');
  const sent = await sign({ method: 'POST', url, headers: { 'mcp-session-id': 's' }, body: '{"a":1}' });
  expect(await accepts(sent)).toBe(true);
  const others: Sent[] = [
    { ...sent, url: new URL('https://platform.example.com/things?page=1') },
    { ...sent, url: new URL('https://backend.example.com/others?page=1') },
    { ...sent, url: new URL('https://backend.example.com/things?page=2') },
    { ...sent, method: 'DELETE' },
    { ...sent, headers: { ...sent.headers, 'mcp-session-id': 't' } },
    { ...sent, body: '{"a":2}' },
  ];
  for (const other of others) expect(await accepts(other).catch(() => false)).toBe(false);
  await clock.advance(300_001);
  await expect(accepts(sent)).rejects.toThrow('expired');
});

it('keeps a parameter that has the name of something else', async () => {
  const sent = await sign({ method: 'GET', url: new URL('https://a.example/?__proto__=x&constructor=y'), headers: {} });
  expect(sent.url.search).toBe('?__proto__=x&constructor=y');
});
