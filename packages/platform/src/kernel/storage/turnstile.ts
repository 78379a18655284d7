import type { Clock } from '../clock.ts';
import { DatabaseBusyError } from './errors.ts';

interface Waiter {
  exclusive: boolean;
  enter(): void;
}

/**
 * Order in front of a database that has one connection: single statements pass freely, a transaction passes alone, and
 * all in the order they came. Waiting is bounded in number and in time (`DatabaseBusyError`), which also turns the
 * mistake of querying outside the handle of one's own transaction into an error instead of a standstill.
 */
export class Turnstile {
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #waitMs: number;
  readonly #waiting = new Set<Waiter>();
  #held = false;

  constructor(options: { clock: Clock; limit: number; waitMs: number }) {
    this.#clock = options.clock;
    this.#limit = options.limit;
    this.#waitMs = options.waitMs;
  }

  /** Starts `statement` as soon as no transaction is open; what it starts is sent before anything that came later. */
  pass<T>(statement: () => Promise<T>): Promise<T> {
    return this.#enqueue(false, statement);
  }

  /** Starts `opening` as soon as no transaction is open and keeps everyone else out until `leave` (or until it fails). */
  hold<T>(opening: () => Promise<T>): Promise<T> {
    return this.#enqueue(true, opening);
  }

  leave(): void {
    this.#held = false;
    this.#pump();
  }

  #enqueue<T>(exclusive: boolean, start: () => Promise<T>): Promise<T> {
    if (this.#waiting.size >= this.#limit) {
      return Promise.reject(new DatabaseBusyError(`${this.#limit} calls wait for the database already; try again`));
    }
    return new Promise<T>((resolve, reject) => {
      const waiter: Waiter = {
        exclusive,
        enter: () => {
          cancel();
          start().then(resolve, (error: unknown) => {
            if (exclusive) this.leave();
            reject(error);
          });
        },
      };
      const cancel = this.#held
        ? this.#clock.after(this.#waitMs, () => {
            this.#waiting.delete(waiter);
            const hint = 'a statement inside a transaction must use the handle of that transaction';
            reject(new DatabaseBusyError(`no turn on the database within ${this.#waitMs} ms (${hint})`));
          })
        : () => {};
      this.#waiting.add(waiter);
      this.#pump();
    });
  }

  #pump(): void {
    for (const waiter of this.#waiting) {
      if (this.#held) return;
      this.#waiting.delete(waiter);
      this.#held = waiter.exclusive;
      waiter.enter();
    }
  }
}
