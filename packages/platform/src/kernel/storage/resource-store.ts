import type { Clock } from '../clock.ts';
import { marked, record, type Stored, text } from '../stored-shape.ts';
import type { Executor } from './database.ts';
import { DatabaseError } from './errors.ts';
import { formatCursor, parseCursor } from './list-cursor.ts';
import {
  DuplicateResourceError,
  MissingResourceError,
  TooManyResourcesError,
  TooManyTagsError,
  VersionConflictError,
} from './resource-errors.ts';

/** One resource of the control plane. `data` is what its service keeps; the rest is the same for all kinds. */
export interface Resource<Data> {
  arn: string;
  accountId: string;
  id: string;
  /** The ARN of the resource that this one belongs to; '' for none. */
  parent: string;
  /** Unique among the resources of this kind with this parent in this account. */
  name: string;
  data: Data;
  tags: Record<string, string>;
  /** 1 at creation, one more with every update. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
}

export interface NewResource<Data> {
  arn: string;
  accountId: string;
  id: string;
  name: string;
  data: Data;
  parent?: string;
  tags?: Record<string, string>;
}

export interface ListOptions {
  accountId: string;
  /** Items at most. */
  limit: number;
  /** `next` of the page before. */
  after?: string;
  parent?: string;
}

export interface Page<Item> {
  items: Item[];
  /** Absent on the last page. */
  next?: string;
}

/** `stored` says how `data` is kept. */
export interface ResourceStoreOptions<Data> extends Stored<Data> {
  executor: Executor;
  clock: Clock;
  /** Names the kind in the table and in messages, e.g. `agent-runtime`. */
  kind: string;
  /** Resources of this kind that an account may have with one parent; many that an account could make are held in memory, with their policies. */
  most?: number;
}

interface Row extends Omit<Resource<unknown>, 'accountId' | 'tags' | 'createdAt' | 'updatedAt'> {
  tags: unknown;
  account_id: string;
  created_at: Date;
  updated_at: Date;
  /** The order of creation, which lists go by. */
  seq: number;
}

const COLUMNS = 'arn, account_id, id, parent, name, data, tags, version, created_at, updated_at, seq';
const MAX_TAGS = 50;
const TAGS = record(text);
const MOST = 10_000;
const MODIFY_ATTEMPTS = 20;

/** The resources of one kind. Every method throws the errors of `resource-errors.ts` and of the database. */
export class ResourceStore<Data> {
  readonly #options: ResourceStoreOptions<Data>;

  constructor(options: ResourceStoreOptions<Data>) {
    this.#options = options;
  }

