import type { Database } from '../../kernel/storage/index.ts';
import { record, text } from '../../kernel/stored-shape.ts';

type Tags = Record<string, string>;

/** Most tags of one resource (COMPATIBILITY: the wire's own limit). */
const MAX_TAGS = 50;
const TAGS = record(text);

/** The tags of resources of any kind, which stand in the table `resources`. Another account's resource is as good as none. */
export class TagStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async get(accountId: string, arn: string): Promise<Tags | undefined> {
    const [row] = await this.#database.query<{ tags: unknown }>(
      'SELECT tags FROM resources WHERE arn = $1 AND account_id = $2',
      [arn, accountId],
    );
    return row && TAGS(row.tags, 'tags');
  }

  /** Adds or replaces tags, all of them or none. */
  async set(accountId: string, arn: string, tags: Tags): Promise<'set' | 'missing' | 'too-many'> {
    const changed = await this.#database.execute(
      `UPDATE resources SET tags = tags || $3::jsonb
       WHERE arn = $1 AND account_id = $2 AND (SELECT count(*) FROM jsonb_object_keys(tags || $3::jsonb)) <= $4`,
      [arn, accountId, JSON.stringify(tags), MAX_TAGS],
    );
    if (changed === 1) return 'set';
    return (await this.get(accountId, arn)) ? 'too-many' : 'missing';
  }

  /** Removes tags by key; false when there is no such resource. */
  async remove(accountId: string, arn: string, keys: readonly string[]): Promise<boolean> {
    const changed = await this.#database.execute(
      `UPDATE resources SET tags = tags - ARRAY(SELECT jsonb_array_elements_text($3::jsonb)) WHERE arn = $1 AND account_id = $2`,
      [arn, accountId, JSON.stringify(keys)],
    );
    return changed === 1;
  }
}
