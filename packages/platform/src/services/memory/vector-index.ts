import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { Embedder } from '../../kernel/embeddings/index.ts';
import { ModelError } from '../../kernel/models/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import type { Hit } from './lexical-search.ts';
import { scopeSql } from './namespaces.ts';
import { type RecordFilter, recordFilterSql } from './record-store.ts';
import { keepStatistics } from './statistics.ts';

export interface VectorIndexDeps {
  database: Database;
  embedder: Embedder;
  clock: Clock;
  log: Logger;
  /** Up to so many records that a filter lets through are compared one by one, which is exact; of more, the graph is searched. */
  exactAtMost?: number;
}

const BATCH = 32;
/** Numbers of a vector that an index takes at most (pgvector). */
const MOST_DIMENSIONS = 2_000;
const RETRY_MS = 15_000;
/** How often to look for records that another server has written. */
const SWEEP_MS = 60_000;
/** The embedded database compares in WebAssembly. */
const EXACT_AT_MOST = { pglite: 2_000, postgres: 20_000 };
/** How widely the graph is searched; the embedded database, which does it in WebAssembly, looks at fewer. */
const EF_SEARCH = { pglite: 100, postgres: 400 };
const WIDEST_EF_SEARCH = 1_000;
/** Before version 0.8 pgvector does not go on through the graph: a filter that lets less than this through is left nothing. */
const LEAST_SHARE_OF_GRAPH = 0.02;
const MAX_SCAN_TUPLES = 40_000;
/** How long it is believed that a place holds many records, or few. */
const SIZE_BELIEVED_MS = 5_000;
const MAX_BELIEVED = 1_000;

/**
 * Vectors of long-term records, made in the background and searched by nearness. Each model has a table of its own: when
 * the model changes, the new table fills while search goes on, and the old one goes once nothing is left to make.
 */
export class VectorIndex {
  readonly #deps: VectorIndexDeps;
  readonly #table: string;
  readonly #stopping = new AbortController();
  #cancel: () => void = () => undefined;
  #due = Number.POSITIVE_INFINITY;
  #working: Promise<void> = Promise.resolve();
  #iterative = false;
  readonly #sizes = new Map<string, { few: boolean; until: number }>();

  constructor(deps: VectorIndexDeps) {
    this.#deps = deps;
    const { model, dimensions } = deps.embedder;
    this.#table = `memory_vectors_${createHash('sha256').update(`${model} ${dimensions}`).digest('hex').slice(0, 12)}`;
  }

  /**
   * Makes the model's table, marks every record when the model is another than before, and begins to work. Rejects when the database
   * cannot search in vectors as long as the model's.
   */
  async start(): Promise<void> {
    const { database, embedder, log } = this.#deps;
    if (embedder.dimensions > MOST_DIMENSIONS)
      throw new Error(`vectors of ${embedder.dimensions} numbers are too long: memory takes ${MOST_DIMENSIONS}`);
    const [extension] = await database.query<{ extversion: string }>(
      "SELECT extversion FROM pg_extension WHERE extname = 'vector'",
    );
    const [major = 0, minor = 0] = (extension?.extversion ?? '0').split('.').map(Number);
    this.#iterative = major > 0 || minor >= 8;
    await database.transaction(async (tx) => {
      await tx.exec(`
        SELECT pg_advisory_xact_lock(4100043);
        CREATE TABLE IF NOT EXISTS ${this.#table} (
          record_id text COLLATE "C" PRIMARY KEY,
          memory_id text NOT NULL,
          strategy_id text NOT NULL,
          namespace_key text COLLATE "C" NOT NULL,
          embedding vector(${embedder.dimensions}) NOT NULL);
        CREATE INDEX IF NOT EXISTS ${this.#table}_near ON ${this.#table} USING hnsw (embedding vector_cosine_ops);
        CREATE INDEX IF NOT EXISTS ${this.#table}_place ON ${this.#table} (memory_id, namespace_key);`);
      const added = await tx.execute(
        'INSERT INTO memory_vector_models (model, table_name) VALUES ($1, $2) ON CONFLICT DO NOTHING',
        [embedder.model, this.#table],
      );
      if (added === 0) return;
      const marked = await tx.execute('UPDATE memory_records SET needs_vector = true WHERE NOT needs_vector');
      if (marked > 0)
        log.info({ model: embedder.model, records: marked }, 'the embedding model changed: vectors are made anew');
    });
    this.wake(0);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server stops'));
    this.#cancel();
    await this.#working;
  }

  /** Says that there may be records without vectors. */
  wake(ms = 20): void {
    const due = this.#deps.clock.monotonic() + ms;
    if (this.#stopping.signal.aborted || due >= this.#due) return;
    this.#cancel();
    this.#due = due;
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#due = Number.POSITIVE_INFINITY;
      this.#working = this.#working.then(() => this.#work());
    });
  }

