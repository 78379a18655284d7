import type { Clock } from '../../kernel/clock.ts';
import type { ImageStore } from '../../kernel/images/image-store.ts';
import { describeBytes } from '../../kernel/images/limits.ts';
import { SingleFlight } from '../../kernel/single-flight.ts';
import { RegistryError } from './errors.ts';

export interface UsageLimits {
  /** Bytes that the blobs and manifests of one account may take together. */
  accountBytes: number;
  /** Manifests, tags and blobs that the repositories of one account may name together. */
  accountParts: number;
}

interface Parts {
  bytes: number;
  parts: number;
}

interface Usage extends Parts {
  countedAt: number;
}

/** How long what was counted is believed before a refusal; what was deleted in the meantime gives room after this at the latest. */
const BELIEVED_MS = 5_000;
const MOST_ACCOUNTS = 1_000;

/** Holds accounts to what they may keep in their repositories. Counts files once and then goes on from there. */
export class RegistryUsage {
  readonly #store: ImageStore;
  readonly #clock: Clock;
  readonly #limits: UsageLimits;
  readonly #counted = new Map<string, Usage>();
  readonly #counting = new SingleFlight<Usage>();

  constructor(store: ImageStore, clock: Clock, limits: UsageLimits) {
    this.#store = store;
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Throws `DENIED` when the account has all that it may have, the bytes that are only arriving among it. */
  async check(account: string, arriving: number): Promise<void> {
    await this.#take(account, { bytes: arriving, parts: 0 }, { bytes: 0, parts: 0 });
  }

  /** Counts what is about to be kept; throws `DENIED`, and counts nothing, when it would be too much. */
  async take(account: string, more: Parts): Promise<void> {
    await this.#take(account, more, more);
  }

  /** Counts `kept` if there is room for `more`, with nothing in between. */
  async #take(account: string, more: Parts, kept: Parts): Promise<void> {
    let usage = this.#counted.get(account) ?? (await this.#count(account));
    // Something may have been deleted, or been there already when it came.
    if (this.#refusal(usage, more) && this.#clock.monotonic() - usage.countedAt >= BELIEVED_MS)
      usage = await this.#count(account);
    const refusal = this.#refusal(usage, more);
    if (refusal) throw refusal;
    usage.bytes += kept.bytes;
    usage.parts += kept.parts;
  }

  #refusal(usage: Usage, more: Parts): RegistryError | undefined {
    const { accountBytes, accountParts } = this.#limits;
    if (usage.bytes + more.bytes > accountBytes) {
      return new RegistryError(
        'DENIED',
        `this account's images may take ${describeBytes(accountBytes)}; delete some, or raise quotas.imageBytesPerAccount`,
      );
    }
    if (usage.parts + more.parts > accountParts) {
      return new RegistryError(
        'DENIED',
        `this account's repositories may hold ${accountParts} manifests, tags and layers; delete some, or raise quotas.imagePartsPerAccount`,
      );
    }
    return undefined;
  }

  #count(account: string): Promise<Usage> {
    return this.#counting.run(account, async () => {
      const { repositories, blobs } = this.#store;
      let bytes = 0;
      for (const digest of await repositories.blobs(account)) bytes += (await blobs.size(digest)) ?? 0;
      const usage = { bytes, parts: await repositories.parts(account), countedAt: this.#clock.monotonic() };
      if (this.#counted.size >= MOST_ACCOUNTS) this.#counted.clear();
      this.#counted.set(account, usage);
      return usage;
    });
  }
}
