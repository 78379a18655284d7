import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import { type Embedder, Late, type OpenEmbedder } from '../../kernel/embeddings/index.ts';
import { VectorIndex } from '../../kernel/search/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import type { RecordFilter } from './record-store.ts';
import { recordTable } from './record-table.ts';

export interface LateVectorIndexDeps {
  database: Database;
  /** Absent: none is set up. */
  openEmbedder?: OpenEmbedder;
  clock: Clock;
  log: Logger;
}

/** How long the start of the server waits for the model. */
const AT_START_MS = 1_000;

interface Opened {
  embedder: Embedder;
  index: VectorIndex<RecordFilter>;
}

/**
 * The vector index, from the moment that the embedding model can be used. One that does not answer, or not with vectors, keeps nobody
 * waiting: search is by words alone meanwhile.
 */
export class LateVectorIndex {
  readonly #deps: LateVectorIndexDeps;
  #late: Late<Opened> | undefined;

  constructor(deps: LateVectorIndexDeps) {
    this.#deps = deps;
  }

  /** Undefined as long as there is none. */
  get current(): VectorIndex<RecordFilter> | undefined {
    return this.#late?.current?.index;
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
    this.#late = new Late<Opened>({
      open: (signal) => this.#open(openEmbedder, signal),
      close: async ({ index, embedder }) => {
        await index.stop();
        await embedder.close();
      },
      failed: (error) =>
        log.warn({ err: error }, 'the embedding model cannot be used: memory searches by words alone until it can'),
      clock,
    });
    await this.#late.start(AT_START_MS);
  }

  async stop(): Promise<void> {
    await this.#late?.stop();
  }

  async #open(openEmbedder: OpenEmbedder, signal: AbortSignal): Promise<Opened> {
    const { database, clock, log } = this.#deps;
    const embedder = await openEmbedder(signal);
    try {
      signal.throwIfAborted();
      const index = new VectorIndex({ database, table: recordTable, embedder, clock, log });
      await index.start();
      const { model, dimensions } = embedder;
      log.info({ model, dimensions }, 'embedding model opened');
      return { embedder, index };
    } catch (error) {
      await embedder.close();
      throw error;
    }
  }
}
