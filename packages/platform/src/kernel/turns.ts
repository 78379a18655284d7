/** Work of one key one after the other, in the order it was asked for, whether or not what went before succeeded; of several keys side by side. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Settles as `work` does. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).catch(() => undefined).then(work);
    this.#last.set(key, turn);
    try {
      return await turn;
    } finally {
      // The last one puts away the key, so that nothing is kept of what nobody works on.
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }

  /** Resolves when the work asked for until now has settled; of one key when that is given. */
  async settled(key?: string): Promise<void> {
    await Promise.allSettled(key === undefined ? this.#last.values() : [this.#last.get(key)]);
  }
}
