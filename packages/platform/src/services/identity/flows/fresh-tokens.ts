import type { Logger } from 'pino';
import { type Clock, sleep } from '../../../kernel/clock.ts';
import type { Caller } from '../../../kernel/service.ts';
import {
  type Database,
  DatabaseBusyError,
  DatabaseUnavailableError,
  type Executor,
} from '../../../kernel/storage/index.ts';
import { changedMeanwhile, type Refreshes } from './refreshes.ts';
import type { OpenedToken, StoredToken, StoredTokens } from './stored-tokens.ts';
import type { GivenTokens } from './token-endpoint.ts';
import type { TokenRequest } from './token-request.ts';

export interface FreshTokensDeps {
  tokens: StoredTokens;
  refreshes: Refreshes;
  /** The request with its provider as that is in the database now; undefined when provider or workload is gone. */
  current(request: TokenRequest): Promise<TokenRequest | undefined>;
  database: Database;
  clock: Clock;
  log: Logger;
}

/** How a token that is over, or nearly, is replaced; undefined when it cannot be, and then it is no more. */
export type Renew = (request: TokenRequest, current: StoredToken | undefined) => Promise<GivenTokens | undefined>;

/** Whoever waits, until he goes away. Most do not have to, and a signal costs more than the token that is at hand. */
export interface Waiting {
  readonly signal: AbortSignal;
}

/** Before its end, or in the last fifth of its time. */
const AHEAD_MS = 60_000;
/** Clocks differ, and a request takes its time. */
const SKEW_MS = 5_000;
/** How long what a provider gave is kept in memory for a database that is away. */
const WRITE_MS = 40_000;
const WRITE_PAUSE_MS = 250;

/** Tokens that count for a while yet: from memory, renewed ahead of their end, by one for all. */
export class FreshTokens {
  readonly #deps: FreshTokensDeps;

  constructor(deps: FreshTokensDeps) {
    this.#deps = deps;
  }

  /**
   * The token of `key`. If it is no longer fresh, `renew` makes a new one, which is stored before anybody gets it. Undefined if no stored token can be opened and `renew`
   * gives none. If `renew` fails, this returns the stored token while it is valid, and otherwise rejects with the error of `renew`. Rejects with
   * ThrottlingException if the provider or the workload identity was changed in the meantime.
   */
  async get(
    key: string,
    request: TokenRequest,
    { caller, renew, waiting }: { caller: Caller; renew: Renew; waiting?: Waiting },
  ): Promise<OpenedToken | undefined> {
    const { tokens, log } = this.#deps;
    const known = await tokens.find(key);
    const opened = known && (await tokens.open(known, caller));
    const left = known && opened ? this.#left(known) : 'none';
    if (left === 'enough') return opened;
    const renewing = this.#renew(key, request, {
      caller,
      renew,
      ...(waiting && left === 'none' && { signal: waiting.signal }),
    });
    if (left === 'none') {
      const renewed = await renewing;
      return renewed && tokens.open(renewed, caller);
    }
    renewing.catch((err: unknown) =>
      log.warn({ err, provider: request.provider.arn }, 'a token could not be renewed ahead of its end'),
    );
    return opened;
  }

  /** Stores what a provider gave, unless `beside` rejects, in the same transaction. A database that is away for a moment does not lose it. */
  async keep(
    key: string,
    request: TokenRequest,
    { given, caller, beside }: { given: GivenTokens; caller: Caller; beside: (tx: Executor) => Promise<void> },
  ): Promise<StoredToken> {
    const { tokens, database, clock } = this.#deps;
    const sealed = await tokens.seal(key, given, caller);
    const { expiresAt } = given;
    const until = clock.now() + WRITE_MS;
    for (;;) {
      try {
        await database.transaction(async (tx) => {
          // First: whoever forgets tokens also begins with what says that they may be.
          await beside(tx);
          await tokens.put(request, { key, sealed, expiresAt }, tx);
        });
        return { key, sealed, expiresAt, updatedAt: clock.now(), renewingSince: undefined };
      } catch (error) {
        const passing = error instanceof DatabaseUnavailableError || error instanceof DatabaseBusyError;
        if (!passing || clock.now() > until) throw error;
        await sleep(clock, WRITE_PAUSE_MS);
      }
    }
  }

  async #renew(
    key: string,
    request: TokenRequest,
    { caller, renew, signal }: { caller: Caller; renew: Renew; signal?: AbortSignal },
  ): Promise<StoredToken | undefined> {
    const { tokens, refreshes, current } = this.#deps;
    const look = async (): Promise<{ token: StoredToken } | undefined> => {
      const token = await tokens.read(key);
      return token && this.#left(token) === 'enough' && (await tokens.open(token, caller)) ? { token } : undefined;
    };
    const work = async (release: (tx: Executor) => Promise<void>): Promise<{ token: StoredToken | undefined }> => {
      // Read while we hold the lease. A change of the provider ends the lease, and without the lease nothing is written.
      const now = await current(request);
      if (!now) throw changedMeanwhile();
      const given = await renew(now, await tokens.read(key));
      return { token: given && (await this.keep(key, now, { given, caller, beside: release })) };
    };
    const { accountId, workload } = request.bearer;
    const held = { key, accountId, workload, providerId: request.provider.data.id };
    const { token } = await refreshes.one<{ token: StoredToken | undefined }>(held, look, work, signal);
    return token;
  }

  #left({ expiresAt, updatedAt }: StoredToken): 'enough' | 'some' | 'none' {
    if (expiresAt === undefined) return 'enough';
    const left = expiresAt - this.#deps.clock.now();
    if (left <= SKEW_MS) return 'none';
    return left > Math.min(AHEAD_MS, (expiresAt - updatedAt) / 5) ? 'enough' : 'some';
  }
}
