import type { Clock } from '../../../kernel/clock.ts';
import { RateLimiter } from '../../../kernel/http/index.ts';
import type { Database, Executor, Migration, RetentionRule } from '../../../kernel/storage/index.ts';
import { hashOf } from '../flows/authorizations.ts';

export const signInMigrations: Migration[] = [
  {
    id: 'identity/0005-portal-sign-ins',
    sql: `
      CREATE TABLE identity_portal_sign_ins (
        -- SHA-256 of what the provider sends back, and of the cookie of the browser that it goes by.
        state_hash text PRIMARY KEY,
        browser_hash text NOT NULL,
        portal_arn text NOT NULL,
        expires_at timestamptz NOT NULL
      );
      CREATE INDEX identity_portal_sign_ins_portal ON identity_portal_sign_ins (portal_arn, expires_at);
    `,
  },
];

/** How long somebody may take to sign in. */
export const SIGN_IN_SECONDS = 600;
/** The most sign-ins of one portal. One more ends the oldest. */
export const MOST_SIGN_INS = 10_000;
/** Answers of browsers that lead to a question to the provider, of one portal on one server. */
export const ANSWERS_PER_SECOND = 50;

/** One try to sign in: a browser, by the secret of its cookie, and what the provider is to send it back with. */
export interface BegunSignIn {
  portalArn: string;
  browser: string;
  state: string;
}

/** People who are signing in to consent portals, in the database, so that any server goes on with them and each answer counts once. */
export class PortalSignIns {
  readonly #deps: { database: Database; clock: Clock };
  readonly #answers: RateLimiter;

  constructor(deps: { database: Database; clock: Clock }) {
    this.#deps = deps;
    this.#answers = new RateLimiter(ANSWERS_PER_SECOND, deps.clock);
  }

  /** `state` was never one before. */
  async begin({ portalArn, browser, state }: BegunSignIn): Promise<void> {
    const { database, clock } = this.#deps;
    await database.execute(
      'INSERT INTO identity_portal_sign_ins (state_hash, browser_hash, portal_arn, expires_at) VALUES ($1, $2, $3, $4)',
      [hashOf(state), hashOf(browser), portalArn, new Date(clock.now() + SIGN_IN_SECONDS * 1000)],
    );
    // Whoever begins without end keeps nobody out who takes less time than his ten thousand do.
    await database.execute(
      `DELETE FROM identity_portal_sign_ins WHERE portal_arn = $1 AND expires_at <
         (SELECT expires_at FROM identity_portal_sign_ins WHERE portal_arn = $1 ORDER BY expires_at DESC OFFSET $2 LIMIT 1)`,
      [portalArn, MOST_SIGN_INS - 1],
    );
  }

  /** Whether that browser had begun it, and nobody has answered yet. Throws ThrottlingException when the portal has too many answers. */
  async take({ portalArn, browser, state }: BegunSignIn): Promise<boolean> {
    const { database, clock } = this.#deps;
    const taken = await database.execute(
      `DELETE FROM identity_portal_sign_ins WHERE state_hash = $1 AND browser_hash = $2 AND portal_arn = $3 AND expires_at > $4`,
      [hashOf(state), hashOf(browser), portalArn, new Date(clock.now())],
    );
    if (taken === 0) return false;
    this.#answers.take(portalArn);
    return true;
  }
}

/** Those that nobody came back from. */
export function signInRetention(database: Executor): RetentionRule {
  return {
    name: 'sign-ins of consent portals',
    keepMs: 0,
    forget: (before, limit) =>
      database.execute(
        `DELETE FROM identity_portal_sign_ins WHERE state_hash IN
           (SELECT state_hash FROM identity_portal_sign_ins WHERE expires_at < $1 LIMIT ${limit})`,
        [new Date(before)],
      ),
  };
}