  /** The same store inside a transaction. */
  within(executor: Executor): ResourceStore<Data> {
    return new ResourceStore({ ...this.#options, executor });
  }

  /** Throws `DuplicateResourceError` when the name or the ARN is taken, `TooManyResourcesError` when there are as many as there may be. */
  async create(resource: NewResource<Data>): Promise<Resource<Data>> {
    const { executor, kind, most = MOST } = this.#options;
    const { arn, accountId, id, name, data, parent = '', tags = {} } = resource;
    if (Object.keys(tags).length > MAX_TAGS) throw new TooManyTagsError(arn, MAX_TAGS);
    const [held] = await executor.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM resources WHERE account_id = $1 AND kind = $2 AND parent = $3',
      [accountId, kind, parent],
    );
    if (held && held.count >= most) throw new TooManyResourcesError(kind, most);
    try {
      const [created] = await executor.query<Row>(
        `INSERT INTO resources (arn, kind, account_id, id, parent, name, data, tags, version, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9, $9) RETURNING ${COLUMNS}`,
        [arn, kind, accountId, id, parent, name, this.#kept(data), JSON.stringify(tags), this.#now()],
      );
      if (!created) throw new MissingResourceError(arn);
      return this.#read(created);
    } catch (error) {
      const taken = error instanceof DatabaseError && error.code === UNIQUE_VIOLATION;
      throw taken ? new DuplicateResourceError(kind, name) : error;
    }
  }

  async get(arn: string): Promise<Resource<Data> | undefined> {
    const [row] = await this.#options.executor.query<Row>(
      `SELECT ${COLUMNS} FROM resources WHERE arn = $1 AND kind = $2`,
      [arn, this.#options.kind],
    );
    return row && this.#read(row);
  }

  /** By name, where that does not tell the ARN. */
  async find({
    accountId,
    parent = '',
    name,
  }: Pick<NewResource<Data>, 'accountId' | 'parent' | 'name'>): Promise<Resource<Data> | undefined> {
    const [row] = await this.#options.executor.query<Row>(
      `SELECT ${COLUMNS} FROM resources WHERE account_id = $1 AND kind = $2 AND parent = $3 AND name = $4`,
      [accountId, this.#options.kind, parent, name],
    );
    return row && this.#read(row);
  }

  /**
   * Compare-and-swap: replaces `data` if the resource is still at `version`.
   * Throws `VersionConflictError` when it is not, `MissingResourceError` when it is gone.
   */
  async update(arn: string, version: number, data: Data): Promise<Resource<Data>> {
    const [row] = await this.#options.executor.query<Row>(
      `UPDATE resources SET data = $4, version = version + 1, updated_at = $5
       WHERE arn = $1 AND kind = $2 AND version = $3 RETURNING ${COLUMNS}`,
      [arn, this.#options.kind, version, this.#kept(data), this.#now()],
    );
    if (row) return this.#read(row);
    throw (await this.get(arn)) ? new VersionConflictError(arn, version) : new MissingResourceError(arn);
  }

  /** Reads, changes and writes, again from the start when another writer was faster. `change` must have no effects. */
  async modify(arn: string, change: (current: Resource<Data>) => Data): Promise<Resource<Data>> {
    for (let attempt = 1; ; attempt++) {
      const current = await this.get(arn);
      if (!current) throw new MissingResourceError(arn);
      try {
        return await this.update(arn, current.version, change(current));
      } catch (error) {
        if (!(error instanceof VersionConflictError) || attempt === MODIFY_ATTEMPTS) throw error;
      }
    }
  }

  /** Whether there was one to delete. */
  async delete(arn: string): Promise<boolean> {
    const { executor, kind } = this.#options;
    return (await executor.execute('DELETE FROM resources WHERE arn = $1 AND kind = $2', [arn, kind])) > 0;
  }

  /** In the order of creation. What exists from the first page to the last is seen exactly once, whatever else changes. */
  async list({ accountId, limit, after, parent }: ListOptions): Promise<Page<Resource<Data>>> {
    const from = after === undefined ? 0 : parseCursor(after);
    const rows = await this.#options.executor.query<Row>(
      `SELECT ${COLUMNS} FROM resources WHERE account_id = $1 AND kind = $2 AND seq > $3
       ${parent === undefined ? '' : 'AND parent = $5'} ORDER BY seq LIMIT $4`,
      [accountId, this.#options.kind, from, limit + 1, ...(parent === undefined ? [] : [parent])],
    );
    const items = rows.slice(0, limit).map((row) => this.#read(row));
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return last ? { items, next: formatCursor(last.seq) } : { items };
  }

  #kept(data: Data): string {
    return JSON.stringify(marked(data, this.#options.layout));
  }

  #now(): Date {
    return new Date(this.#options.clock.now());
  }

  #read(row: Row): Resource<Data> {
    const { account_id: accountId, created_at: createdAt, updated_at: updatedAt, seq: _seq, data, tags, ...same } = row;
    const read = { data: this.#options.parse(data), tags: TAGS(tags, 'tags') };
    return { ...same, ...read, accountId, createdAt, updatedAt };
  }
}

/** SQLSTATE unique_violation. */
const UNIQUE_VIOLATION = '23505';
