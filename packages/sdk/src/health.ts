/** `HealthyBusy` keeps a session alive though nobody calls it. */
export type PingStatus = 'Healthy' | 'HealthyBusy';

/** Decides the status itself; may be asynchronous, then it has two seconds. */
export type PingHandler = () => PingStatus | Promise<PingStatus>;

export interface RunningTask {
  name: string;
  /** Seconds since it began. */
  duration: number;
}

const handlerLimitMs = 2000;

/** What `GET /ping` answers: a forced status, else the custom handler's, else busy while tasks run. */
export class Health {
  #forced: PingStatus | undefined;
  #handler: PingHandler | undefined;
  #last: PingStatus = 'Healthy';
  #changedAt: number;
  #nextTask = 1;
  readonly #tasks = new Map<number, { name: string; since: number }>();
  readonly #now: () => number;
  readonly #warn: (message: string, error: unknown) => void;

  constructor(now: () => number, warn: (message: string, error: unknown) => void) {
    this.#now = now;
    this.#warn = warn;
    this.#changedAt = now();
  }

  force(status: PingStatus | undefined): void {
    this.#forced = status;
  }

  use(handler: PingHandler): void {
    this.#handler = handler;
  }

  add(name: string): number {
    const id = this.#nextTask++;
    this.#tasks.set(id, { name, since: this.#now() });
    return id;
  }

  complete(id: number): boolean {
    return this.#tasks.delete(id);
  }

  tasks(): RunningTask[] {
    return [...this.#tasks.values()].map(({ name, since }) => ({ name, duration: (this.#now() - since) / 1000 }));
  }

  /** The answer of `/ping`; the time is that of the last change, in Unix seconds. Never rejects. */
  async report(): Promise<{ status: PingStatus; time_of_last_update: number }> {
    const status = this.#forced ?? (await this.#asked()) ?? (this.#tasks.size > 0 ? 'HealthyBusy' : 'Healthy');
    if (status !== this.#last) {
      this.#last = status;
      this.#changedAt = this.#now();
    }
    return { status, time_of_last_update: Math.floor(this.#changedAt / 1000) };
  }

  async #asked(): Promise<PingStatus | undefined> {
    if (!this.#handler) return undefined;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${handlerLimitMs} ms`)), handlerLimitMs);
      timer.unref();
    });
    try {
      const status = await Promise.race([this.#handler(), late]);
      if (status === 'Healthy' || status === 'HealthyBusy') return status;
      throw new TypeError(`${String(status)} is neither Healthy nor HealthyBusy`);
    } catch (error) {
      this.#warn('the ping handler failed; answering by the running tasks instead', error);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}
