import { and, asc, count, eq, gt, type SQL, sql } from 'drizzle-orm';
import type { Clock } from '../clock.ts';
import type { Executor } from './database.ts';
import { DatabaseError } from './errors.ts';
import { formatCursor, parseCursor } from './list-cursor.ts';
import {
  DuplicateResourceError,
  MissingResourceError,
  TooManyTagsError,
  VersionConflictError,
} from './resource-errors.ts';
import { resources } from './tables.ts';

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
  namePrefix?: string;
  /** Any further condition on the table `resources`, e.g. on a field of `data`. */
  where?: SQL;
}

export interface Page<Item> {
  items: Item[];
  /** Absent on the last page. */
  next?: string;
}

export interface ResourceStoreOptions<Data> {
  executor: Executor;
  clock: Clock;
  /** Names the kind in the table and in messages, e.g. `agent-runtime`. */
  kind: string;
  /** Reads `data` as it was stored; throws when it is of no known shape. */
  parse(data: unknown): Data;
}

const MAX_TAGS = 50;
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

  /** Throws `DuplicateResourceError` when the name or the ARN is taken. */
  async create(resource: NewResource<Data>): Promise<Resource<Data>> {
    const now = new Date(this.#options.clock.now());
    const { arn, accountId, id, name, data, parent = '', tags = {} } = resource;
    if (Object.keys(tags).length > MAX_TAGS) throw new TooManyTagsError(arn, MAX_TAGS);
    const row = { arn, accountId, id, name, data, parent, tags, kind: this.#options.kind };
    try {
      const [created] = await this.#db
        .insert(resources)
        .values({ ...row, version: 1, createdAt: now, updatedAt: now })
        .returning();
      return this.#read(created, arn);
    } catch (error) {
      const taken = error instanceof DatabaseError && error.code === UNIQUE_VIOLATION;
      throw taken ? new DuplicateResourceError(this.#options.kind, name) : error;
    }
  }

  async get(arn: string): Promise<Resource<Data> | undefined> {
    const [row] = await this.#db.select().from(resources).where(this.#one(arn));
    return row && this.#read(row, arn);
  }

  async getByName(key: { accountId: string; name: string; parent?: string }): Promise<Resource<Data> | undefined> {
    const { accountId, name, parent = '' } = key;
    const same = and(this.#mine(accountId), eq(resources.parent, parent), eq(resources.name, name));
    const [row] = await this.#db.select().from(resources).where(same);
    return row && this.#read(row, row.arn);
  }

  /**
   * Compare-and-swap: replaces `data` (and the name, when given) if the resource is still at `version`.
   * Throws `VersionConflictError` when it is not, `MissingResourceError` when it is gone.
   */
  async update(arn: string, version: number, change: { data: Data; name?: string }): Promise<Resource<Data>> {
    const updatedAt = new Date(this.#options.clock.now());
    try {
      const [row] = await this.#db
        .update(resources)
        .set({ ...change, version: version + 1, updatedAt })
        .where(and(this.#one(arn), eq(resources.version, version)))
        .returning();
      if (row) return this.#read(row, arn);
    } catch (error) {
      const taken = error instanceof DatabaseError && error.code === UNIQUE_VIOLATION;
      throw taken ? new DuplicateResourceError(this.#options.kind, change.name ?? arn) : error;
    }
    throw (await this.get(arn)) ? new VersionConflictError(arn, version) : new MissingResourceError(arn);
  }

  /** Reads, changes and writes, again from the start when another writer was faster. `change` must have no effects. */
  async modify(arn: string, change: (current: Resource<Data>) => Data): Promise<Resource<Data>> {
    for (let attempt = 1; ; attempt++) {
      const current = await this.get(arn);
      if (!current) throw new MissingResourceError(arn);
      try {
        return await this.update(arn, current.version, { data: change(current) });
      } catch (error) {
        if (!(error instanceof VersionConflictError) || attempt === MODIFY_ATTEMPTS) throw error;
      }
    }
  }

  /** Whether there was one to delete. With `version`, throws `VersionConflictError` when it is at another. */
  async delete(arn: string, version?: number): Promise<boolean> {
    const condition = and(this.#one(arn), version === undefined ? undefined : eq(resources.version, version));
    const deleted = await this.#db.delete(resources).where(condition).returning({ arn: resources.arn });
    if (deleted.length > 0) return true;
    if (version !== undefined && (await this.get(arn))) throw new VersionConflictError(arn, version);
    return false;
  }

  /** In the order of creation. What exists from the first page to the last is seen exactly once, whatever else changes. */
  async list(options: ListOptions): Promise<Page<Resource<Data>>> {
    const after = options.after === undefined ? undefined : gt(resources.seq, parseCursor(options.after));
    const rows = await this.#db
      .select()
      .from(resources)
      .where(and(this.#selected(options), after))
      .orderBy(asc(resources.seq))
      .limit(options.limit + 1);
    const items = rows.slice(0, options.limit).map((row) => this.#read(row, row.arn));
    const last = rows.length > options.limit ? rows[options.limit - 1] : undefined;
    return last ? { items, next: formatCursor(last.seq) } : { items };
  }

  async count(options: Omit<ListOptions, 'limit' | 'after'>): Promise<number> {
    const [row] = await this.#db.select({ n: count() }).from(resources).where(this.#selected(options));
    return row?.n ?? 0;
  }

  /** Adds or replaces tags; at most 50 remain. The version stays: tags are no part of what `update` guards. */
  async setTags(arn: string, tags: Record<string, string>): Promise<Record<string, string>> {
    const merged = sql`${resources.tags} || ${JSON.stringify(tags)}::jsonb`;
    const fits = sql`(SELECT count(*) FROM jsonb_object_keys(${merged})) <= ${MAX_TAGS}`;
    const [row] = await this.#db
      .update(resources)
      .set({ tags: merged })
      .where(and(this.#one(arn), fits))
      .returning({ tags: resources.tags });
    if (row) return row.tags;
    throw (await this.get(arn)) ? new TooManyTagsError(arn, MAX_TAGS) : new MissingResourceError(arn);
  }

  async removeTags(arn: string, keys: readonly string[]): Promise<Record<string, string>> {
    const names = sql`ARRAY(SELECT jsonb_array_elements_text(${JSON.stringify(keys)}::jsonb))`;
    const [row] = await this.#db
      .update(resources)
      .set({ tags: sql`${resources.tags} - ${names}` })
      .where(this.#one(arn))
      .returning({ tags: resources.tags });
    if (!row) throw new MissingResourceError(arn);
    return row.tags;
  }

  get #db() {
    return this.#options.executor.db;
  }

  #one(arn: string): SQL | undefined {
    return and(eq(resources.arn, arn), eq(resources.kind, this.#options.kind));
  }

  #mine(accountId: string): SQL | undefined {
    return and(eq(resources.accountId, accountId), eq(resources.kind, this.#options.kind));
  }

  #selected(options: Omit<ListOptions, 'limit' | 'after'>): SQL | undefined {
    return and(
      this.#mine(options.accountId),
      options.parent === undefined ? undefined : eq(resources.parent, options.parent),
      options.namePrefix ? sql`starts_with(${resources.name}, ${options.namePrefix})` : undefined,
      options.where,
    );
  }

  #read(row: typeof resources.$inferSelect | undefined, arn: string): Resource<Data> {
    if (!row) throw new MissingResourceError(arn);
    const { accountId, id, parent, name, tags, version, createdAt, updatedAt } = row;
    const data = this.#options.parse(row.data);
    return { arn: row.arn, accountId, id, parent, name, data, tags, version, createdAt, updatedAt };
  }
}

/** SQLSTATE unique_violation. */
const UNIQUE_VIOLATION = '23505';
