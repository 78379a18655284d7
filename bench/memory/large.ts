import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import pino from 'pino';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import type { Embedder } from '../../packages/platform/src/kernel/embeddings/index.ts';
import { jobMigrations } from '../../packages/platform/src/kernel/jobs/index.ts';
import { meteringMigrations } from '../../packages/platform/src/kernel/metering/index.ts';
import { VectorIndex } from '../../packages/platform/src/kernel/search/index.ts';
import {
  type Database,
  migrate,
  openDatabase,
  storageMigrations,
} from '../../packages/platform/src/kernel/storage/index.ts';
import { startPostgres } from '../../packages/platform/src/kernel/storage/testing/postgres.ts';
import { memoryMigrations } from '../../packages/platform/src/services/memory/index.ts';
import type { RecordFilter } from '../../packages/platform/src/services/memory/record-store.ts';
import { recordTable } from '../../packages/platform/src/services/memory/record-table.ts';
import { Retrieval } from '../../packages/platform/src/services/memory/retrieval.ts';
import { type Machine, thisMachine } from '../support/machine.ts';
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
  /** ISO 8601. */
  at: string;
  machine: Machine;
  pgvector: string;
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
/** Vectors of a list of texts, kept so that another run need not make them again: 100,000 take the model twenty minutes. */
const CACHE = resolve(import.meta.dirname, '../../.cache/bench-vectors');
/**
 * A server with room for the graph. The packaged one has no files for its parallel workers' time zones, and nothing else is at
 * work while the tables are filled, so there are none; nothing has to survive.
 */
const SETTINGS = {
  shared_buffers: '6GB',
  maintenance_work_mem: '5GB',
  max_parallel_maintenance_workers: '0',
  max_parallel_workers_per_gather: '0',
  max_wal_size: '8GB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  synchronous_commit: 'off',
};
/** How far a perturbed vector is from the one that it was made of; unit vectors. */
const NOISE = 0.4;
const BATCH = 1000;
const EMBEDDED_AT_ONCE = 64;

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
  const postgres = await startPostgres(SETTINGS);
  const url = await postgres.createDatabase();
  const database = await openDatabase({ url, dataDir, log });
  const known = new Map<string, Float32Array>();
  const cached: Embedder = {
    ...embedder,
    embed: async (texts) => texts.map((text) => known.get(text) ?? new Float32Array(embedder.dimensions)),
  };
  const vectors = new VectorIndex({ database, table: recordTable, embedder: cached, clock: systemClock, log });
  try {
    await migrate(database, [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations], log);
    await vectors.start();
    const texts = await realSentences(embedded + queries);
    const base = await vectorsOf(texts, embedder, say);
    const [table = ''] = (
      await database.query<{ table_name: string }>('SELECT table_name FROM memory_vector_models')
    ).map((row) => row.table_name);
    const exec = (sql: string): Promise<void> => postgres.exec(url, sql);
    const indexSeconds = await fill(database, exec, table, records, base.slice(0, embedded), texts, say);
    const retrieval = new Retrieval({ database, clock: systemClock, log, vectors: { current: vectors } });
    const asked = texts.slice(embedded);
    for (const [index, text] of asked.entries()) known.set(text, base[embedded + index] ?? new Float32Array());
    const [extension] = await database.query<{ version: string }>(
      "SELECT extversion AS version FROM pg_extension WHERE extname = 'vector'",
    );
    const about = { at: new Date().toISOString(), machine: thisMachine({}), pgvector: extension?.version ?? 'unknown' };
    const filters: LargeResults['filters'] = [];
    for (const { share, key } of PLACES) {
      say(`searching ${share}`);
      filters.push({ share, ...(await measurePlace(database, table, retrieval, vectors, asked, key)) });
    }
    return { ...about, records, embedded, indexSeconds, filters };
  } finally {
    await vectors.stop();
    await database.close();
    await postgres.stop();
  }
}

/** From the cache, or made now, short ones first, so that those of one batch are of one length. */
async function vectorsOf(
  texts: readonly string[],
  embedder: Embedder,
  say: (text: string) => void,
): Promise<Float32Array[]> {
  const { model, dimensions } = embedder;
  const name = resolve(CACHE, createHash('sha256').update(model).digest('hex').slice(0, 12));
  const known = new Map<string, Float32Array>();
  const kept: string[] = await readFile(`${name}.json`, 'utf8').then(JSON.parse, () => []);
  const bytes = await readFile(`${name}.f32`).catch(() => Buffer.alloc(0));
  const numbers = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  if (numbers.length === kept.length * dimensions) {
    for (const [n, text] of kept.entries()) known.set(text, numbers.subarray(n * dimensions, (n + 1) * dimensions));
  }
  const missing = texts.filter((text) => !known.has(text)).sort((a, b) => a.length - b.length);
  for (let start = 0; start < missing.length; start += EMBEDDED_AT_ONCE) {
    if (start % 10_000 < EMBEDDED_AT_ONCE) say(`embedding: ${start} of ${missing.length} sentences`);
    const some = missing.slice(start, start + EMBEDDED_AT_ONCE);
    const made = await embedder.embed(some);
    for (const [n, text] of some.entries()) known.set(text, made[n] ?? new Float32Array(dimensions));
  }
  const vectors = texts.map((text) => known.get(text) ?? new Float32Array(dimensions));
  if (missing.length > 0) {
    await mkdir(CACHE, { recursive: true });
    await writeFile(`${name}.json`, JSON.stringify(texts));
    await writeFile(
      `${name}.f32`,
      Buffer.concat(vectors.map((v) => Buffer.from(v.buffer, v.byteOffset, v.byteLength))),
    );
  }
  return vectors;
}

/** Writes records with their vectors and builds the indexes afterwards, which is what a large import does; gives the seconds of the graph. */
async function fill(
  database: Database,
  exec: (sql: string) => Promise<void>,
  table: string,
  records: number,
  base: readonly Float32Array[],
  texts: readonly string[],
  say: (text: string) => void,
): Promise<number> {
  const dropped = await database.query<{ indexname: string; indexdef: string }>(
    "SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('memory_records', $1) AND indexname NOT LIKE '%pkey'",
    [table],
  );
  for (const { indexname } of dropped) await database.exec(`DROP INDEX ${indexname}`);
  for (let start = 0; start < records; start += BATCH) {
    const rows = Array.from({ length: Math.min(BATCH, records - start) }, (_, offset) => {
      const n = start + offset;
      const source = base[n % base.length] ?? new Float32Array();
      const vector = n < base.length ? source : perturbed(source, n);
      const namespace = namespaceOf(n);
      if (n % 100_000 === 0) say(`writing: ${n} of ${records} records`);
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
  say('indexing words and places');
  const definitions = dropped.map(({ indexdef }) => indexdef);
  const isGraph = (definition: string): boolean => definition.includes('USING hnsw');
  for (const definition of definitions.filter((one) => !isGraph(one))) await exec(definition);
  say('building the graph');
  const started = performance.now();
  for (const definition of definitions.filter(isGraph)) await exec(definition);
  const seconds = (performance.now() - started) / 1000;
  await exec('VACUUM ANALYZE memory_records');
  await exec(`VACUUM ANALYZE ${table}`);
  return seconds;
}

async function measurePlace(
  database: Database,
  table: string,
  retrieval: Retrieval,
  vectors: VectorIndex<RecordFilter>,
  asked: readonly string[],
  key: string,
) {
  const filter: RecordFilter = {
    memoryId: MEMORY,
    now: new Date(),
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
