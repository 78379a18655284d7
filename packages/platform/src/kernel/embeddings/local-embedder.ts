import { access, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { BoundedQueue } from '../bounded-queue.ts';
import type { Clock } from '../clock.ts';
import { ModelError } from '../models/index.ts';
import { readBertConfig } from './bert-graph.ts';
import type { Embedder } from './embedder.ts';
import { SentenceModelProcess } from './sentence-model-process.ts';

export interface LocalEmbedderOptions {
  /** A sentence-transformers model: config.json, tokenizer.json, tokenizer_config.json and model.safetensors. */
  directory: string;
  clock: Clock;
  /** Threads that one run may use. */
  threads?: number;
  /** Texts after which others have their turn. */
  textsAtOnce?: number;
  /** Everything else on the machine that wants the processor has it first. */
  yields?: boolean;
}

const FILES = ['tokenizer.json', 'tokenizer_config.json', 'model.safetensors'];
const TEXTS_AT_ONCE = 16;
/** Portions of at most so many texts that may wait for their turn. */
const MAX_WAITING = 256;
/** How long the model stays loaded after its last use. Loading it again takes less than a second. */
const IDLE_MS = 5 * 60_000;
/** A portion takes tenths of a second; a process that takes so long, loading included, does not work any more. */
const STUCK_MS = 60_000;

/**
 * A BERT sentence model in a process of its own, which is started when it is first asked and ended when nobody has asked for five minutes: its
 * memory, several times the server's heap, is taken only while it is used. When it ends unasked, whoever it worked for is told, and the
 * next request starts it again. Rejects when the directory has no such model or the runtime is not installed.
 */
export async function openLocalEmbedder(options: LocalEmbedderOptions): Promise<LocalEmbedder> {
  const { directory } = options;
  const config = readBertConfig(JSON.parse(await readFile(join(directory, 'config.json'), 'utf8')));
  for (const name of FILES) await access(join(directory, name));
  requireRuntime();
  return new LocalEmbedder(options, config.hiddenSize);
}

/** Throws when what runs local models is not installed, as on machines that it does not exist for. */
export function requireRuntime(): void {
  createRequire(import.meta.url).resolve('onnxruntime-node');
}

class LocalEmbedder implements Embedder {
  readonly model: string;
  readonly dimensions: number;
  readonly #options: LocalEmbedderOptions;
  readonly #queue = new BoundedQueue({ running: 1, waiting: MAX_WAITING });
  #process: SentenceModelProcess | undefined;
  #cancel = (): void => undefined;
  #closed = false;

  constructor(options: LocalEmbedderOptions, dimensions: number) {
    this.#options = options;
    this.model = `local/${basename(options.directory)}`;
    this.dimensions = dimensions;
  }

  /** Id of the model's process; undefined while there is none. */
  get pid(): number | undefined {
    return this.#process?.alive ? this.#process.pid : undefined;
  }

  async embed(texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]> {
    const vectors: Float32Array[] = [];
    const { textsAtOnce = TEXTS_AT_ONCE } = this.#options;
    for (let start = 0; start < texts.length; start += textsAtOnce) {
      const portion = texts.slice(start, start + textsAtOnce);
      vectors.push(
        ...(await orAborted(
          this.#queue.run(() => this.#run(portion), signal),
          signal,
        )),
      );
    }
    return vectors;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#process?.end('the server stops');
  }

  /** Runs alone, as its turn has come. */
  async #run(texts: readonly string[]): Promise<Float32Array[]> {
    if (this.#closed) throw new ModelError('the embedding model is closed');
    const { clock } = this.#options;
    this.#cancel();
    const process = this.#started();
    this.#cancel = clock.after(STUCK_MS, () => void process.end(`no answer within ${STUCK_MS / 1000} s`));
    try {
      return await process.embed(texts);
    } finally {
      this.#cancel();
      if (!this.#closed) this.#cancel = clock.after(IDLE_MS, () => void process.end('nobody asks'));
    }
  }

  #started(): SentenceModelProcess {
    if (!this.#process?.alive) {
      const { directory, threads = 2, yields = false } = this.#options;
      this.#process = new SentenceModelProcess(directory, { threads, yields });
    }
    return this.#process;
  }
}

/** What `work` gives; rejects at once with the signal's reason when it aborts before, and `work` goes on. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
