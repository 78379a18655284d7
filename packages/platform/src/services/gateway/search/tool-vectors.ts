import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import { type Embedder, embedEach, Late, type OpenEmbedder } from '../../../kernel/embeddings/index.ts';
import { every } from '../../../kernel/every.ts';
import { Lru } from '../../../kernel/lru.ts';
import type { Database } from '../../../kernel/storage/index.ts';
import type { OpenGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { digestOf, embeddedText } from '../tools/index.ts';
import { VectorList } from './vector-list.ts';
import { progressOf, readVectors, unseenTools, writeDigests, writeVectors } from './vector-store.ts';

export interface ToolVectorsDeps {
  database: Database;
  /** Absent: none is set up. */
  openEmbedder?: OpenEmbedder | undefined;
  clock: Clock;
  log: Logger;
}

/** Texts that are read, embedded and kept together. */
const BATCH = 64;
/** How often to look for tools that another server has stored, and to try again what failed. */
const SWEEP_MS = 60_000;
/** How long what was read is believed to be all that there is, while vectors are being made. */
const REREAD_MS = 1_000;
/** Lists in memory, of the gateways that were searched last. */
const MOST_LISTS = 100;

interface Known {
  open: OpenGateway;
  model: string;
  list: VectorList;
  readAt: number;
  reading: Promise<void>;
}

/**
 * Vectors of the tools of gateways with search. They are made in the background, one batch after the other, by a model of its own, and kept:
 * a server that ends meanwhile goes on where it was. Nobody waits for them: until they are there, search is by words.
 */
export class ToolVectors {
  readonly #deps: ToolVectorsDeps;
  readonly #late: Late<Embedder> | undefined;
  readonly #lists = new Lru<string, Known>(MOST_LISTS);
  readonly #stopping = new AbortController();
  #endSweeps: () => Promise<void> = async () => undefined;
  #working: Promise<void> | undefined;
  #asked = false;

  constructor(deps: ToolVectorsDeps) {
    this.#deps = deps;
    const { openEmbedder, clock, log } = deps;
    this.#late =
      openEmbedder &&
      new Late({
        open: openEmbedder,
        close: (embedder) => embedder.close(),
        opened: () => this.wake(),
        failed: (error) =>
          log.warn({ err: error }, 'the embedding model cannot be used: gateways search by words alone until it can'),
        clock,
      });
  }

  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    await this.#late?.start(0);
    this.#endSweeps = every(clock, SWEEP_MS, 'look for tools without vectors', async () => this.wake(), log);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server stops'));
    await this.#endSweeps();
    await this.#working;
    await this.#late?.stop();
  }

  /** Says that there may be tools without vectors. */
  wake(): void {
    this.#asked = true;
    if (this.embedder && !this.#stopping.signal.aborted) this.#working ??= this.#work();
  }

  /** The model; undefined as long as it cannot be used. */
  get embedder(): Embedder | undefined {
    return this.#late?.current;
  }

  /** Why tools of a gateway are found by their words alone; undefined where their meaning counts for all of them. */
  async shortcoming({ arn }: Gateway): Promise<string | undefined> {
    const { embedder } = this;
    return embedder ? unfinished(await progressOf(this.#deps.database, embedder.model, arn)) : this.absence();
  }

  /** Why there is no model now. */
  absence(): string {
    return this.#late ? 'the embedding model cannot be used now' : 'no embedding model is set up';
  }

  /** The vectors that there are by now of a gateway's tools, by this model. */
  async listOf(open: OpenGateway, { model, dimensions }: Embedder): Promise<VectorList> {
    const { arn } = open.gateway;
    let known = this.#lists.get(arn);
    if (known?.open !== open || known.model !== model) {
      const before = known?.model === model ? known.list : undefined;
      const list = new VectorList(open.tools, dimensions, before);
      known = { open, model, list, readAt: Number.NEGATIVE_INFINITY, reading: Promise.resolve() };
      this.#lists.set(arn, known);
    }
    await this.#read(known);
    return known.list;
  }

  async #read(known: Known): Promise<void> {
    const { clock, database } = this.#deps;
    const { made, tools } = known.list.progress;
    if (made < tools && clock.monotonic() - known.readAt >= REREAD_MS) {
      known.readAt = clock.monotonic();
      known.reading = readVectors(database, known.model, known.list.missing()).then((vectors) => {
        for (const { arn, digest, vector } of vectors) known.list.add(arn, digest, vector);
      });
    }
    await known.reading;
  }

  async #work(): Promise<void> {
    const { log } = this.#deps;
    try {
      while (this.#asked && this.embedder) {
        this.#asked = false;
        while (!this.#stopping.signal.aborted && (await this.#batch(this.embedder)));
      }
    } catch (error) {
      if (!this.#stopping.signal.aborted)
        log.warn({ err: error }, 'vectors of tools could not be made; they are found by words until they are');
    }
    // In the same turn as the last look: whoever wakes from here on begins anew.
    this.#working = undefined;
  }

  /** Whether there may be more. */
  async #batch(embedder: Embedder): Promise<boolean> {
    const { database, log } = this.#deps;
    const unseen = await unseenTools(database, embedder.model, BATCH);
    if (unseen.length === 0) return false;
    const texts = unseen.map(({ tool }) => embeddedText(tool));
    const vectors = await embedEach(embedder, texts, this.#stopping.signal);
    const made = unseen.map(({ arn, position, tool }, at) => {
      return { arn, position, digest: digestOf(tool), vector: vectors[at] };
    });
    const refused = made.filter(({ vector }) => !vector).length;
    if (refused > 0) log.warn({ count: refused }, 'the embedding model refuses tools; these are found by words alone');
    await database.transaction(async (tx) => {
      await writeDigests(tx, made);
      await writeVectors(tx, embedder.model, made);
    });
    return true;
  }
}

/** What is to be said while vectors are being made. */
export function unfinished({ made, tools }: { made: number; tools: number }): string | undefined {
  return made < tools ? `${made} of ${tools} tools have their vectors so far` : undefined;
}
