import { Lru } from '../lru.ts';
import type { Changes } from './change-feed.ts';

/** Resources of one kind that were read from the database, in memory for as long as the change feed says nothing else. */
export class Known<Value extends object> {
  readonly #values: Lru<string, Value>;
  readonly #loading = new Map<string, Promise<Value | undefined>>();

  /**
   * `kinds` as in the table `resources`; as many as weigh `limit` together, each 1 without `weigh`, those that were used last. `arnOf` tells which
   * one a change of that key concerns, where what is kept is made of several resources.
   */
  constructor(
    kinds: string | readonly string[],
    changes: Changes,
    limit: number,
    arnOf: (key: string) => string = (key) => key,
    weigh?: (value: Value) => number,
  ) {
    this.#values = new Lru(limit, weigh);
    changes.subscribe([kinds].flat(), async (changed) => {
      if (changed === 'all') {
        this.#values.clear();
        this.#loading.clear();
        return;
      }
      for (const { key } of changed) {
        const arn = arnOf(key);
        this.#values.delete(arn);
        this.#loading.delete(arn);
      }
    });
  }

  /** What is known of this ARN, else what `load` finds. That there is none is not kept. */
  async get(arn: string, load: () => Promise<Value | undefined>): Promise<Value | undefined> {
    const known = this.#values.get(arn) ?? this.#loading.get(arn);
    if (known) return known;
    const loading = load();
    this.#loading.set(arn, loading);
    try {
      const value = await loading;
      // A change meanwhile took the promise away: what it brings may be old.
      if (value && this.#loading.get(arn) === loading) this.#values.set(arn, value);
      return value;
    } finally {
      if (this.#loading.get(arn) === loading) this.#loading.delete(arn);
    }
  }
}
