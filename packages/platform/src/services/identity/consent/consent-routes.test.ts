import Fastify from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { served } from '../../../kernel/http/testing/serve-routes.ts';
import { type Authorization, sessionUriOf } from '../flows/authorization.ts';
import { fieldsOf } from '../flows/testing/browser.ts';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import { AUTHORIZE_PATH, consentRoutes } from './consent-routes.ts';

const id = (letter: string): string => letter.repeat(43);
const PROVIDER = { name: 'orders', data: { vendor: 'CustomOauth2' } } as Oauth2Provider;
const form = { 'content-type': 'application/x-www-form-urlencoded' };

const close: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const one of close.splice(0)) await one();
});

/** The pages before a federation that knows two links, and keeps what was decided. */
async function open(publicUrl: string) {
  const decided: string[] = [];
  const known = new Map(
    ['a', 'b'].map((letter) => {
      const bearer = { accountId: '1', workload: 'assistant', user: { kind: 'id', id: 'ada' } as const, madeAt: 1 };
      return [
        sessionUriOf(id(letter)),
        {
          id: id(letter),
          bearer,
          scopes: ['read'],
          resources: [],
          audiences: ['urn:stock'],
        } as unknown as Authorization,
      ];
    }),
  );
  const app = Fastify();
  close.push(() => app.close());
  const routes = consentRoutes({
    federation: {
      open: async (uri) => known.get(uri),
      parametersOf: async () => ({ claims: 'all' }),
      async allow(one) {
        decided.push(`allow ${one.id[0]}`);
        return 'https://provider.example/auth';
      },
      deny: async (one) => void decided.push(`deny ${one.id[0]}`),
      returned: async () => ({ kind: 'refused', message: 'no' }),
    },
    providerOf: async () => ({ provider: PROVIDER, host: 'provider.example' }),
    publicUrl: () => publicUrl,
  });
  await app.register(served([routes]));
  /** A browser opens a link: its cookie, and the fields of the form. */
  const show = async (letter: string, cookie?: string) => {
    const url = `${AUTHORIZE_PATH}?request_uri=${encodeURIComponent(sessionUriOf(id(letter)))}`;
    const answer = await app.inject({ method: 'GET', url, headers: cookie ? { cookie } : {} });
    const set = String(answer.headers['set-cookie']);
    return { set, cookie: set.split(';')[0] ?? '', fields: fieldsOf(answer.body), answer };
  };
  const send = (fields: Record<string, string>, cookie?: string, headers: Record<string, string> = form) =>
    app.inject({
      ...{ method: 'POST', url: AUTHORIZE_PATH, payload: new URLSearchParams(fields).toString() },
      headers: { ...headers, ...(cookie && { cookie }) },
    });
  return { decided, show, send };
}

describe('the form of the consent page', () => {
  it('stands below all that is asked for', async () => {
    const { answer } = await (await open('https://agents.example')).show('a');
    expect(answer.body).toContain('<li>urn:stock</li>');
    expect(answer.body).toContain('<li>claims<code>all</code></li>');
  });

  const allow = { decision: 'allow' };

  it.each(['http://127.0.0.1:8080', 'https://agents.example'])(
    'counts once it was shown to that browser, at %s',
    async (at) => {
      const { decided, show, send } = await open(at);
      const { cookie, fields } = await show('a');
      const answer = await send({ ...fields, ...allow }, cookie);
      expect([answer.statusCode, answer.headers.location]).toEqual([303, 'https://provider.example/auth']);
      expect((await send({ ...fields, decision: 'deny' }, cookie)).body).toContain('Denied');
      expect(decided).toEqual(['allow a', 'deny a']);
    },
  );

  it('does not count with a token that is wrong, absent, of another browser or of another link', async () => {
    const { decided, show, send } = await open('https://agents.example');
    const mine = await show('a');
    const theirs = await show('a');
    const other = await show('b', mine.cookie);
    expect(other.cookie).toBe(mine.cookie);
    const { token, ...without } = mine.fields;
    const tried = [
      await send({ ...mine.fields, ...allow, token: `${token?.slice(0, -1)}_` }, mine.cookie),
      await send({ ...without, ...allow }, mine.cookie),
      await send({ ...mine.fields, ...allow, token: theirs.fields.token ?? '' }, mine.cookie),
      await send({ ...mine.fields, ...allow, token: other.fields.token ?? '' }, mine.cookie),
      await send({ ...mine.fields, ...allow }, theirs.cookie),
      await send({ ...mine.fields, ...allow }),
      await send({ ...mine.fields, decision: 'deny', token: 'x' }, mine.cookie),
    ];
    expect(tried.map(({ statusCode }) => statusCode)).toEqual(tried.map(() => 403));
    expect(decided).toEqual([]);
    // The control.
    expect((await send({ ...mine.fields, ...allow }, mine.cookie)).statusCode).toBe(303);
  });

  it('is refused in other clothes, or too large', async () => {
    const { decided, show, send } = await open('https://agents.example');
    const { cookie, fields } = await show('a');
    expect((await send({ ...fields, ...allow }, cookie, { 'content-type': 'text/plain' })).statusCode).toBe(404);
    expect((await send({ ...fields, ...allow, more: 'x'.repeat(9000) }, cookie)).statusCode).toBe(404);
    expect(decided).toEqual([]);
  });

  it('goes by a cookie that other hosts cannot set, where there is TLS', async () => {
    const overTls = await (await open('https://agents.example/base')).show('a');
    expect(overTls.set).toMatch(
      /^__Host-agentplatform-consent=[\w-]{43}; Path=\/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure$/,
    );
    const plain = await (await open('http://127.0.0.1')).show('a');
    expect(plain.set).toMatch(/^agentplatform-consent=/);
    expect(plain.set).not.toContain('Secure');
    // One without the prefix counts for nothing where there is TLS.
    const { show } = await open('https://agents.example');
    const fixed = `agentplatform-consent=${'x'.repeat(43)}`;
    expect((await show('a', fixed)).cookie).not.toContain('x'.repeat(43));
  });
});
