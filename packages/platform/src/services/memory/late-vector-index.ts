import type { Logger } from 'pino';
import { type Clock, sleep } from '../../kernel/clock.ts';
import type { Embedder } from '../../kernel/embeddings/index.ts';
import { VectorIndex } from '../../kernel/search/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import type { RecordFilter } from './record-store.ts';
import { recordTable } from './record-table.ts';

/** Opens the embedding model that is set up; rejects when it cannot be used now. */
export type OpenEmbedder = (signal: AbortSignal) => Promise<Embedder>;

export interface LateVectorIndexDeps {
  database: Database;
  /** Absent: none is set up. */
  openEmbedder?: OpenEmbedder;
  clock: Clock;
  log: Logger;
}

/** How long the start of the server waits for the model. */
const AT_START_MS = 1_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;

/**
 * The vector index, from the moment that the embedding model can be used. One that does not answer, or not with vectors, keeps nobody
 * waiting: search is by words alone meanwhile, and it is tried again after ever longer pauses.
 */
export class LateVectorIndex {
  readonly #deps: LateVectorIndexDeps;
  readonly #stopping = new AbortController();
  #embedder: Embedder | undefined;
  #index: VectorIndex<RecordFilter> | undefined;
  #opening: Promise<void> = Promise.resolve();

  constructor(deps: LateVectorIndexDeps) {
    this.#deps = deps;
  }

  /** Undefined as long as there is none. */
  get current(): VectorIndex<RecordFilter> | undefined {
    return this.#index;
  }

  async start(): Promise<void> {
    const { openEmbedder, database, clock, log } = this.#deps;
    const { vector } = database;
    if (!vector.available)
      return log.warn({ reason: vector.reason }, `memory searches by words alone: ${vector.missing}; ${vector.remedy}`);
    if (!openEmbedder)
      return log.warn(
        'memory searches by words alone: no embedding model is set up (embeddings.fetch, embeddings.directory or embeddings.url)',
      );
    const first = this.#open(openEmbedder);
    this.#opening = first.then((open) => (open ? undefined : this.#retry(openEmbedder)));
    await Promise.race([first, sleep(clock, AT_START_MS)]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server stops'));
    await this.#opening;
    await this.#index?.stop();
    await this.#embedder?.close();
  }

  async #retry(openEmbedder: OpenEmbedder): Promise<void> {
    const { signal } = this.#stopping;
    for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      await sleep(this.#deps.clock, pause, signal).catch(() => undefined);
      if (signal.aborted || (await this.#open(openEmbedder))) return;
    }
  }

  /** Whether it is open now. */
  async #open(openEmbedder: OpenEmbedder): Promise<boolean> {
    const { database, clock, log } = this.#deps;
    const { signal } = this.#stopping;
    let embedder: Embedder | undefined;
    try {
      embedder = await openEmbedder(signal);
      signal.throwIfAborted();
      const index = new VectorIndex({ database, table: recordTable, embedder, clock, log });
      await index.start();
      const { model, dimensions } = embedder;
      log.info({ model, dimensions }, 'embedding model opened');
      this.#embedder = embedder;
      this.#index = index;
      return true;
    } catch (error) {
      await embedder?.close();
      if (!signal.aborted)
        log.warn({ err: error }, 'the embedding model cannot be used: memory searches by words alone until it can');
      return false;
    }
  }
}
