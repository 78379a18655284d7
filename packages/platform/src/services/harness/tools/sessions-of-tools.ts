import { Lru } from '../../../kernel/lru.ts';

/** In memory, those that were used last; others end by their own idle time. */
const MOST = 10_000;

/** Sessions of tools (code interpreters, browsers) that sessions of harnesses use, one each. */
export class SessionsOfTools {
  readonly #sessions = new Lru<string, Promise<string>>(MOST);

  /** Works in the session of this key, started where there is none, and once more in a new one where it `hasEnded` meanwhile. */
  async use<T>(
    key: string,
    start: () => Promise<string>,
    hasEnded: (error: unknown) => boolean,
    work: (sessionId: string) => Promise<T>,
  ): Promise<T> {
    const known = this.#sessions.get(key);
    if (known) {
      try {
        return await work(await known);
      } catch (error) {
        if (!hasEnded(error)) throw error;
      }
    }
    const starting = start();
    this.#sessions.set(key, starting);
    // One that did not start is nobody's.
    starting.catch(() => this.#sessions.delete(key));
    return work(await starting);
  }
}
