/** Many at once, or one alone: nobody shares while somebody is alone, who waits until those before him are done. */
export class Gate {
  readonly #sharing = new Set<Promise<unknown>>();
  #alone: Promise<unknown> | undefined;

  async shared<T>(work: () => Promise<T>): Promise<T> {
    while (this.#alone) await this.#alone;
    const done = work();
    const settled = done.catch(() => undefined);
    this.#sharing.add(settled);
    try {
      return await done;
    } finally {
      this.#sharing.delete(settled);
    }
  }

  async exclusive<T>(work: () => Promise<T>): Promise<T> {
    while (this.#alone) await this.#alone;
    const done = Promise.all(this.#sharing).then(work);
    const settled = done.catch(() => undefined);
    this.#alone = settled;
    try {
      return await done;
    } finally {
      if (this.#alone === settled) this.#alone = undefined;
    }
  }
}
