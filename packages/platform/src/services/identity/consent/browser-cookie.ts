import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Tells one browser from all others while people consent; nobody is logged in by it. */
export class BrowserCookie {
  readonly #secure: boolean;

  /** `publicUrl` is where browsers reach the platform. */
  constructor(publicUrl: string) {
    this.#secure = new URL(publicUrl).protocol === 'https:';
  }

  /** `__Host-` keeps other hosts of the domain from setting it; browsers take such a name over TLS alone. */
  get #name(): string {
    return this.#secure ? '__Host-agentplatform-consent' : 'agentplatform-consent';
  }

  /** Undefined for a browser that has none; the first where there are several. */
  read(header: string | undefined): string | undefined {
    for (const one of (header ?? '').split(';')) {
      const [name, value = ''] = one.trim().split('=', 2);
      if (name === this.#name && /^[\w-]{43}$/.test(value)) return value;
    }
    return undefined;
  }

  fresh(): string {
    return randomBytes(32).toString('base64url');
  }

  /** Sent along by links from other sites, for the provider's is one of them, but not by their forms. */
  header(value: string): string {
    return `${this.#name}=${value}; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax${this.#secure ? '; Secure' : ''}`;
  }
}

/** What a form of that authorization has to bring along from that browser. */
export function formToken(browser: string, authorizationId: string): string {
  return createHmac('sha256', browser).update(`consent ${authorizationId}`).digest('base64url');
}

export function isFormToken(token: string, browser: string, authorizationId: string): boolean {
  const expected = Buffer.from(formToken(browser, authorizationId));
  const given = Buffer.from(token);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
