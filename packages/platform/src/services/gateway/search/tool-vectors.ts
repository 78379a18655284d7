import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import { type Embedder, embedEach, Late, type OpenEmbedder } from '../../../kernel/embeddings/index.ts';
import { every } from '../../../kernel/every.ts';
import type { Database } from '../../../kernel/storage/index.ts';
import type { OpenGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { digestOf, embeddedText } from '../tools/index.ts';
import { searchedTools } from './searched-tools.ts';
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
/** Vectors that are read at once. */
const MOST_READ = 1_000;
/** Tools whose vectors are in memory, of the gateways that were searched last: each has some 1.5 KB. */
const MOST_TOOLS = 200_000;

interface Known {
  open: OpenGateway;
  model: string;
  making: Promise<VectorList>;
  tools: number;
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
  /** By the ARNs of gateways; that which was used longest ago first. */
  readonly #lists = new Map<string, Known>();
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
      const before = known?.model === model ? known.making : undefined;
      const tools = searchedTools(open);
      const making = (async () => VectorList.of(tools, dimensions, await before))();
      const nothing = { readAt: Number.NEGATIVE_INFINITY, reading: Promise.resolve() };
      known = { open, model, making, tools: tools.length, ...nothing };
    }
    this.#keep(arn, known);
    const list = await known.making;
    await this.#read(known, list);
    return list;
  }

  #keep(arn: string, known: Known): void {
    this.#lists.delete(arn);
    this.#lists.set(arn, known);
    let total = [...this.#lists.values()].reduce((sum, { tools }) => sum + tools, 0);
    for (const [oldest, { tools }] of this.#lists) {
      if (total <= MOST_TOOLS) return;
      this.#lists.delete(oldest);
      total -= tools;
    }
  }

  async #read(known: Known, list: VectorList): Promise<void> {
    const { clock } = this.#deps;
    const { made, tools } = list.progress;
    if (made < tools && clock.monotonic() - known.readAt >= REREAD_MS) {
      known.readAt = clock.monotonic();
      known.reading = this.#fill(list, known.model);
    }
    await known.reading;
  }

  async #fill(list: VectorList, model: string): Promise<void> {
    for (const missing of list.missing(MOST_READ))
      for (const { arn, digest, vector } of await readVectors(this.#deps.database, model, missing))
        list.add(arn, digest, vector);
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
