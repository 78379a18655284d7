interface Flight<T> {
  promise: Promise<T>;
  waiters: number;
  controller: AbortController;
}

/**
 * Runs the work of one key once for all who ask while it runs. A caller's signal ends only that caller's wait; the work
 * itself is aborted when nobody waits for it any more.
 */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  keys(): string[] {
    return [...this.#flights.keys()];
  }

  async run(key: string, work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    let flight = this.#flights.get(key);
    // Work that was abandoned is still cleaning up; wait for its end instead of racing it.
    while (flight?.controller.signal.aborted) {
      await flight.promise.catch(() => undefined);
      flight = this.#flights.get(key);
    }
    flight ??= this.#start(key, work);
    return this.#join(flight, signal);
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const promise = work(controller.signal).finally(() => this.#flights.delete(key));
    const flight = { promise, waiters: 0, controller };
    this.#flights.set(key, flight);
    return flight;
  }

  #join(flight: Flight<T>, signal: AbortSignal | undefined): Promise<T> {
    flight.waiters += 1;
    return new Promise<T>((resolve, reject) => {
      let waiting = true;
      const leave = (): void => {
        if (!waiting) return;
        waiting = false;
        signal?.removeEventListener('abort', onAbort);
        flight.waiters -= 1;
      };
      const onAbort = (): void => {
        leave();
        if (flight.waiters === 0) flight.controller.abort(signal?.reason);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      flight.promise.then(resolve, reject).finally(leave);
      if (signal?.aborted) onAbort();
    });
  }
}
