import { expect, it } from 'vitest';
import { requireSigned } from './require-signed.ts';

const headers = {
  authorization: 'AWS4-HMAC-SHA256 …',
  'x-tenant': 'blue',
  'x-other': 'a',
  'user-agent': 'a',
  'x-forwarded-for': '192.0.2.1',
};
const call = (allowlist: string[], ...signed: string[]) =>
  requireSigned({ headers, signedHeaders: new Set(['host', ...signed]) }, allowlist);

it('what an agent is given of a signed call is signed, as far as clients can sign it', () => {
  expect(() => call(['x-tenant'])).toThrow('The header "x-tenant" must be signed, because the agent gets it.');
  expect(() => call(['user-agent', 'x-tenant'], 'x-other')).toThrow();
  expect(() =>
    call(['authorization', 'x-tenant', 'user-agent', 'x-forwarded-for', 'x-absent'], 'x-tenant'),
  ).not.toThrow();
});

it.each([
  'x-forwarded-user',
  'x-forwarded-email',
  'x-forwarded-client-cert',
  'from',
  'accept-tenant',
  'sec-tenant',
  'proxy-user',
])('what says who is meant is signed, though proxies add its like: %s', (name) => {
  const signed = { headers: { [name]: 'mallory' }, signedHeaders: new Set(['host']) };
  expect(() => requireSigned(signed, [name])).toThrow(`The header "${name}" must be signed`);
  expect(() => requireSigned({ ...signed, signedHeaders: new Set(['host', name]) }, [name])).not.toThrow();
});

it('a token signs nothing, and what another server has verified is not asked again', () => {
  expect(() => requireSigned({ headers }, ['x-tenant'])).not.toThrow();
});
