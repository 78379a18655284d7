import type { Clock } from '../../../kernel/clock.ts';
import { Secret } from '../../../kernel/secrets/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import { type Changes, type Database, type Executor, Known } from '../../../kernel/storage/index.ts';
import { list, type Shape, storedText, text } from '../../../kernel/stored-shape.ts';
import type { TokenVaults } from '../vault/token-vaults.ts';
import type { Forgotten } from './refreshes.ts';
import type { GivenTokens } from './token-endpoint.ts';
import { namesOf, type TokenRequest } from './token-request.ts';

export interface StoredTokensDeps {
  database: Database;
  changes: Changes;
  vaults: Pick<TokenVaults, 'seal' | 'open'>;
  clock: Pick<Clock, 'now'>;
}

/** A token in the vault, closed. */
export interface StoredToken {
  key: string;
  sealed: string;
  /** Milliseconds since the epoch; undefined where nobody said when it ends. */
  expiresAt: number | undefined;
  /** When it was asked for last; the same. */
  updatedAt: number;
  /** Since when a refresh token is on its way of which no answer has been written; the same. */
  renewingSince: number | undefined;
}

/** What is in one. */
export interface OpenedToken {
  accessToken: string;
  refreshToken: string | undefined;
}

/** The two of them, the second `null` where there is none. */
const TOKENS: Shape<OpenedToken> = (value, at) => {
  const [accessToken, refreshToken] = list((item) => item)(value, at);
  return {
    accessToken: text(accessToken, `${at}[0]`),
    refreshToken: refreshToken === null ? undefined : text(refreshToken, `${at}[1]`),
  };
};

/** What a grant lets be done, without its token. */
export interface Grant {
  key: string;
  providerArn: string;
  providerId: string;
  workload: string;
  /** One for an id, two for issuer and subject, none of machine to machine. */
  userNames: string[];
  scopes: string[];
  /** Milliseconds since the epoch. */
  grantedAt: number;
}

interface TokenRow {
  sealed: string;
  expires_at: Date | null;
  updated_at: Date;
  renewing_since: Date | null;
}

interface GrantRow {
  key: string;
  provider_arn: string;
  provider_id: string;
  workload: string;
  user_names: unknown;
  scopes: unknown;
  granted_at: Date;
}

/** Closed as they are: the vault opens one for each use, with the right of who uses it. */
const KNOWN_TOKENS = 10_000;
const TOPIC = 'identity_tokens';

/** The tokens of agents and users, in the database under the keys of their accounts' vaults. */
export class StoredTokens {
  readonly #deps: StoredTokensDeps;
  readonly #known: Known<StoredToken>;
  /** By what the vault has opened, for as long as it has that at hand. */
  readonly #read = new WeakMap<Secret, OpenedToken>();

  constructor(deps: StoredTokensDeps) {
    this.#deps = deps;
    this.#known = new Known(TOPIC, deps.changes, KNOWN_TOKENS);
  }

  /** From memory where it was used before. Throws ServiceUnavailableException when memory may be older than the database. */
  find(key: string): Promise<StoredToken | undefined> {
    this.#deps.changes.need();
    return this.#known.get(key, () => this.read(key));
  }

  /** From the database. */
  async read(key: string, executor: Executor = this.#deps.database): Promise<StoredToken | undefined> {
    const [row] = await executor.query<TokenRow>(
      'SELECT sealed, expires_at, updated_at, renewing_since FROM identity_tokens WHERE key = $1',
      [key],
    );
    if (!row) return undefined;
    const { sealed, expires_at: expiresAt, updated_at: updatedAt, renewing_since: renewingSince } = row;
    return {
      ...{ key, sealed, expiresAt: expiresAt?.getTime(), updatedAt: updatedAt.getTime() },
      renewingSince: renewingSince?.getTime(),
    };
  }

  /** What is in it; undefined for what was lost with the vault's key. Rejects with AccessDeniedException as `TokenVaults.open` does. */
  async open({ key, sealed }: StoredToken, caller: Caller): Promise<OpenedToken | undefined> {
    const opened = await this.#deps.vaults.open(sealed, contextOf(key), caller);
    if (!opened) return undefined;
    const known = this.#read.get(opened);
    if (known) return known;
    const read = storedText(TOKENS, opened.reveal());
    this.#read.set(opened, read);
    return read;
  }

  /** Closes a token before it is written. */
  seal(key: string, { accessToken, refreshToken }: OpenedToken, caller: Caller): Promise<string> {
    const text = new Secret(JSON.stringify([accessToken, refreshToken ?? null]));
    return this.#deps.vaults.seal(text, contextOf(key), caller);
  }

