import type { Clock } from '../../clock.ts';
import type { Owner } from './owner.ts';

export interface OwnerPoolOptions {
  /** Owners kept ready; 0 makes each when it is asked for. */
  size: number;
  clock: Clock;
  make(): Promise<Owner>;
  /** Gives back what a discarded owner's address occupies. */
  release(owner: Owner): Promise<void>;
  onError(error: unknown): void;
}

/** Refilling waits for this long after the last one was taken: the two would compete for the processors. */
const REFILL_DELAY_MS = 250;

/** A few namespaces with addresses, made ahead of the sandboxes that will use them, each for exactly one. */
export class OwnerPool {
  #options: OwnerPoolOptions;
  #ready = new Set<Owner>();
  #filling = 0;
  #closed = false;
  #cancelRefill: () => void = () => undefined;
  #work = new Set<Promise<void>>();

  constructor(options: OwnerPoolOptions) {
    this.#options = options;
  }

  /** A ready owner, or a new one. */
  async take(): Promise<Owner> {
    this.#scheduleRefill();
    const [owner] = this.#ready;
    if (!owner) return this.#options.make();
    this.#ready.delete(owner);
    return owner;
  }

  get owners(): Owner[] {
    return [...this.#ready];
  }

  /** Waits until the pool is full; for tests and for start-up. */
  async fill(): Promise<void> {
    const wanted = this.#options.size - this.#ready.size - this.#filling;
    await Promise.all(Array.from({ length: Math.max(0, wanted) }, () => this.#add()));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRefill();
    await Promise.all(this.#work);
    await Promise.all([...this.#ready].map((owner) => this.#drop(owner)));
  }

  #scheduleRefill(): void {
    this.#cancelRefill();
    if (this.#closed || this.#options.size === 0) return;
    this.#cancelRefill = this.#options.clock.after(REFILL_DELAY_MS, () => void this.fill());
  }

  async #add(): Promise<void> {
    this.#filling++;
    const work = this.#options
      .make()
      .then(async (owner) => {
        this.#ready.add(owner);
        void owner.ended.then(() => this.#drop(owner));
        if (this.#closed) await this.#drop(owner);
      })
      .catch(this.#options.onError)
      .finally(() => this.#filling--);
    this.#work.add(work);
    await work;
    this.#work.delete(work);
  }

  /** Only what is still in the pool: a taken owner belongs to its sandbox. */
  async #drop(owner: Owner): Promise<void> {
    if (!this.#ready.delete(owner)) return;
    owner.discard();
    await owner.ended;
    await this.#options.release(owner).catch(this.#options.onError);
  }
}
