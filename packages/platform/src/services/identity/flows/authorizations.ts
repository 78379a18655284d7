import { hash } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import { Secret } from '../../../kernel/secrets/index.ts';
import { ofThePlatform } from '../../../kernel/service.ts';
import type { Database, Executor } from '../../../kernel/storage/index.ts';
import { list, storedText, text } from '../../../kernel/stored-shape.ts';
import type { TokenVaults } from '../vault/token-vaults.ts';
import type { WorkloadUser } from '../workloads/workload-user.ts';
import {
  type Authorization,
  type AuthorizationSecrets,
  type AuthorizationStatus,
  storedAuthorizationSecrets,
} from './authorization.ts';
import type { Forgotten } from './refreshes.ts';
import { namesOf } from './token-request.ts';

export interface AuthorizationsDeps {
  database: Database;
  vaults: Pick<TokenVaults, 'seal' | 'open'>;
  clock: Pick<Clock, 'now'>;
}

interface Row {
  id: string;
  account_id: string;
  provider_arn: string;
  provider_id: string;
  workload: string;
  made_at: number | null;
  user_names: unknown;
  scopes: unknown;
  resources: unknown;
  audiences: unknown;
  token_key: string;
  return_url: string | null;
  status: AuthorizationStatus;
  failure: string | null;
  browser_hash: string | null;
  sealed: string;
  updated_at: Date;
  expires_at: Date;
}

/** What a step changes. `state` is what a browser brings next, to the callback or to the application; its hash is kept, and null forgets it. */
export interface Step {
  status: AuthorizationStatus;
  failure?: string;
  state?: string | null;
  browserHash?: string;
  secrets?: AuthorizationSecrets;
  /** Forgets its secrets. */
  empty?: true;
}

/** Of one agent and user, however they ended: more than a person decides on while the first still counts. */
const MOST_SESSIONS = 50;

/** Consents on their way, in the database, so that any server goes on with them. */
export class Authorizations {
  readonly #deps: AuthorizationsDeps;

  constructor(deps: AuthorizationsDeps) {
    this.#deps = deps;
  }