  /** How many tokens of its own an agent has that still count. */
  async countOwn({ accountId, workload }: Pick<TokenRequest['bearer'], 'accountId' | 'workload'>): Promise<number> {
    const { database, clock } = this.#deps;
    const [row] = await database.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM identity_tokens
       WHERE account_id = $1 AND workload = $2 AND user_names = '[]' AND expires_at > $3`,
      [accountId, workload, new Date(clock.now())],
    );
    return row?.count ?? 0;
  }

  /** Stores or replaces. */
  async put(
    request: TokenRequest,
    { key, sealed, expiresAt }: Pick<StoredToken, 'key' | 'sealed'> & Pick<GivenTokens, 'expiresAt'>,
    tx: Executor,
  ): Promise<void> {
    const { provider, bearer, scopes } = request;
    const now = new Date(this.#deps.clock.now());
    await tx.execute(
      `INSERT INTO identity_tokens
         (key, account_id, provider_arn, provider_id, workload, user_names, scopes, sealed, expires_at, granted_at, updated_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
       ON CONFLICT (key) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at, updated_at = excluded.updated_at,
         renewing_since = NULL`,
      [
        key,
        bearer.accountId,
        provider.arn,
        provider.data.id,
        bearer.workload,
        JSON.stringify(namesOf(bearer.user)),
        JSON.stringify(scopes),
        sealed,
        expiresAt === undefined ? null : new Date(expiresAt),
        now,
      ],
    );
  }

  /**
   * Writes down that its refresh token is being sent, before it is: `put` says that an answer came, and `callOff` that nothing was given. False
   * when it is another token by now, or gone.
   */
  async intend({ key, sealed, renewingSince }: StoredToken): Promise<boolean> {
    const { database, clock } = this.#deps;
    const since = new Date(renewingSince ?? clock.now());
    const sql = 'UPDATE identity_tokens SET renewing_since = $3 WHERE key = $1 AND sealed = $2';
    return (await database.execute(sql, [key, sealed, since])) > 0;
  }

  /** The provider has refused: the refresh token is as it was. */
  async callOff({ key, sealed }: StoredToken): Promise<void> {
    const sql = 'UPDATE identity_tokens SET renewing_since = NULL WHERE key = $1 AND sealed = $2';
    await this.#deps.database.execute(sql, [key, sealed]);
  }

  /** Whether there was one. With `sealed`: only while it is that very one. */
  async delete(key: string, sealed?: string): Promise<boolean> {
    const { database } = this.#deps;
    const count =
      sealed === undefined
        ? await database.execute('DELETE FROM identity_tokens WHERE key = $1', [key])
        : await database.execute('DELETE FROM identity_tokens WHERE key = $1 AND sealed = $2', [key, sealed]);
    return count > 0;
  }

  /** What users have granted, newest first, at most `limit`, those after `after`; narrowed to a provider, a workload, a user or one grant. */
  async grants(
    accountId: string,
    only: {
      providerArn?: string;
      workload?: string;
      userNames?: readonly string[];
      key?: string;
      after?: Pick<Grant, 'key' | 'grantedAt'> | undefined;
      limit: number;
    },
  ): Promise<Grant[]> {
    const { providerArn, workload, userNames, key, after, limit } = only;
    const rows = await this.#deps.database.query<GrantRow>(
      `SELECT key, provider_arn, provider_id, workload, user_names, scopes, granted_at FROM identity_tokens
       WHERE account_id = $1 AND user_names <> '[]' AND ($2::text IS NULL OR workload = $2) AND ($3::jsonb IS NULL OR user_names = $3::jsonb)
         AND ($4::text IS NULL OR key = $4) AND ($5::text IS NULL OR provider_arn = $5)
         AND ($6::timestamptz IS NULL OR granted_at < $6 OR (granted_at = $6 AND key > $7))
       ORDER BY granted_at DESC, key LIMIT $8`,
      [
        ...[accountId, workload ?? null, userNames === undefined ? null : JSON.stringify(userNames), key ?? null],
        ...[providerArn ?? null, after ? new Date(after.grantedAt) : null, after?.key ?? null, limit],
      ],
    );
    return rows.map((row) => ({
      ...{ key: row.key, providerArn: row.provider_arn, providerId: row.provider_id, workload: row.workload },
      ...{
        userNames: list(text)(row.user_names, 'user_names'),
        scopes: list(text)(row.scopes, 'scopes'),
        grantedAt: row.granted_at.getTime(),
      },
    }));
  }

  /** Removes them. */
  async forget(of: Forgotten, tx: Executor): Promise<void> {
    if ('providerId' in of) await tx.execute('DELETE FROM identity_tokens WHERE provider_id = $1', [of.providerId]);
    else
      await tx.execute('DELETE FROM identity_tokens WHERE account_id = $1 AND ($2::text IS NULL OR workload = $2)', [
        of.accountId,
        of.workload ?? null,
      ]);
  }
}

/** What is sealed as one token opens as no other. */
function contextOf(key: string): string {
  return `token/${key}`;
}
