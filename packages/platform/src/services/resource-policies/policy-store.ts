import { type Changes, type Database, type Migration, noteChanges } from '../../kernel/storage/index.ts';

export const resourcePolicyMigrations: Migration[] = [
  {
    id: 'resource-policies/0001-resource-policies',
    sql: `
      CREATE TABLE resource_policies (
        arn text PRIMARY KEY REFERENCES resources (arn) ON DELETE CASCADE,
        account_id text NOT NULL,
        policy text NOT NULL
      );`,
  },
  { id: 'resource-policies/0002-changes', sql: noteChanges('resource_policies', 'arn') },
];

/** The policy documents attached to resources. All are in memory: every request asks for one. */
export class ResourcePolicies {
  readonly #database: Database;
  #policies: ReadonlyMap<string, string>;

  private constructor(database: Database, policies: ReadonlyMap<string, string>) {
    this.#database = database;
    this.#policies = policies;
  }

  static async open(database: Database, changes: Changes): Promise<ResourcePolicies> {
    const policies = new ResourcePolicies(database, await load(database));
    changes.subscribe(['resource_policies'], () => policies.#refresh());
    return policies;
  }

  /** The document attached to exactly this ARN, from memory. */
  of(arn: string): string | undefined {
    return this.#policies.get(arn);
  }

  /** Every document, from memory. */
  all(): Iterable<string> {
    return this.#policies.values();
  }

  /** Another object after each change: what is worked out from all documents holds as long as it is the same. */
  get revision(): object {
    return this.#policies;
  }

  /** Attaches or replaces; false when the account has no such resource. */
  async put(accountId: string, arn: string, policy: string): Promise<boolean> {
    const changed = await this.#database.execute(
      `INSERT INTO resource_policies SELECT arn, account_id, $3 FROM resources WHERE arn = $1 AND account_id = $2
       ON CONFLICT (arn) DO UPDATE SET policy = excluded.policy`,
      [arn, accountId, policy],
    );
    return changed === 1;
  }

  /** Whether there was one. */
  async delete(accountId: string, arn: string): Promise<boolean> {
    const changed = await this.#database.execute('DELETE FROM resource_policies WHERE arn = $1 AND account_id = $2', [
      arn,
      accountId,
    ]);
    return changed === 1;
  }

  async #refresh(): Promise<void> {
    this.#policies = await load(this.#database);
  }
}

async function load(database: Database): Promise<ReadonlyMap<string, string>> {
  const rows = await database.query<{ arn: string; policy: string }>('SELECT arn, policy FROM resource_policies');
  return new Map(rows.map(({ arn, policy }) => [arn, policy]));
}
