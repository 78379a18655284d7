import type { Clock } from '../../../kernel/clock.ts';
import type { Database, Executor, Migration, RetentionRule } from '../../../kernel/storage/index.ts';
import { hashOf } from '../flows/authorizations.ts';

export const portalMigrations: Migration[] = [
  {
    id: 'identity/0003-portal-sessions',
    sql: `
      CREATE TABLE identity_portal_sessions (
        -- SHA-256 of the cookie.
        id_hash text PRIMARY KEY,
        portal_arn text NOT NULL,
        issuer text NOT NULL,
        subject text NOT NULL,
        expires_at timestamptz NOT NULL
      );
      CREATE INDEX identity_portal_sessions_portal ON identity_portal_sessions (portal_arn);
      CREATE INDEX identity_portal_sessions_expires_at ON identity_portal_sessions (expires_at);
    `,
  },
];

/** Who has signed in, as the provider says it. */
export interface PortalUser {
  issuer: string;
  subject: string;
}

/** How long somebody stays signed in. */
export const SESSION_SECONDS = 3600;

/** People who have signed in to consent portals, in the database, so that any server knows them. */
export class PortalSessions {
  readonly #deps: { database: Database; clock: Pick<Clock, 'now'> };

  constructor(deps: { database: Database; clock: Pick<Clock, 'now'> }) {
    this.#deps = deps;
  }

  /** `id` is a secret that was never a session before. */
  async begin(id: string, portalArn: string, { issuer, subject }: PortalUser): Promise<void> {
    const { database, clock } = this.#deps;
    await database.execute(
      'INSERT INTO identity_portal_sessions (id_hash, portal_arn, issuer, subject, expires_at) VALUES ($1, $2, $3, $4, $5)',
      [hashOf(id), portalArn, issuer, subject, new Date(clock.now() + SESSION_SECONDS * 1000)],
    );
  }

  /** Undefined for one that there is not at that portal, or that is over. */
  async find(id: string, portalArn: string): Promise<PortalUser | undefined> {
    const { database, clock } = this.#deps;
    const [row] = await database.query<PortalUser>(
      'SELECT issuer, subject FROM identity_portal_sessions WHERE id_hash = $1 AND portal_arn = $2 AND expires_at > $3',
      [hashOf(id), portalArn, new Date(clock.now())],
    );
    return row;
  }

  async end(id: string): Promise<void> {
    await this.#deps.database.execute('DELETE FROM identity_portal_sessions WHERE id_hash = $1', [hashOf(id)]);
  }

  /** All of a portal, in the transaction that makes them over. */
  async endAll(portalArn: string, tx: Executor): Promise<void> {
    await tx.execute('DELETE FROM identity_portal_sessions WHERE portal_arn = $1', [portalArn]);
  }
}

/** Sessions that are over. */
export function portalRetention(database: Executor): RetentionRule {
  return {
    name: 'sessions of consent portals',
    keepMs: 0,
    forget: (before, limit) =>
      database.execute(
        `DELETE FROM identity_portal_sessions WHERE id_hash IN
           (SELECT id_hash FROM identity_portal_sessions WHERE expires_at < $1 LIMIT ${limit})`,
        [new Date(before)],
      ),
  };
}
