import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import type { InferenceSession } from 'onnxruntime-node';
import { bertOnnx, readBertConfig } from './bert-graph.ts';
import { unitVector } from './embedder.ts';
import { readSafetensors } from './safetensors.ts';

/** Tokens of a text at most; what is beyond is not seen. It is what such models were trained with. */
const MAX_TOKENS = 256;
/** Tokens of one run. The memory that a run takes grows with them: with this many it stays below 60 MB for a model of six layers. */
const TOKENS_AT_ONCE = 512;

const WEIGHTS = 'model.safetensors';

/** A BERT sentence model in this process, run by ONNX Runtime on at most `threads` threads of its own. */
export interface SentenceModel {
  /** One vector of length 1 for each text, in order. */
  embed(texts: readonly string[]): Promise<Float32Array[]>;
}

/** Loads a sentence-transformers model (`local-embedder.ts`). Rejects when there is none in `directory`, or no runtime to run it. */
export async function loadSentenceModel(directory: string, threads: number): Promise<SentenceModel> {
  const json = async (name: string): Promise<object> => JSON.parse(await readFile(join(directory, name), 'utf8'));
  const { InferenceSession: Session, Tensor } = await import('onnxruntime-node');
  const config = readBertConfig(await json('config.json'));
  const tokenizer = new Tokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'));
  const model = bertOnnx(config, WEIGHTS, await readSafetensors(join(directory, WEIGHTS)));
  const session: InferenceSession = await Session.create(model, {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    // Where the weights are: they are mapped, not read.
    extra: { session: { model_external_initializers_file_folder_path: directory } },
  });
  const run = async (encoded: readonly number[][]): Promise<Float32Array[]> => {
    const length = Math.max(...encoded.map((ids) => ids.length));
    const of = (value: (ids: number[], index: number) => number) => {
      const data = encoded.flatMap((ids) => Array.from({ length }, (_, index) => BigInt(value(ids, index))));
      return new Tensor('int64', BigInt64Array.from(data), [encoded.length, length]);
    };
    const output = await session.run({
      input_ids: of((ids, index) => ids[index] ?? 0),
      attention_mask: of((ids, index) => (index < ids.length ? 1 : 0)),
      position_ids: of((_ids, index) => index),
    });
    const data = output.embedding?.data as Float32Array;
    return encoded.map((_, index) =>
      unitVector(data.subarray(index * config.hiddenSize, (index + 1) * config.hiddenSize)),
    );
  };
  return {
    async embed(texts) {
      const vectors: Float32Array[] = [];
      for (const some of runs(texts.map((text) => tokensOf(tokenizer, text)))) vectors.push(...(await run(some)));
      return vectors;
    },
  };
}

/** In order, as many at once as a run may have tokens, all taken for as long as the longest. */
function* runs(encoded: readonly number[][]): Generator<number[][]> {
  let some: number[][] = [];
  let longest = 0;
  for (const ids of encoded) {
    longest = Math.max(longest, ids.length);
    if (some.length > 0 && (some.length + 1) * longest > TOKENS_AT_ONCE) {
      yield some;
      some = [];
      longest = ids.length;
    }
    some.push(ids);
  }
  if (some.length > 0) yield some;
}

/** With the special tokens at both ends, the last one also where the text is cut off. */
function tokensOf(tokenizer: Tokenizer, text: string): number[] {
  const { ids } = tokenizer.encode(text);
  const last = ids.at(-1);
  return ids.length <= MAX_TOKENS || last === undefined ? ids : [...ids.slice(0, MAX_TOKENS - 1), last];
}
