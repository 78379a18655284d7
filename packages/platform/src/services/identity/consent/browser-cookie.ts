import { randomBytes } from 'node:crypto';

export interface BrowserCookieOptions {
  /** Where browsers reach the platform; over TLS the cookie is bound to that host. */
  publicUrl: string;
  /** What it is for; part of its name. */
  purpose: string;
  /** How long browsers keep it. */
  seconds: number;
}

/** A random secret that a browser keeps and sends along. */
export class BrowserCookie {
  readonly #secure: boolean;
  readonly #options: BrowserCookieOptions;

  constructor(options: BrowserCookieOptions) {
    this.#options = options;
    this.#secure = new URL(options.publicUrl).protocol === 'https:';
  }

  /** `__Host-` keeps other hosts of the domain from setting it; browsers take such a name over TLS alone. */
  get #name(): string {
    return `${this.#secure ? '__Host-' : ''}agentplatform-${this.#options.purpose}`;
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
    return this.#header(value, this.#options.seconds);
  }

  /** Makes the browser forget it. */
  forget(): string {
    return this.#header('', 0);
  }

  #header(value: string, seconds: number): string {
    const secure = this.#secure ? '; Secure' : '';
    return `${this.#name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
  }
}
