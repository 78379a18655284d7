import { errors, type OperationName } from '@agentplatform/contract';
import { ownerOf, type Principal } from '../auth/index.ts';
import { addressKey } from './address-key.ts';
import { tooMany } from './too-many.ts';
import type { TrustedAddresses } from './trusted-addresses.ts';

export interface BodyMemoryOptions {
  /** Bytes that all bodies may take together; half of them are the most of one caller, and the last quarter is for short bodies. */
  totalBytes: number;
  /** Whose bodies count in the total alone. */
  trusted: Pick<TrustedAddresses, 'has'>;
}

/** What a short body has at most. */
const SHORT_BYTES = 64 * 1024;

/** Bytes of bodies that are read whole and not answered yet. A reader takes bytes as they arrive, so that announcing a length takes none. */
export class BodyMemory {
  readonly #totalBytes: number;
  readonly #trusted: BodyMemoryOptions['trusted'];
  readonly #ofOwner = new Map<string, number>();
  #taken = 0;

  constructor({ totalBytes, trusted }: BodyMemoryOptions) {
    this.#totalBytes = totalBytes;
    this.#trusted = trusted;
  }

  /** What is taken now, in bytes. */
  get taken(): number {
    return this.#taken;
  }

  /** The memory of one request, counted by its sender if known, else by its address. */
  of(principal: Principal | undefined, address: string | undefined): HeldBody {
    const owner = principal ? ownerOf(principal) : addressKey(address);
    return new HeldBody(this, this.#trusted.has(address) ? undefined : owner);
  }

  /**
   * Takes bytes for an owner, for a body that has so many then; without an owner only the total counts. Throws ServiceUnavailableException (503) when all is taken, ThrottlingException or
   * what the operation calls that (429) when the owner has his share.
   */
  take(
    owner: string | undefined,
    bytes: number,
    { length, operation }: { length: number; operation?: OperationName | undefined },
  ): void {
    if (owner !== undefined) {
      const own = (this.#ofOwner.get(owner) ?? 0) + bytes;
      const most = Math.floor(this.#totalBytes / 2);
      if (own > most)
        throw tooMany(`The bodies of requests of ${owner} that are not answered yet have more than ${most} bytes`, {
          ...{ seconds: 1, operation, remedy: 'Send fewer at once', setting: 'maxBodyBytesInMemory' },
        });
      this.#room(bytes, length);
      this.#ofOwner.set(owner, own);
    } else this.#room(bytes, length);
    this.#taken += bytes;
  }

  give(owner: string | undefined, bytes: number): void {
    this.#taken -= bytes;
    if (owner === undefined) return;
    const left = (this.#ofOwner.get(owner) ?? 0) - bytes;
    if (left > 0) this.#ofOwner.set(owner, left);
    else this.#ofOwner.delete(owner);
  }

  #room(bytes: number, length: number): void {
    const most = length > SHORT_BYTES ? Math.floor((this.#totalBytes * 3) / 4) : this.#totalBytes;
    if (this.#taken + bytes <= most) return;
    throw errors.unavailable(`The bodies of all requests that are not answered yet have nearly ${most} bytes.`, {
      remedy: 'Repeat the request in a moment, or raise maxBodyBytesInMemory.',
      retryAfterSeconds: 1,
    });
  }
}

/** What one request has taken. */
export class HeldBody {
  readonly #memory: BodyMemory;
  readonly #owner: string | undefined;
  #bytes = 0;

  constructor(memory: BodyMemory, owner: string | undefined) {
    this.#memory = memory;
    this.#owner = owner;
  }

  /** Throws what `BodyMemory.take` throws. */
  take(bytes: number, operation?: OperationName): void {
    const length = this.#bytes + bytes;
    this.#memory.take(this.#owner, bytes, { length, operation });
    this.#bytes = length;
  }

  /** Once the body is needed no more. */
  release(): void {
    this.#memory.give(this.#owner, this.#bytes);
    this.#bytes = 0;
  }
}
