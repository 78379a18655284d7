import { hash } from 'node:crypto';
import type { FastifyReply } from 'fastify';

/** HTML that may stand in a page: what `html` made. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | Html | readonly Html[] | undefined;

/** An HTML template. Texts in it are escaped. Parts of type `Html` are inserted unchanged. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(String.raw({ raw: strings }, ...parts.map(written)));
}

function written(part: Part): string {
  if (part === undefined) return '';
  if (typeof part === 'string') return asText(part);
  return part instanceof Html ? part.text : part.map(({ text }) => text).join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Marks that turn the direction of writing, and control characters, are shown as what they are: they make a name look like another. */
function asText(text: string): string {
  return text
    .replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
    .replace(/[&<>"']/g, (letter) => ENTITIES[letter] ?? letter);
}

const STYLE = `
:root { color-scheme: light dark; --paper: #f4f5f7; --card: #fff; --ink: #1c2026; --soft: #5a626e; --line: #dcdfe4; --accent: #1f5fbf; --on-accent: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171b; --card: #1e2228; --ink: #eceef1; --soft: #a3abb7; --line: #363c45; --accent: #8ab4f8; --on-accent: #10151c; }
}
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 32rem; margin: 0 auto; padding: 1.5rem; background: var(--card); border: 1px solid var(--line); border-radius: .75rem; }
@media (min-width: 40rem) { body { padding: 4rem 1rem; } main { padding: 2rem 2.5rem; } }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; }
h2 { margin: 1.5rem 0 .5rem; font-size: 1rem; }
p { margin: .75rem 0; }
dl { margin: 1rem 0; }
dt { color: var(--soft); font-size: .875rem; }
dd { margin: 0 0 .5rem; font-weight: 600; }
ul { margin: .5rem 0; padding: 0; list-style: none; border-top: 1px solid var(--line); }
li { padding: .625rem 0; border-bottom: 1px solid var(--line); }
code { color: var(--soft); font: .8125rem/1.4 ui-monospace, monospace; }
small, .soft { color: var(--soft); font-size: .875rem; }
small, code { display: block; }
form { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 0; }
li form { margin: .5rem 0 0; }
button { flex: 1 1 8rem; min-height: 2.75rem; padding: .5rem 1rem; border: 1px solid var(--line); border-radius: .5rem; background: transparent; color: inherit; font: inherit; font-weight: 600; cursor: pointer; }
button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
li button { flex: 0 1 auto; }
a { color: var(--accent); }
button:focus-visible, a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
`;

/** A whole page, which needs no script and loads nothing. */
export function page(title: string, body: Html): string {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>
<style>${new Html(STYLE)}</style></head>
<body><main>
<h1>${title}</h1>
${body}
</main></body></html>
`.text;
}

/** A page that tells how something ended. */
export function messagePage(title: string, text: string): string {
  return page(title, html`<p>${text}</p>`);
}

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Headers of every page: no script, no frame, nothing of elsewhere, kept nowhere. A form leads to this platform alone. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `${POLICY}; form-action 'self'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

/** The same where a form leads on to a provider: browsers hold every hop of it to `form-action`, and nobody knows a provider's hops. */
export const LEADING_HEADERS = { ...PAGE_HEADERS, 'content-security-policy': POLICY } as const;

/** Answers with a page. */
export function sendPage(
  reply: FastifyReply,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = PAGE_HEADERS,
): FastifyReply {
  return reply.code(status).headers(headers).send(text);
}

/** Sends the browser on. */
export function sendTo(reply: FastifyReply, location: string): FastifyReply {
  return reply
    .headers({ ...PAGE_HEADERS, location })
    .code(303)
    .send();
}
