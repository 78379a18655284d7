import { hash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type ConsentView, consentPage } from './consent-page.ts';
import { LEADING_HEADERS, messagePage, PAGE_HEADERS } from './page.ts';
import { scopeWords } from './scopes.ts';

const VIEW: ConsentView = {
  ...{ agent: 'assistant', vendor: 'GoogleOauth2', title: 'Google (work)', user: 'ada' },
  ...{
    scopes: ['openid', 'https://www.googleapis.com/auth/calendar.readonly', 'x.unknown'],
    resources: ['urn:orders'],
    audiences: ['urn:stock'],
    parameters: { prompt: 'login', claims: '{"userinfo":{}}' },
  },
  ...{ providerHost: 'accounts.google.com', returnHost: 'app.example' },
  ...{ action: '/identities/oauth2/authorize', fields: { request_uri: 'urn:1', token: 'abc' } },
};
const HOSTILE = [
  `<script>alert(1)</script>`,
  `"><img src=x onerror=alert(1)>`,
  `' autofocus onfocus='alert(1)`,
  `</style></title></main><h1>Allowed</h1>`,
  `<!-- <form action=//evil.example>`,
  `&lt;b&gt;`,
];

/** Everything that a browser takes for markup. */
const markup = (text: string): string[] => text.match(/<[a-z/!][^>]*>/gi) ?? [];

describe('the consent page', () => {
  it('says who asks, for whom, where, and what in words, with the scope beside', () => {
    const text = consentPage(VIEW);
    for (const told of [
      'assistant',
      'ada',
      'Google (work)',
      'accounts.google.com',
      'app.example',
      'urn:orders',
      'urn:stock',
    ])
      expect(text).toContain(told);
    expect(text).toContain('prompt<code>login</code>');
    expect(text).toContain('claims<code>{&quot;userinfo&quot;:{}}</code>');
    expect(consentPage({ ...VIEW, audiences: [], parameters: {} })).not.toMatch(/Tokens are for|also tells/);
    expect(text).toContain('See your calendars<code>https://www.googleapis.com/auth/calendar.readonly</code>');
    expect(text).toContain('Know who you are<code>openid</code>');
    expect(text).toContain('Use “x.unknown”');
    expect(text).toContain('name="viewport"');
    expect(text).toContain('prefers-color-scheme: dark');
    expect(text).not.toMatch(/<script|<link|src=|url\(|@import/);
  });

  it.each(HOSTILE)('shows %s as text, wherever it comes from', (hostile) => {
    const fields = { request_uri: hostile, token: hostile };
    const view: ConsentView = {
      ...{ ...VIEW, agent: hostile, title: hostile, user: hostile, scopes: [hostile], resources: [hostile] },
      ...{ providerHost: hostile, returnHost: hostile, action: hostile, fields },
      ...{ audiences: [hostile], parameters: { [hostile]: hostile } },
    };
    const tame = { ...view, agent: 'x', title: 'x', user: 'x', scopes: ['x'], resources: ['x'], audiences: ['x'] };
    const expected = consentPage({
      ...{
        ...tame,
        parameters: { x: 'x' },
        providerHost: 'x',
        returnHost: 'x',
        action: 'x',
        fields: { request_uri: 'x', token: 'x' },
      },
    });
    const shown = consentPage(view);
    const names = (text: string) => markup(text).map((tag) => /^<[/!]?[a-z0-9]+/i.exec(tag)?.[0]);
    const quotes = (text: string) => text.split('"').length;
    expect(names(shown)).toEqual(names(expected));
    // Nothing got out of an attribute.
    expect(quotes(shown)).toBe(quotes(expected));
    expect(markup(messagePage(hostile, hostile))).toEqual(markup(messagePage('x', 'x')));
  });

  it('turns no direction of writing, by which a name would look like another', () => {
    const shown = consentPage({ ...VIEW, agent: 'bank\u202egnihsihp', user: 'a\u2066b\u0000c' });
    expect(shown.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
    expect(shown).toContain('bank\ufffdgnihsihp');
    expect(consentPage({ ...VIEW, agent: 'بنك' })).toContain('بنك');
  });

  it('runs no script and stands in no frame; its one style is named by its hash', () => {
    const style = /<style>([\s\S]*)<\/style>/.exec(consentPage(VIEW))?.[1] ?? '';
    for (const headers of [PAGE_HEADERS, LEADING_HEADERS]) {
      const policy = headers['content-security-policy'];
      expect(policy.split('; ')).toEqual(
        expect.arrayContaining([
          ...["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"],
          `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
        ]),
      );
      expect(policy).not.toContain('unsafe');
    }
    expect(PAGE_HEADERS['content-security-policy']).toContain("form-action 'self'");
  });
});

describe('scopes in words', () => {
  it('are those of the vendor alone', () => {
    expect(scopeWords('GithubOauth2', 'repo')).toMatch(/repositories/);
    expect(scopeWords('CustomOauth2', 'repo')).toBeUndefined();
    expect(scopeWords('MicrosoftOauth2', 'https://graph.microsoft.com/Mail.Read')).toBe('Read your mail');
    for (const name of ['constructor', '__proto__', 'toString'])
      expect(scopeWords('GithubOauth2', name)).toBeUndefined();
  });
});
