import { createHash } from 'node:crypto';
import { browserScript } from '../server/browser-script.ts';

export interface PhoneScript {
  readonly text: string;
  /** The Content-Security-Policy of a flat document: no script runs on the phone but this one. */
  readonly policy: string;
}

/** Minify the client library and the part that sends events, which together are all that runs on the phone. */
export async function createPhoneScript(): Promise<PhoneScript> {
  const { minify } = await import('terser');
  const source = `${browserScript('client/handset.js')}\n${browserScript('browser/round-trip.js')}`;
  const { code = '' } = await minify(source, { ecma: 5, compress: { ecma: 5 }, format: { ecma: 5, comments: 'some' } });
  const text = code.replace(/<\/(?=script)/gi, '<\\/');
  const hash = createHash('sha256').update(text, 'utf8').digest('base64');
  const policy = [
    "default-src 'none'",
    `script-src 'sha256-${hash}'`,
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'self'",
  ].join('; ');
  return { text, policy };
}
