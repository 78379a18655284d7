import { errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';

/** A package as a package manager installs it. */
export interface Package {
  /** Name and version are in it: `agentplatform-0.1.0-py3-none-any.whl`. */
  fileName: string;
  bytes: Buffer;
}

export interface PackageShelfDeps {
  /** Make the packages from the source. */
  makers: readonly (() => Promise<Package>)[];
  clock: Clock;
  log: Logger;
}

/** Anybody may ask, so that a failure must not become work at each question. */
const FAILED_MS = 60_000;

/** The packages of the platform, made at the first question and kept in memory until the server ends: they are few, and a few megabytes with the policy engine of the command line. */
export class PackageShelf {
  readonly #deps: PackageShelfDeps;
  #made: Promise<readonly Package[]> | undefined;
  /** Milliseconds of the clock from which on another attempt is made after one that failed. */
  #againAt = Number.POSITIVE_INFINITY;

  constructor(deps: PackageShelfDeps) {
    this.#deps = deps;
  }

  /** All of them. Rejects with ServiceUnavailableException where they cannot be made, the reason being in the log. */
  all(): Promise<readonly Package[]> {
    const { clock } = this.#deps;
    if (this.#made === undefined || clock.monotonic() >= this.#againAt) {
      this.#againAt = Number.POSITIVE_INFINITY;
      this.#made = this.#make();
    }
    return this.#made;
  }

  async #make(): Promise<readonly Package[]> {
    const { makers, clock, log } = this.#deps;
    try {
      const made: Package[] = [];
      // One after the other: each may take the machine's processors.
      for (const make of makers) made.push(await make());
      return made;
    } catch (error) {
      log.error({ err: error }, 'the packages of the platform could not be made from its source');
      this.#againAt = clock.monotonic() + FAILED_MS;
      throw errors.unavailable('The packages could not be made from the source of this platform.', {
        remedy: "Install them from a clone; the platform's log has the reason.",
        cause: error,
      });
    }
  }
}
