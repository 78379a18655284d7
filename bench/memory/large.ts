import pino from 'pino';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import type { Embedder } from '../../packages/platform/src/kernel/embeddings/index.ts';
import {
  type Database,
  migrate,
  openDatabase,
  storageMigrations,
} from '../../packages/platform/src/kernel/storage/index.ts';
import { startPostgres } from '../../packages/platform/src/kernel/storage/testing/postgres.ts';
import { memoryMigrations } from '../../packages/platform/src/services/memory/index.ts';
import type { RecordFilter } from '../../packages/platform/src/services/memory/record-store.ts';
import { Retrieval } from '../../packages/platform/src/services/memory/retrieval.ts';
import { VectorIndex } from '../../packages/platform/src/services/memory/vector-index.ts';
import { median, percentile } from '../support/statistics.ts';
import { realSentences } from './sentences.ts';

export interface LargeOptions {
  records: number;
  /** How many of them are embedded; the vectors of the rest are perturbed ones of these. */
  embedded: number;
  queries: number;
  embedder: Embedder;
  dataDir: string;
  say(text: string): void;
}

export interface LargeResults {
  records: number;
  embedded: number;
  indexSeconds: number;
  /** One for each share of the records that a namespace selects. */
  filters: {
    share: string;
    records: number;
    retrieveP50: number;
    retrieveP99: number;
    vectorP50: number;
    recallAt10: number;
  }[];
}

const MEMORY = 'large';
const TOP_K = 10;
/** How far a perturbed vector is from the one that it was made of; unit vectors. */
const NOISE = 0.4;
const BATCH = 1000;

/** Namespaces that hold 0.1 %, 1 % and, as a path, all of the records. */
const PLACES = [
  { share: '0.1 %', key: '/t/permille' },
  { share: '1 %', key: '/t/percent' },
  { share: '100 %', key: '/t' },
];

function namespaceOf(n: number): string {
  if (n % 1000 === 0) return '/t/permille';
  return n % 100 === 1 ? '/t/percent' : `/t/rest/${n % 7}`;
}

/**
 * Retrieval over many records on a real PostgreSQL, without the embedding of the query, and its recall against an exact
 * search of the same vectors.
 */
export async function measureLarge(options: LargeOptions): Promise<LargeResults> {
  const { records, embedded, queries, embedder, dataDir, say } = options;
  const log = pino({ level: 'silent' });
  const postgres = await startPostgres();
  const database = await openDatabase({ url: await postgres.createDatabase(), dataDir, log });
  const known = new Map<string, Float32Array>();
  const cached: Embedder = {
    ...embedder,
    embed: async (texts) => texts.map((text) => known.get(text) ?? new Float32Array(embedder.dimensions)),
  };
  const vectors = new VectorIndex({ database, embedder: cached, clock: systemClock, log });
  try {
    await migrate(database, [...storageMigrations, ...memoryMigrations], log);
    await vectors.start();
    const texts = await realSentences(embedded + queries);
    say(`embedding ${texts.length} sentences`);
    const base: Float32Array[] = [];
    for (let start = 0; start < texts.length; start += 64)
      base.push(...(await embedder.embed(texts.slice(start, start + 64))));
    say(`writing ${records} records`);
    const [table = ''] = (
      await database.query<{ table_name: string }>('SELECT table_name FROM memory_vector_models')
    ).map((row) => row.table_name);
    const indexSeconds = await fill(database, table, records, base.slice(0, embedded), texts, say);
    const retrieval = new Retrieval({ database, log, vectors });
    const asked = texts.slice(embedded);
    for (const [index, text] of asked.entries()) known.set(text, base[embedded + index] ?? new Float32Array());
    const filters: LargeResults['filters'] = [];
    for (const { share, key } of PLACES) {
      say(`searching ${share}`);
      filters.push({ share, ...(await measurePlace(database, table, retrieval, vectors, asked, key)) });
    }
    return { records, embedded, indexSeconds, filters };
  } finally {
    await vectors.stop();
    await database.close();
    await postgres.stop();
  }
}

