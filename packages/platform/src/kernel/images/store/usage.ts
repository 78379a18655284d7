import type { Clock } from '../../clock.ts';
import { SingleFlight } from '../../single-flight.ts';
import { ImageError } from '../images.ts';
import { describeBytes } from '../limits.ts';
import type { ImageStore } from './image-store.ts';

export interface UsageLimits {
  /** Bytes that all images of one account may take together: blobs and manifests that it pushed, that were pulled for it and made of its code, and its unpacked images. */
  accountBytes: number;
  /** Manifests, tags and blobs that the repositories of one account may name together. */
  accountParts: number;
}

export const DEFAULT_USAGE_LIMITS: UsageLimits = { accountBytes: 50 * 1024 ** 3, accountParts: 100_000 };

export interface UsageDeps {
  store: ImageStore;
  clock: Clock;
  limits: UsageLimits;
  /** Bytes that the unpacked trees of these images take beside those that they share. */
  treeBytes(images: ReadonlySet<string>): Promise<number>;
  /** Digests of the platform's own images and all their parts, which count for nobody. */
  common(): Promise<ReadonlySet<string>>;
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

/** Holds accounts to what their images may take. Counts files once and then goes on from there. */
export class ImageUsage {
  readonly #deps: UsageDeps;
  readonly #counted = new Map<string, Usage>();
  readonly #counting = new SingleFlight<Usage>();
  /** Bytes for which room was made and that are not all there yet. */
  readonly #arriving = new Map<string, number>();

  constructor(deps: UsageDeps) {
    this.#deps = deps;
  }

  /** Throws `ImageError` `quota` when the account has all that it may have, the bytes that are only arriving among it. */
  async check(account: string, arriving: number): Promise<void> {
    await this.#take(account, { bytes: arriving, parts: 0 }, () => undefined);
  }

  /** Counts what is about to be kept; throws `ImageError` `quota`, and counts nothing, when it would be too much. */
  async take(account: string, more: Parts): Promise<void> {
    await this.#take(account, more, (usage) => {
      usage.bytes += more.bytes;
      usage.parts += more.parts;
    });
  }

  /** Runs `work`, which writes at most so many bytes for the account, and counts what has become of them. Throws `ImageError` `quota` before it begins. */
  async during<T>(account: string | undefined, bytes: number, work: () => Promise<T>): Promise<T> {
    if (account === undefined || bytes === 0) return work();
    await this.#take(account, { bytes, parts: 0 }, () => {
      this.#arriving.set(account, this.#arrivingOf(account) + bytes);
    });
    try {
      return await work();
    } finally {
      const left = this.#arrivingOf(account) - bytes;
      if (left > 0) this.#arriving.set(account, left);
      else this.#arriving.delete(account);
      this.forget(account);
    }
  }

  /** Bytes that the account may still add, counted anew. Throws `ImageError` `quota` when it is none. */
  async room(account: string): Promise<number> {
    const usage = await this.#count(account);
    const refusal = this.#refusal(account, usage, { bytes: 1, parts: 0 });
    if (refusal) throw refusal;
    return this.#deps.limits.accountBytes - usage.bytes - this.#arrivingOf(account);
  }

  /** Has what the account keeps counted anew before the next answer. */
  forget(account: string): void {
    this.#counted.delete(account);
  }

  /** What is thrown at an account whose images may not take more bytes. */
  tooManyBytes(): ImageError {
    const most = describeBytes(this.#deps.limits.accountBytes);
    return new ImageError(
      'quota',
      `this account's images may take ${most}, those that were pushed, pulled and made of code, and what they are unpacked; delete some, or raise quotas.imageBytesPerAccount`,
    );
  }

  /** Calls `keep` if there is room for `more`, with nothing in between. */
  async #take(account: string, more: Parts, keep: (usage: Usage) => void): Promise<void> {
    let usage = this.#counted.get(account) ?? (await this.#count(account));
    // Something may have been deleted, or been there already when it came.
    if (this.#refusal(account, usage, more) && this.#deps.clock.monotonic() - usage.countedAt >= BELIEVED_MS)
      usage = await this.#count(account);
    const refusal = this.#refusal(account, usage, more);
    if (refusal) throw refusal;
    keep(usage);
  }

  #refusal(account: string, usage: Usage, more: Parts): ImageError | undefined {
    const { accountBytes, accountParts } = this.#deps.limits;
    if (usage.bytes + this.#arrivingOf(account) + more.bytes > accountBytes) return this.tooManyBytes();
    if (usage.parts + more.parts <= accountParts) return undefined;
    return new ImageError(
      'quota',
      `this account's repositories may hold ${accountParts} manifests, tags and layers; delete some, or raise quotas.imagePartsPerAccount`,
    );
  }

  #arrivingOf(account: string): number {
    return this.#arriving.get(account) ?? 0;
  }

  #count(account: string): Promise<Usage> {
    return this.#counting.run(account, async () => {
      const { store, clock, treeBytes, common } = this.#deps;
      const shared = await common();
      const own = new Set([...(await store.repositories.blobs(account))].filter((digest) => !shared.has(digest)));
      let bytes = await treeBytes(own);
      for (const digest of own) bytes += (await store.blobs.size(digest)) ?? 0;
      const usage = { bytes, parts: await store.repositories.parts(account), countedAt: clock.monotonic() };
      if (this.#counted.size >= MOST_ACCOUNTS) this.#counted.clear();
      this.#counted.set(account, usage);
      return usage;
    });
  }
}