  /** The vector of a query. */
  async embed(text: string, signal?: AbortSignal): Promise<string> {
    const [vector] = await this.#deps.embedder.embed([text], signal);
    if (!vector) throw new Error('the embedding model gave no vector');
    return sqlVector(vector);
  }

  /** The records nearest to a query's vector; the score is the cosine. */
  async search(filter: RecordFilter, vector: string, limit: number): Promise<Hit[]> {
    return (await this.#isFew(filter))
      ? this.#oneByOne(filter, vector, limit)
      : this.#throughGraph(filter, vector, limit);
  }

  /** The cosines of these records, of those that have a vector. */
  async cosines(ids: readonly string[], vector: string): Promise<Map<string, number>> {
    const rows = await this.#deps.database.query<{ record_id: string; score: number }>(
      `SELECT record_id, 1 - (embedding <=> $2::vector) AS score FROM ${this.#table}
       WHERE record_id IN (SELECT jsonb_array_elements_text($1::jsonb))`,
      [JSON.stringify(ids), vector],
    );
    return new Map(rows.map(({ record_id: id, score }) => [id, score]));
  }

  /**
   * Sorting is forbidden to the planner, so that only the graph's own order is left: without statistics, which the embedded
   * database does not gather by itself, it would compare all.
   */
  #throughGraph(filter: RecordFilter, vector: string, limit: number): Promise<Hit[]> {
    const { database } = this.#deps;
    const narrow = filter.scope.kind !== 'all' && !this.#iterative;
    const ef = narrow ? WIDEST_EF_SEARCH : Math.max(EF_SEARCH[database.kind], Math.min(WIDEST_EF_SEARCH, limit * 2));
    // Goes on through the graph until enough of what the filter lets through is found.
    const goOn = `SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.max_scan_tuples = ${MAX_SCAN_TUPLES}`;
    const settings = `SET LOCAL enable_sort = off; SET LOCAL hnsw.ef_search = ${ef}; ${this.#iterative ? goOn : ''}`;
    const params: unknown[] = [vector];
    const where = `${this.#placeSql(filter, params)} AND ${recordFilterSql(filter, params, 'r.')}`;
    return database.transaction(async (tx) => {
      await tx.exec(settings);
      return tx.query<Hit>(
        `SELECT r.id, 1 - (v.embedding <=> $1::vector) AS score FROM ${this.#table} v JOIN memory_records r ON r.id = v.record_id
         WHERE ${where} ORDER BY v.embedding <=> $1::vector LIMIT $${params.push(limit)}`,
        params,
      );
    });
  }

  /**
   * The distances of all in the place come first: left to itself, the planner may go through the graph and miss nearly all of
   * it. Their records are looked at from the nearest on, until there are enough.
   */
  #oneByOne(filter: RecordFilter, vector: string, limit: number): Promise<Hit[]> {
    const params: unknown[] = [vector];
    const place = this.#placeSql(filter, params);
    const where = recordFilterSql(filter, params, 'r.');
    return this.#deps.database.query<Hit>(
      `WITH few AS MATERIALIZED (SELECT v.record_id, v.embedding <=> $1::vector AS distance FROM ${this.#table} v WHERE ${place})
       SELECT r.id, 1 - near.distance AS score
       FROM (SELECT * FROM few ORDER BY distance OFFSET 0) near,
         LATERAL (SELECT r.id FROM memory_records r WHERE r.id = near.record_id AND ${where} OFFSET 0) r
       ORDER BY near.distance LIMIT $${params.push(limit)}`,
      params,
    );
  }

  /** The memory and the namespace, which vectors have beside them; whether a record holds is for `recordFilterSql` to say. */
  #placeSql({ memoryId, scope }: RecordFilter, params: unknown[]): string {
    return `v.memory_id = $${params.push(memoryId)} AND ${scopeSql(scope, params, 'v.namespace_key')}`;
  }

  /** Whether the place holds so few vectors that each of them is compared. */
  async #isFew(filter: RecordFilter): Promise<boolean> {
    const { database, clock, exactAtMost = EXACT_AT_MOST[database.kind] } = this.#deps;
    const name = JSON.stringify([filter.memoryId, filter.scope]);
    const known = this.#sizes.get(name);
    if (known && known.until > clock.monotonic()) return known.few;
    const params: unknown[] = [this.#table, LEAST_SHARE_OF_GRAPH];
    const most = this.#iterative ? `${exactAtMost}` : `greatest(${exactAtMost}, reltuples * $2::float8)`;
    const [row] = await database.query<{ few: boolean }>(
      `SELECT (SELECT count(*) FROM (SELECT 1 FROM ${this.#table} v WHERE ${this.#placeSql(filter, params)} LIMIT ${most} + 1) few)
         <= ${most} AS few FROM pg_class WHERE oid = $1::regclass AND $2::float8 > 0`,
      params,
    );
    const few = row?.few ?? false;
    if (this.#sizes.size >= MAX_BELIEVED) this.#sizes.clear();
    this.#sizes.set(name, { few, until: clock.monotonic() + SIZE_BELIEVED_MS });
    return few;
  }

  async #work(): Promise<void> {
    const { log } = this.#deps;
    try {
      while (!this.#stopping.signal.aborted && (await this.#batch()));
      if (!this.#stopping.signal.aborted) await this.#dropOthers();
      if (!this.#stopping.signal.aborted) await keepStatistics(this.#deps.database);
      this.wake(SWEEP_MS);
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      log.warn({ err: error }, 'vectors of memory records could not be made; search is by words until they are');
      this.wake(RETRY_MS);
    }
  }

  /** Whether there may be more. */
  async #batch(): Promise<boolean> {
    const { database, log } = this.#deps;
    const rows = await database.query<{ id: string; content: string; content_hash: string }>(
      `SELECT id, content, content_hash FROM memory_records WHERE needs_vector AND valid_to IS NULL ORDER BY inserted_at LIMIT ${BATCH}`,
    );
    if (rows.length === 0) return false;
    const vectors = await this.#vectorsOf(rows.map((row) => row.content));
    const answered = rows.map(({ id, content_hash: hash }, index) => ({ id, hash, vector: vectors[index] }));
    const made = answered.flatMap(({ id, hash, vector }) =>
      vector ? [{ id, hash, embedding: sqlVector(vector) }] : [],
    );
    const refused = answered.flatMap(({ id, hash, vector }) => (vector ? [] : [{ id, hash }]));
    if (refused.length > 0) {
      log.warn(
        { records: refused.map(({ id }) => id) },
        'the embedding model refuses texts of memory records; these are found by words alone',
      );
      await database.execute(
        `UPDATE memory_records r SET needs_vector = false FROM json_to_recordset($1::json) AS x(id text, hash text)
         WHERE r.id = x.id AND r.content_hash = x.hash`,
        [JSON.stringify(refused)],
      );
    }
    await database.execute(
      `WITH made AS (SELECT * FROM json_to_recordset($1::json) AS x(id text, hash text, embedding text)),
       marked AS (
         UPDATE memory_records r SET needs_vector = false FROM made m
         WHERE r.id = m.id AND r.content_hash = m.hash RETURNING r.id, r.memory_id, r.strategy_id, r.namespace_key, m.embedding)
       INSERT INTO ${this.#table} (record_id, memory_id, strategy_id, namespace_key, embedding)
       SELECT id, memory_id, strategy_id, namespace_key, embedding::vector FROM marked
       ON CONFLICT (record_id) DO UPDATE SET memory_id = excluded.memory_id, strategy_id = excluded.strategy_id,
         namespace_key = excluded.namespace_key, embedding = excluded.embedding`,
      [JSON.stringify(made)],
    );
    return true;
  }

  /**
   * One vector for each text, undefined for a text that the model refuses while it takes another: it would keep all that come after it
   * waiting. Rejects when the model cannot be asked, or takes nothing at all.
   */
  async #vectorsOf(texts: readonly string[]): Promise<(Float32Array | undefined)[]> {
    const vectors = await this.#halved(texts);
    // Is it the texts, or the model?
    if (vectors.every((vector) => vector === undefined)) await this.embed('dimension', this.#stopping.signal);
    return vectors;
  }

  async #halved(texts: readonly string[]): Promise<(Float32Array | undefined)[]> {
    try {
      return await this.#deps.embedder.embed(texts, this.#stopping.signal);
    } catch (error) {
      if (!(error instanceof ModelError && error.refused)) throw error;
      if (texts.length === 1) return [undefined];
      const middle = Math.ceil(texts.length / 2);
      return [...(await this.#halved(texts.slice(0, middle))), ...(await this.#halved(texts.slice(middle)))];
    }
  }

  /** Vectors of records that are gone, and the tables of models that are no longer used. */
  async #dropOthers(): Promise<void> {
    const { database } = this.#deps;
    const others = await database.query<{ table_name: string }>(
      'SELECT table_name FROM memory_vector_models WHERE table_name <> $1',
      [this.#table],
    );
    for (const { table_name: table } of others) {
      if (!/^memory_vectors_[0-9a-f]{12}$/.test(table)) continue;
      await database.transaction(async (tx) => {
        await tx.execute('DELETE FROM memory_vector_models WHERE table_name = $1', [table]);
        await tx.exec(`DROP TABLE IF EXISTS ${table}`);
      });
    }
    await database.execute(
      `DELETE FROM ${this.#table} WHERE record_id IN (
         SELECT v.record_id FROM ${this.#table} v LEFT JOIN memory_records r ON r.id = v.record_id
         WHERE r.id IS NULL OR r.valid_to IS NOT NULL LIMIT 1000)`,
    );
  }
}

function sqlVector(vector: ArrayLike<number>): string {
  return `[${Array.from(vector, (value) => value.toPrecision(7)).join(',')}]`;
}
