/** A browser as far as consent needs one: it keeps cookies by host, and goes where it is sent. */
export class Browser {
  readonly #cookies = new Map<string, Map<string, string>>();
  /** Every address that it was at. */
  readonly visited: string[] = [];

  /** One request, whose answer's cookies are kept. */
  async send(url: string, init: RequestInit = {}): Promise<Response> {
    const { host } = new URL(url);
    const jar = this.#cookies.get(host) ?? new Map<string, string>();
    this.#cookies.set(host, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    this.visited.push(url);
    const answer = await fetch(url, { ...init, redirect: 'manual', headers: { ...init.headers, cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const at = pair.indexOf('=');
      if (/expires=Thu, 01 Jan 1970|max-age=0(;|$)/i.test(line)) jar.delete(pair.slice(0, at));
      else jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return answer;
  }

  /** Forgets the cookies of a site, as who logs out there. */
  leave(address: string): void {
    this.#cookies.delete(new URL(address).host);
  }

  /** Puts a cookie there, as who shares the host or the wire can. */
  plant(address: string, name: string, value: string): void {
    const { host } = new URL(address);
    this.#cookies.set(host, (this.#cookies.get(host) ?? new Map<string, string>()).set(name, value));
  }

  /** What it would send along. */
  cookie(address: string, name: string): string | undefined {
    return this.#cookies.get(new URL(address).host)?.get(name);
  }

  /** Follows redirects until an answer is none, or leads to a host that `stop` names. */
  async follow(
    url: string,
    stop: (url: URL) => boolean = () => false,
  ): Promise<{ url: string; answer: Response | undefined }> {
    let at = url;
    for (let hops = 0; hops < 15; hops += 1) {
      if (stop(new URL(at))) return { url: at, answer: undefined };
      const answer = await this.send(at);
      const location = answer.headers.get('location');
      if (location === null) return { url: at, answer };
      at = new URL(location, at).href;
    }
    throw new Error(`too many redirects: ${this.visited.join(' -> ')}`);
  }

  /** Opens a consent page and presses a button; where it leads to, or what the page says then. */
  async decide(
    authorizationUrl: string,
    decision: 'allow' | 'deny' = 'allow',
  ): Promise<{ location: string | null; answer: Response }> {
    const page = await (await this.send(authorizationUrl)).text();
    const body = new URLSearchParams({ ...fieldsOf(page), decision });
    const action = new URL(/<form[^>]* action="([^"]+)"/.exec(page)?.[1] ?? '', authorizationUrl);
    const answer = await this.send(action.href, { method: 'POST', body });
    return { location: answer.headers.get('location'), answer };
  }
}

/** The hidden fields of a page. */
export function fieldsOf(page: string): Record<string, string> {
  const found = page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g);
  return Object.fromEntries([...found].map(([, name = '', value = '']) => [name, value]));
}
