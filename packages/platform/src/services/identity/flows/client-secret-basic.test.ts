import fc from 'fast-check';
import { expect, it } from 'vitest';
import { clientSecretBasic } from './client-secret-basic.ts';

/** What stands in the header, as a server reads it that does not decode. */
async function raw(id: string, secret: string): Promise<string> {
  const headers = new Headers();
  await clientSecretBasic(secret)({ issuer: 'https://id.example' }, { client_id: id }, new URLSearchParams(), headers);
  return atob(headers.get('authorization')?.replace(/^Basic /, '') ?? '');
}

it('is what RFC 6749 says to a server that decodes, whatever is in id and secret', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), async (id, secret) => {
      const parts = (await raw(id, secret)).split(':');
      expect(parts.map((part) => new URLSearchParams(`a=${part}`).get('a'))).toEqual([id, secret]);
    }),
  );
});

it('has letters, digits, hyphens, dots and underscores as they are, for servers that do not', async () => {
  // As ids of Notion and secrets of Google look.
  expect(await raw('463558a3-725e-4f37-b6d3', 'GOCSPX-a_b.c')).toBe('463558a3-725e-4f37-b6d3:GOCSPX-a_b.c');
});
