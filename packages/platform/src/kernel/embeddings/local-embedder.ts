import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import type { InferenceSession } from 'onnxruntime-node';
import { bertOnnx, readBertConfig } from './bert-graph.ts';
import { type Embedder, unitVector } from './embedder.ts';
import { readSafetensors } from './safetensors.ts';

export interface LocalEmbedderOptions {
  /** A sentence-transformers model: config.json, tokenizer.json, tokenizer_config.json and model.safetensors. */
  directory: string;
  /** Threads that one run may use. */
  threads?: number;
}

/** Tokens of a text at most; what is beyond is not seen. It is what such models were trained with. */
const MAX_TOKENS = 256;
const TEXTS_AT_ONCE = 16;

/**
 * A BERT sentence model run in this process by ONNX Runtime, which works on threads of its own. Rejects when the directory
 * has no such model or the runtime is not installed.
 */
export async function openLocalEmbedder({ directory, threads = 2 }: LocalEmbedderOptions): Promise<Embedder> {
  const json = async (name: string): Promise<object> => JSON.parse(await readFile(join(directory, name), 'utf8'));
  const { InferenceSession: Session, Tensor } = await import('onnxruntime-node');
  const config = readBertConfig(await json('config.json'));
  const tokenizer = new Tokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'));
  const model = bertOnnx(config, readSafetensors(await readFile(join(directory, 'model.safetensors'))));
  const session: InferenceSession = await Session.create(model, {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
  });

  const run = async (texts: readonly string[]): Promise<Float32Array[]> => {
    const encoded = texts.map((text) => tokensOf(tokenizer, text));
    const length = Math.max(...encoded.map((ids) => ids.length));
    const of = (value: (ids: number[], index: number) => number) => {
      const data = encoded.flatMap((ids) => Array.from({ length }, (_, index) => BigInt(value(ids, index))));
      return new Tensor('int64', BigInt64Array.from(data), [texts.length, length]);
    };
    const output = await session.run({
      input_ids: of((ids, index) => ids[index] ?? 0),
      attention_mask: of((ids, index) => (index < ids.length ? 1 : 0)),
      position_ids: of((_ids, index) => index),
    });
    const data = output.embedding?.data as Float32Array;
    return texts.map((_, index) =>
      unitVector(data.subarray(index * config.hiddenSize, (index + 1) * config.hiddenSize)),
    );
  };

  return {
    model: `local/${basename(directory)}`,
    dimensions: config.hiddenSize,
    async embed(texts, signal) {
      const vectors: Float32Array[] = [];
      for (let start = 0; start < texts.length; start += TEXTS_AT_ONCE) {
        signal?.throwIfAborted();
        vectors.push(...(await run(texts.slice(start, start + TEXTS_AT_ONCE))));
      }
      return vectors;
    },
    close: () => session.release(),
  };
}

/** With the special tokens at both ends, the last one also where the text is cut off. */
function tokensOf(tokenizer: Tokenizer, text: string): number[] {
  const { ids } = tokenizer.encode(text);
  const last = ids.at(-1);
  return ids.length <= MAX_TOKENS || last === undefined ? ids : [...ids.slice(0, MAX_TOKENS - 1), last];
}
