import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Html, html } from './page.ts';

/** Of a form with a few short texts. */
const MAX_FORM_BYTES = 8 * 1024;

/** What a form about `subject` has to bring along from that browser; other sites do not know it (CSRF). `browser` is the secret of its cookie. */
export function formToken(browser: string, subject: string): string {
  return createHmac('sha256', browser).update(`form ${subject}`).digest('base64url');
}

/** Whether a form about `subject` was shown to that browser. */
export function isFormToken(token: string, browser: string, subject: string): boolean {
  const expected = Buffer.from(formToken(browser, subject));
  const given = Buffer.from(token);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** The hidden fields of a form. */
export function hiddenFields(fields: Readonly<Record<string, string>>): Html[] {
  return Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
}

/** The fields of a form that was sent; undefined for what is no form, or too large for one of these. */
export async function readForm(req: IncomingMessage): Promise<URLSearchParams | undefined> {
  if (!/^application\/x-www-form-urlencoded(;|$)/i.test(req.headers['content-type'] ?? '')) return undefined;
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of req) {
    bytes += part.length;
    if (bytes > MAX_FORM_BYTES) return undefined;
    parts.push(part);
  }
  return new URLSearchParams(Buffer.concat(parts).toString('utf8'));
}
