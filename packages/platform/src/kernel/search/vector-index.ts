import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import { type Clock, sleep } from '../clock.ts';
import { type Embedder, embedEach } from '../embeddings/index.ts';
import { type Database, keepStatistics } from '../storage/index.ts';
import type { Hit } from './hit.ts';
import type { VectorSearch } from './hybrid-search.ts';
import type { SearchedTable } from './searched-table.ts';
import { WritePace } from './write-pace.ts';

export interface VectorIndexDeps<Filter> {
  database: Database;
  table: SearchedTable<Filter>;
  embedder: Embedder;
  clock: Clock;
  log: Logger;
  /** Up to so many rows that a filter lets through are compared one by one, which is exact; of more, the graph is searched. */
  exactAtMost?: number;
}

const BATCH = 32;
/** Numbers of a vector that an index takes at most (pgvector). */
const MOST_DIMENSIONS = 2_000;
const RETRY_MS = 15_000;
/** How often to look for rows that another server has written. */
const SWEEP_MS = 60_000;
/** The embedded database compares in WebAssembly. */
const EXACT_AT_MOST = { pglite: 2_000, postgres: 20_000 };
/** How widely the graph is searched; the embedded database, which does it in WebAssembly, looks at fewer. */
const EF_SEARCH = { pglite: 100, postgres: 400 };
const WIDEST_EF_SEARCH = 1_000;
/** Before version 0.8 pgvector does not go on through the graph: a filter that lets less than this through is left nothing. */
const LEAST_SHARE_OF_GRAPH = 0.02;
const MAX_SCAN_TUPLES = 40_000;
/** How long it is believed that a place holds many vectors, or few. */
const SIZE_BELIEVED_MS = 5_000;
const MAX_BELIEVED = 1_000;

/**
 * Vectors of a table's texts, made in the background and searched by nearness. Each model has a table of its own: when
 * the model changes, the new table fills while search goes on, and the old one goes once nothing is left to make.
 */
export class VectorIndex<Filter> implements VectorSearch<Filter, string> {
  readonly #deps: VectorIndexDeps<Filter>;
  readonly #table: string;
  readonly #stopping = new AbortController();
  #cancel: () => void = () => undefined;
  #due = Number.POSITIVE_INFINITY;
  #working: Promise<void> = Promise.resolve();
  #iterative = false;
  readonly #pace = new WritePace(BATCH);
  readonly #sizes = new Map<string, { few: boolean; until: number }>();

  constructor(deps: VectorIndexDeps<Filter>) {
    this.#deps = deps;
    const { model, dimensions } = deps.embedder;
    this.#table = `${deps.table.vectors.prefix}_${createHash('sha256').update(`${model} ${dimensions}`).digest('hex').slice(0, 12)}`;
  }