/** Writes records with their vectors and builds the graph afterwards, which is what a large import does; gives the seconds of that. */
async function fill(
  database: Database,
  table: string,
  records: number,
  base: readonly Float32Array[],
  texts: readonly string[],
  say: (text: string) => void,
): Promise<number> {
  await database.exec(`DROP INDEX ${table}_near`);
  for (let start = 0; start < records; start += BATCH) {
    const rows = Array.from({ length: Math.min(BATCH, records - start) }, (_, offset) => {
      const n = start + offset;
      const source = base[n % base.length] ?? new Float32Array();
      const vector = n < base.length ? source : perturbed(source, n);
      const namespace = namespaceOf(n);
      const content = `${texts[n % base.length]}${n < base.length ? '' : ` (${n})`}`;
      return {
        id: `r${String(n).padStart(8, '0')}`,
        namespace,
        content,
        embedding: `[${Array.from(vector, (v) => v.toFixed(5))}]`,
      };
    });
    await database.execute(
      `WITH input AS (SELECT * FROM json_to_recordset($1::json) AS x(id text, namespace text, content text, embedding text)),
       kept AS (INSERT INTO memory_records (id, memory_id, strategy_id, namespace, namespace_key, content, content_hash, metadata,
           at, inserted_at, event_ids, needs_vector)
         SELECT id, $2, 'none', namespace, namespace, content, id, '{}', now(), now(), '[]', false FROM input)
       INSERT INTO ${table} (record_id, memory_id, strategy_id, namespace_key, embedding)
       SELECT id, $2, 'none', namespace, embedding::vector FROM input`,
      [JSON.stringify(rows), MEMORY],
    );
  }
  say('building the graph');
  const started = performance.now();
  await database.exec(
    `SET statement_timeout = 0; SET maintenance_work_mem = '4GB'; CREATE INDEX ${table}_near ON ${table} USING hnsw (embedding vector_cosine_ops); ANALYZE`,
  );
  return (performance.now() - started) / 1000;
}

async function measurePlace(
  database: Database,
  table: string,
  retrieval: Retrieval,
  vectors: VectorIndex,
  asked: readonly string[],
  key: string,
) {
  const filter: RecordFilter = {
    memoryId: MEMORY,
    scope: { kind: 'path', key },
    strategyId: undefined,
    metadata: [],
    metadataField: '',
  };
  const whole: number[] = [];
  const near: number[] = [];
  let shared = 0;
  for (const query of asked) {
    let started = performance.now();
    const searchCriteria = { searchQuery: query, topK: TOP_K };
    await retrieval.search(MEMORY, { memoryId: MEMORY, namespacePath: key, searchCriteria });
    whole.push(performance.now() - started);
    const vector = await vectors.embed(query);
    started = performance.now();
    const found = await vectors.search(filter, vector, TOP_K);
    near.push(performance.now() - started);
    const exact = await exactIds(database, table, key, vector);
    shared += found.filter(({ id }) => exact.has(id)).length / exact.size;
  }
  const [counted] = await database.query<{ n: number }>(
    "SELECT count(*)::int AS n FROM memory_records WHERE namespace_key = $1 OR namespace_key LIKE $1 || '/%'",
    [key],
  );
  return {
    records: counted?.n ?? 0,
    retrieveP50: median(whole),
    retrieveP99: percentile(whole, 0.99),
    vectorP50: median(near),
    recallAt10: shared / asked.length,
  };
}

async function exactIds(database: Database, table: string, key: string, vector: string): Promise<Set<string>> {
  const rows = await database.transaction(async (tx) => {
    await tx.exec('SET LOCAL enable_indexscan = off');
    return tx.query<{ record_id: string }>(
      `SELECT record_id FROM ${table} WHERE namespace_key = $1 OR namespace_key LIKE $1 || '/%'
       ORDER BY embedding <=> $2::vector LIMIT ${TOP_K}`,
      [key, vector],
    );
  });
  return new Set(rows.map((row) => row.record_id));
}

/** The same for the same seed; of length 1. */
function perturbed(source: Float32Array, seed: number): Float32Array {
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  const random = (): number => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32 - 0.5;
  };
  const noise = source.map(() => random());
  const size = Math.hypot(...noise) || 1;
  const moved = source.map((value, index) => value + (NOISE * (noise[index] ?? 0)) / size);
  const length = Math.hypot(...moved) || 1;
  return moved.map((value) => value / length);
}