  /** `request` is what the same request finds it by. Rejects with ThrottlingException when the agent has too many for that user. */
  async create(one: Authorization, request: string, secrets: AuthorizationSecrets): Promise<void> {
    // Before: in a transaction nothing else may be asked.
    const sealed = await this.#seal(one, secrets);
    await this.#deps.database.transaction(async (tx) => {
      await this.#needRoom(one, tx);
      await this.#insert(one, { request, sealed }, tx);
    });
  }

  /** One after the other of a user: two at once would both find room. */
  async #needRoom({ bearer: { accountId, workload, user } }: Authorization, tx: Executor): Promise<void> {
    const now = this.#deps.clock.now();
    const whose = [accountId, workload, JSON.stringify(namesOf(user))];
    await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 33))', [JSON.stringify(whose)]);
    const [found] = await tx.query<{ count: number; first: Date | null }>(
      `SELECT count(*)::int AS count, min(expires_at) AS first FROM identity_authorizations
       WHERE account_id = $1 AND workload = $2 AND user_names = $3::jsonb AND expires_at > $4`,
      [...whose, new Date(now)],
    );
    if (!found || found.count < MOST_SESSIONS) return;
    throw errors.throttling(
      `The agent ${workload} has begun ${MOST_SESSIONS} authorization sessions for this user within ten minutes.`,
      {
        remedy: 'Ask for a session that was begun by its sessionUri, or wait until the first ones are over.',
        retryAfterSeconds: Math.max(1, Math.ceil(((found.first?.getTime() ?? now) - now) / 1000)),
      },
    );
  }

  async #insert(
    one: Authorization,
    { request, sealed }: { request: string; sealed: string },
    tx: Executor,
  ): Promise<void> {
    const { accountId, workload, user, madeAt } = one.bearer;
    await tx.execute(
      `INSERT INTO identity_authorizations
         (id, request, account_id, provider_arn, provider_id, workload, made_at, user_names, scopes, resources, audiences, token_key, return_url,
          status, sealed, created_at, updated_at, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16, $17)`,
      [
        ...[one.id, request, accountId, one.providerArn, one.providerId, workload, madeAt ?? null],
        ...[namesOf(user), one.scopes, one.resources, one.audiences].map((list) => JSON.stringify(list)),
        ...[one.tokenKey, one.returnUrl ?? null, one.status, sealed],
        ...[new Date(this.#deps.clock.now()), new Date(one.expiresAt)],
      ],
    );
  }

  find(id: string): Promise<Authorization | undefined> {
    return this.#one('id = $1', [id]);
  }

  /** One that the same request began and that goes on. */
  findOpen(request: string): Promise<Authorization | undefined> {
    const open = `request = $1 AND status IN ('STARTED', 'ALLOWED', 'RETURNED', 'EXCHANGING') AND expires_at > $2`;
    return this.#one(open, [request, new Date(this.#deps.clock.now())]);
  }

  /** The one that the provider sends a person back with. */
  findByState(state: string, providerId: string): Promise<Authorization | undefined> {
    return this.#one('state_hash = $1 AND provider_id = $2', [hashOf(state), providerId]);
  }

  /** The one that a person's browser brings back to the application, by what it was given to bring. */
  findByHandle(handle: string): Promise<Authorization | undefined> {
    return this.#one(`state_hash = $1 AND status NOT IN ('STARTED', 'ALLOWED')`, [hashOf(handle)]);
  }

  async secrets(one: Authorization): Promise<AuthorizationSecrets | undefined> {
    const { database, vaults } = this.#deps;
    const [row] = await database.query<{ sealed: string }>('SELECT sealed FROM identity_authorizations WHERE id = $1', [
      one.id,
    ]);
    // A person's browser asks here, and nobody's policies are.
    if (!row?.sealed) return undefined;
    const opened = await vaults.open(row.sealed, contextOf(one.id), ofThePlatform(one.bearer.accountId));
    return opened && storedText(storedAuthorizationSecrets, opened.reveal());
  }

  /** Whether it was still as it was found: of several at once one goes on. */
  async step(one: Authorization, to: Step, executor: Executor = this.#deps.database): Promise<boolean> {
    const { status, failure, state, browserHash, secrets, empty } = to;
    // Before: in a transaction nothing else may be asked.
    const sealed = secrets ? await this.#seal(one, secrets) : empty ? '' : null;
    const changed = await executor.execute(
      `UPDATE identity_authorizations SET status = $3, updated_at = $4, failure = coalesce($5, failure),
         state_hash = CASE WHEN $6 THEN $7 ELSE state_hash END, browser_hash = coalesce($8, browser_hash), sealed = coalesce($9, sealed)
       WHERE id = $1 AND status = $2 AND updated_at = $10`,
      [
        ...[one.id, one.status, status, new Date(Math.max(this.#deps.clock.now(), one.updatedAt + 1)), failure ?? null],
        ...[state !== undefined, state ? hashOf(state) : null, browserHash ?? null],
        ...[sealed, new Date(one.updatedAt)],
      ],
    );
    return changed > 0;
  }

  /** Removes them. */
  async forget(of: Forgotten, tx: Executor): Promise<void> {
    if ('providerId' in of)
      await tx.execute('DELETE FROM identity_authorizations WHERE provider_id = $1', [of.providerId]);
    else
      await tx.execute(
        'DELETE FROM identity_authorizations WHERE account_id = $1 AND ($2::text IS NULL OR workload = $2)',
        [of.accountId, of.workload ?? null],
      );
  }

  async #one(where: string, params: unknown[]): Promise<Authorization | undefined> {
    const [row] = await this.#deps.database.query<Row>(
      `SELECT * FROM identity_authorizations WHERE ${where} ORDER BY created_at DESC LIMIT 1`,
      params,
    );
    return row && fromRow(row);
  }

  #seal({ id, bearer }: Authorization, secrets: AuthorizationSecrets): Promise<string> {
    return this.#deps.vaults.seal(new Secret(JSON.stringify(secrets)), contextOf(id), ofThePlatform(bearer.accountId));
  }
}

export function hashOf(text: string): string {
  return hash('sha256', text, 'base64url');
}

function contextOf(id: string): string {
  return `authorization/${id}`;
}

function userOf([name, subject]: string[]): WorkloadUser | undefined {
  if (name === undefined) return undefined;
  return subject === undefined ? { kind: 'id', id: name } : { kind: 'token', issuer: name, subject };
}

function fromRow(row: Row): Authorization {
  return {
    id: row.id,
    bearer: {
      accountId: row.account_id,
      workload: row.workload,
      user: userOf(list(text)(row.user_names, 'user_names')),
      madeAt: row.made_at ?? undefined,
    },
    providerArn: row.provider_arn,
    providerId: row.provider_id,
    scopes: list(text)(row.scopes, 'scopes'),
    resources: list(text)(row.resources, 'resources'),
    audiences: list(text)(row.audiences, 'audiences'),
    tokenKey: row.token_key,
    returnUrl: row.return_url ?? undefined,
    status: row.status,
    failure: row.failure ?? undefined,
    browserHash: row.browser_hash ?? undefined,
    updatedAt: row.updated_at.getTime(),
    expiresAt: row.expires_at.getTime(),
  };
}
