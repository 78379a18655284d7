import type { Logger } from 'pino';
import { HybridSearch, type VectorSearch } from '../../../kernel/search/index.ts';
import type { GatewayTool, OpenGateway } from '../gateway-tools.ts';
import { searchedPart, toolTexts } from '../tools/index.ts';
import { searchedTools, unsearched } from './searched-tools.ts';
import { type ToolVectors, unfinished } from './tool-vectors.ts';
import { WordIndex } from './word-index.ts';

export interface Found {
  found: GatewayTool[];
  /** Why meaning did not count for all tools; undefined where it did. */
  shortcoming: string | undefined;
  /** What was not looked at; undefined where all tools were. */
  unsearched: string | undefined;
}

export interface ToolSearchDeps {
  vectors: Pick<ToolVectors, 'embedder' | 'absence' | 'listOf'>;
  log: Logger;
}

/** How near the tools of one gateway are to a query. */
interface Nearness {
  current: VectorSearch<undefined, Float32Array> | undefined;
  shortcoming: string | undefined;
}

/** Finds the tools of a gateway that fit a task: by their meaning where there are vectors, and by their words. */
export class ToolSearch {
  readonly #deps: ToolSearchDeps;
  readonly #indexes = new WeakMap<OpenGateway, Promise<WordIndex<GatewayTool>>>();

  constructor(deps: ToolSearchDeps) {
    this.#deps = deps;
  }

  /** At most so many, best first. */
  async find(open: OpenGateway, query: string, limit: number): Promise<Found> {
    const words = await this.#wordsOf(open);
    const vectors = await this.#nearnessOf(open);
    const { hits, byWords } = await new HybridSearch<undefined, Float32Array>({
      words: async (_, text, most) => words.find(text, most).map(({ item, score }) => ({ id: item.listed, score })),
      ...{ vectors, log: this.#deps.log },
    }).find(undefined, query, limit);
    const failed = byWords && vectors.current ? 'the embedding model does not answer now' : undefined;
    return {
      found: hits.flatMap(({ id }) => open.byName.get(id) ?? []),
      shortcoming: failed ?? vectors.shortcoming,
      unsearched: unsearched(open),
    };
  }

  #wordsOf(open: OpenGateway): Promise<WordIndex<GatewayTool>> {
    let index = this.#indexes.get(open);
    if (!index) {
      index = WordIndex.of(searchedTools(open), weightsOf);
      this.#indexes.set(open, index);
    }
    return index;
  }

  async #nearnessOf(open: OpenGateway): Promise<Nearness> {
    const { vectors, log } = this.#deps;
    const { embedder } = vectors;
    if (!embedder) return { current: undefined, shortcoming: vectors.absence() };
    const list = await vectors.listOf(open, embedder).catch((error: unknown) => {
      log.warn({ err: error }, 'vectors of tools could not be read; this search is by words alone');
    });
    if (!list) return { current: undefined, shortcoming: 'vectors of the tools cannot be read now' };
    const shortcoming = unfinished(list.progress);
    if (list.progress.made === 0) return { current: undefined, shortcoming };
    const current: VectorSearch<undefined, Float32Array> = {
      async embed(text, signal) {
        const [vector] = await embedder.embed([text], signal);
        if (!vector) throw new Error('the embedding model gave no vector');
        return vector;
      },
      search: async (_, vector, most) => list.nearest(vector, most),
      cosines: async (names, vector) => list.cosines(names, vector),
    };
    return { current, shortcoming };
  }
}

/** What a tool is called counts most, then what it is for, then its parameters. */
function weightsOf({ tool }: GatewayTool): [text: string, weight: number][] {
  const { name, description, parameters } = toolTexts(tool);
  return [
    [name, 3],
    [searchedPart(description), 2],
    [searchedPart(parameters), 1],
  ];
}