  /**
   * Makes the model's table, marks every row when the model is another than before, and begins to work. Rejects when the database
   * cannot search in vectors as long as the model's.
   */
  async start(): Promise<void> {
    const { database, embedder, log, table } = this.#deps;
    if (embedder.dimensions > MOST_DIMENSIONS)
      throw new Error(`vectors of ${embedder.dimensions} numbers are too long: an index takes ${MOST_DIMENSIONS}`);
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
          ${Object.entries(table.vectors.place)
            .map(([column, type]) => `${column} ${type} NOT NULL,`)
            .join(' ')}
          embedding vector(${embedder.dimensions}) NOT NULL);
        CREATE INDEX IF NOT EXISTS ${this.#table}_near ON ${this.#table} USING hnsw (embedding vector_cosine_ops);
        CREATE INDEX IF NOT EXISTS ${this.#table}_place ON ${this.#table} (${table.vectors.placeIndex.join(', ')});`);
      const added = await tx.execute(
        `INSERT INTO ${table.vectors.list} (model, table_name) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
        [embedder.model, this.#table],
      );
      if (added === 0) return;
      const marked = await tx.execute(`UPDATE ${table.name} SET needs_vector = true WHERE NOT needs_vector`);
      if (marked > 0)
        log.info(
          { table: table.name, model: embedder.model, records: marked },
          'the embedding model changed: vectors are made anew',
        );
    });
    this.wake(0);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server stops'));
    this.#cancel();
    await this.#working;
  }

  /** Says that there may be texts without vectors. */
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

  /** The rows nearest to a query's vector; the score is the cosine. */
  async search(filter: Filter, vector: string, limit: number): Promise<Hit[]> {
    return (await this.#isFew(filter))
      ? this.#oneByOne(filter, vector, limit)
      : this.#throughGraph(filter, vector, limit);
  }

  /** The cosines of these rows, of those that have a vector. */
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
  #throughGraph(filter: Filter, vector: string, limit: number): Promise<Hit[]> {
    const { database, table } = this.#deps;
    const narrow = table.vectors.isNarrow(filter) && !this.#iterative;
    const ef = narrow ? WIDEST_EF_SEARCH : Math.max(EF_SEARCH[database.kind], Math.min(WIDEST_EF_SEARCH, limit * 2));
    // Goes on through the graph until enough of what the filter lets through is found.
    const goOn = `SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.max_scan_tuples = ${MAX_SCAN_TUPLES}`;
    const settings = `SET LOCAL enable_sort = off; SET LOCAL hnsw.ef_search = ${ef}; ${this.#iterative ? goOn : ''}`;
    const params: unknown[] = [vector];
    const where = `${table.vectors.placeSql(filter, params, 'v.')} AND ${table.filterSql(filter, params, 'r.')}`;
    return database.transaction(async (tx) => {
      await tx.exec(settings);
      return tx.query<Hit>(
        `SELECT r.id, 1 - (v.embedding <=> $1::vector) AS score FROM ${this.#table} v JOIN ${table.name} r ON r.id = v.record_id
         WHERE ${where} ORDER BY v.embedding <=> $1::vector LIMIT $${params.push(limit)}`,
        params,
      );
    });
  }

  /**
   * The distances of all in the place come first: left to itself, the planner may go through the graph and miss nearly all of
   * it. Their rows are looked at from the nearest on, until there are enough.
   */
  #oneByOne(filter: Filter, vector: string, limit: number): Promise<Hit[]> {
    const { database, table } = this.#deps;
    const params: unknown[] = [vector];
    const place = table.vectors.placeSql(filter, params, 'v.');
    const where = table.filterSql(filter, params, 'r.');
    return database.query<Hit>(
      `WITH few AS MATERIALIZED (SELECT v.record_id, v.embedding <=> $1::vector AS distance FROM ${this.#table} v WHERE ${place})
       SELECT r.id, 1 - near.distance AS score
       FROM (SELECT * FROM few ORDER BY distance OFFSET 0) near,
         LATERAL (SELECT r.id FROM ${table.name} r WHERE r.id = near.record_id AND ${where} OFFSET 0) r
       ORDER BY near.distance LIMIT $${params.push(limit)}`,
      params,
    );
  }

  /** Whether the place holds so few vectors that each of them is compared. */
  async #isFew(filter: Filter): Promise<boolean> {
    const { database, table, clock, exactAtMost = EXACT_AT_MOST[database.kind] } = this.#deps;
    const name = table.vectors.placeName(filter);
    const known = this.#sizes.get(name);
    if (known && known.until > clock.monotonic()) return known.few;
    const params: unknown[] = [this.#table, LEAST_SHARE_OF_GRAPH];
    const most = this.#iterative ? `${exactAtMost}` : `greatest(${exactAtMost}, reltuples * $2::float8)`;
    const [row] = await database.query<{ few: boolean }>(
      `SELECT (SELECT count(*) FROM (SELECT 1 FROM ${this.#table} v WHERE ${table.vectors.placeSql(filter, params, 'v.')} LIMIT ${most} + 1) few)
         <= ${most} AS few FROM pg_class WHERE oid = $1::regclass AND $2::float8 > 0`,
      params,
    );
    const few = row?.few ?? false;
    if (this.#sizes.size >= MAX_BELIEVED) this.#sizes.clear();
    this.#sizes.set(name, { few, until: clock.monotonic() + SIZE_BELIEVED_MS });
    return few;
  }

  async #work(): Promise<void> {
    const { database, table, log } = this.#deps;
    try {
      while (!this.#stopping.signal.aborted && (await this.#batch()));
      if (!this.#stopping.signal.aborted) await this.#dropOthers();
      if (!this.#stopping.signal.aborted) await keepStatistics(database, [table.name, table.vectors.prefix]);
      this.wake(SWEEP_MS);
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      log.warn(
        { err: error, table: table.name },
        'vectors of texts could not be made; search is by words until they are',
      );
      this.wake(RETRY_MS);
    }
  }

  /** Whether there may be more. */
  async #batch(): Promise<boolean> {
    const { database, table, log, clock } = this.#deps;
    const { text, hash, order } = table.columns;
    const rows = await database.query<{ id: string; text: string; hash: string }>(
      `SELECT id, ${text} AS text, ${hash} AS hash FROM ${table.name} WHERE needs_vector AND ${table.currentSql('')} ORDER BY ${order} LIMIT ${BATCH}`,
    );
    if (rows.length === 0) return false;
    const vectors = await embedEach(
      this.#deps.embedder,
      rows.map((row) => row.text),
      this.#stopping.signal,
    );
    const answered = rows.map((row, index) => ({ id: row.id, hash: row.hash, vector: vectors[index] }));
    const made = answered.flatMap(({ id, hash, vector }) =>
      vector ? [{ id, hash, embedding: sqlVector(vector) }] : [],
    );
    const refused = answered.flatMap(({ id, hash, vector }) => (vector ? [] : [{ id, hash }]));
    if (refused.length > 0) {
      log.warn(
        { table: table.name, records: refused.map(({ id }) => id) },
        'the embedding model refuses texts; these are found by words alone',
      );
      await database.execute(
        `UPDATE ${table.name} r SET needs_vector = false FROM json_to_recordset($1::json) AS x(id text, hash text)
         WHERE r.id = x.id AND r.${hash} = x.hash`,
        [JSON.stringify(refused)],
      );
    }
    for (let start = 0; start < made.length && !this.#stopping.signal.aborted; ) {
      const portion = made.slice(start, start + this.#pace.size);
      start += portion.length;
      const began = clock.monotonic();
      await this.#write(portion);
      // Others have the database meanwhile.
      await sleep(clock, this.#pace.took(clock.monotonic() - began), this.#stopping.signal);
    }
    return true;
  }

  async #write(made: readonly { id: string; hash: string; embedding: string }[]): Promise<void> {
    const { database, table } = this.#deps;
    const { hash } = table.columns;
    const place = Object.keys(table.vectors.place);
    await database.execute(
      `WITH made AS (SELECT * FROM json_to_recordset($1::json) AS x(id text, hash text, embedding text)),
       marked AS (
         UPDATE ${table.name} r SET needs_vector = false FROM made m
         WHERE r.id = m.id AND r.${hash} = m.hash RETURNING ${['id', ...place].map((column) => `r.${column}`).join(', ')}, m.embedding)
       INSERT INTO ${this.#table} (${['record_id', ...place].join(', ')}, embedding)
       SELECT ${['id', ...place].join(', ')}, embedding::vector FROM marked
       ON CONFLICT (record_id) DO UPDATE SET ${[...place, 'embedding'].map((column) => `${column} = excluded.${column}`).join(', ')}`,
      [JSON.stringify(made)],
    );
  }

  /** Vectors of rows that are gone, and the tables of models that are no longer used. */
  async #dropOthers(): Promise<void> {
    const { database, table } = this.#deps;
    const { prefix, list } = table.vectors;
    const named = new RegExp(`^${prefix}_[0-9a-f]{12}$`);
    const others = await database.query<{ table_name: string }>(
      `SELECT table_name FROM ${list} WHERE table_name <> $1`,
      [this.#table],
    );
    for (const { table_name: other } of others) {
      if (!named.test(other)) continue;
      await database.transaction(async (tx) => {
        await tx.execute(`DELETE FROM ${list} WHERE table_name = $1`, [other]);
        await tx.exec(`DROP TABLE IF EXISTS ${other}`);
      });
    }
    await database.execute(
      `DELETE FROM ${this.#table} WHERE record_id IN (
         SELECT v.record_id FROM ${this.#table} v LEFT JOIN ${table.name} r ON r.id = v.record_id
         WHERE r.id IS NULL OR NOT (${table.currentSql('r.')}) LIMIT 1000)`,
    );
  }
}

function sqlVector(vector: ArrayLike<number>): string {
  return `[${Array.from(vector, (value) => value.toPrecision(7)).join(',')}]`;
}
